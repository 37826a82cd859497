#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run all checks that need only Python. The static checks run concurrently with the tests, which mostly wait.
set -u
cd "$(dirname "$0")/.."
mkdir -p build
log=build/static.log

"${MAKE:-make}" --no-print-directory static >"$log" 2>&1 &
static=$!
trap 'kill "$static" 2>/dev/null' INT TERM
"${MAKE:-make}" --no-print-directory unit integration
tests=$?
wait "$static"
checks=$?

echo "Static checks:"
if [ "$checks" -eq 0 ]; then
    grep -E "passed|Passed|no issues|built|Running sanity test" "$log"
else
    cat "$log"
fi
if [ "$tests" -ne 0 ] || [ "$checks" -ne 0 ]; then
    [ "$tests" -eq 0 ] || echo "Tests failed. Their output is above the static checks." >&2
    [ "$checks" -eq 0 ] || echo "A static check failed. Its output is above." >&2
    exit 1
fi
echo "All checks passed."
