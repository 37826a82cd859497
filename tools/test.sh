#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run all checks that need only Python. The integration tests mostly wait for processes. Static checks and unit tests
# use the processors meanwhile, with a lower priority, so that they do not delay the integration tests.
set -u
cd "$(dirname "$0")/.."
mkdir -p build

# This check lists all files and then reads them. It fails when a test replaces a compiled module in between. So it runs
# before the tests, and the static checks do not repeat it.
tools/unless_passed.sh --all reuse lint --quiet

# Start a target of the Makefile. Its output goes to a file.
start() { nice -n 10 "${MAKE:-make}" --no-print-directory "$1" >"build/$1.log" 2>&1 & }

start static
static=$!
start unit
unit=$!
trap 'kill "$static" "$unit" 2>/dev/null' INT TERM
"${MAKE:-make}" --no-print-directory integration
integration=$?
wait "$unit"
units=$?
wait "$static"
checks=$?

failed=""
echo "Unit tests:"
if [ "$units" -eq 0 ]; then tail -n 1 build/unit.log; else cat build/unit.log; fi
echo "Static checks:"
if [ "$checks" -eq 0 ]; then
    grep -E "passed|Passed|no issues|built|Running sanity test" build/static.log
else
    cat build/static.log
fi
[ "$integration" -eq 0 ] || failed="$failed integration"
[ "$units" -eq 0 ] || failed="$failed unit"
[ "$checks" -eq 0 ] || failed="$failed static"
if [ -n "$failed" ]; then
    echo "Failed, with the output above:$failed" >&2
    exit 1
fi
echo "All checks passed."
