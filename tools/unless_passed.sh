#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run a check, unless it has passed with these very files: unless_passed.sh COMMAND [ARGUMENT …]
# It may depend on which files there are, and on what is in all of them but the Python package and Python tests.
set -eu
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null 2>&1 || exec "$@"

files() { git ls-files --cached --others --exclude-standard -- "$@"; }
all=$(files)
read=$(files ':!src' ':!tests/*.py')
state=$({ python --version; echo "$all"; echo "$read" | tr '\n' '\0' | xargs -0 sha256sum 2>&1; } | sha256sum)
mark=.cache/passed/$(echo "$*" | tr -c 'A-Za-z0-9\n' -)
if [ "$(cat "$mark" 2>/dev/null)" = "$state" ]; then
    echo "Passed with the same files before: $*"
    exit 0
fi
rm -f "$mark"
"$@"
mkdir -p .cache/passed
echo "$state" >"$mark"
