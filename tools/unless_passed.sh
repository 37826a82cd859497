#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run a check, unless it has passed with the same files: unless_passed.sh [--all] [--writes FILE] COMMAND [ARGUMENT …]
# The check may depend on the names of all files, and on the contents of all but Python files of src and tests.
# With --all, it may also depend on the contents of these. With --writes, it runs if its result FILE is missing.
set -eu
cd "$(dirname "$0")/.."
omitted=':!src/*.py :!src/openipu/shared :!tests/*.py'
if [ "$1" = --all ]; then
    omitted=':!src/openipu/shared' # a link to other files
    shift
fi
result=.
if [ "$1" = --writes ]; then
    result=$2
    shift 2
fi
git rev-parse --git-dir >/dev/null 2>&1 || exec "$@"

files() { git ls-files --cached --others --exclude-standard -- "$@"; }
all=$(files)
set -f # the patterns are for Git
# shellcheck disable=SC2086
read=$(files $omitted)
set +f
state=$({ python --version; echo "$all"; echo "$read" | tr '\n' '\0' | xargs -0 sha256sum 2>&1; } | sha256sum)
mark=.cache/passed/$(echo "$*" | tr -c 'A-Za-z0-9\n' -)
if [ -e "$result" ] && [ "$(cat "$mark" 2>/dev/null)" = "$state" ]; then
    echo "Passed earlier with the same files: $*"
    exit 0
fi
rm -f "$mark"
"$@"
mkdir -p .cache/passed
echo "$state" >"$mark"
