#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run a check, unless it has passed with the same files: unless_passed.sh COMMAND [ARGUMENT …]
# The check may depend on the names of all files, and on the contents of all but src and Python tests.
set -eu
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null 2>&1 || exec "$@"

files() { git ls-files --cached --others --exclude-standard -- "$@"; }
all=$(files)
read=$(files ':!src' ':!tests/*.py')
state=$({ python --version; echo "$all"; echo "$read" | tr '\n' '\0' | xargs -0 sha256sum 2>&1; } | sha256sum)
mark=.cache/passed/$(echo "$*" | tr -c 'A-Za-z0-9\n' -)
if [ "$(cat "$mark" 2>/dev/null)" = "$state" ]; then
    echo "Passed earlier with the same files: $*"
    exit 0
fi
rm -f "$mark"
"$@"
mkdir -p .cache/passed
echo "$state" >"$mark"
