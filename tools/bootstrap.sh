#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Create .venv from the locked requirements and link the collection into it.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

# Run a command, and print its title with the elapsed seconds, because pip and uv are quiet.
step() {
    title=$1
    shift
    ( # the output of sleep is elsewhere, so that it keeps no pipe open
        seconds=0
        while sleep 4 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + 4))
            printf '%5d s  %s\n' "$seconds" "$title"
        done
    ) &
    progress=$!
    status=0
    "$@" || status=$?
    kill "$progress" 2>/dev/null || true
    wait "$progress" 2>/dev/null || true
    return "$status"
}

usable='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'
python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.12 python3.13 python3.11; do
        if "$candidate" -c "$usable" >/dev/null 2>&1; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || fail "Cannot create .venv: no Python 3.11 to 3.13 found. Install one (Debian 12: apt install python3 python3-venv) or set its path: PYTHON=/path/to/python3.12 make bring-up."
"$python" -c "$usable" 2>/dev/null || fail "Cannot use $python: it is not Python 3.11 to 3.13. Set another path with PYTHON=…."
"$python" -c 'import venv, ensurepip' 2>/dev/null || fail "Cannot use $python: it has no venv module. Install it (Debian and Ubuntu: apt install python3-venv) and run the command again."

# venv writes the script activate last, so an interrupted run has none.
if [ ! -e .venv/bin/activate ] || ! .venv/bin/python -c "$usable" >/dev/null 2>&1; then
    echo "Creating .venv with $("$python" --version) …"
    rm -rf .venv
    step "Creating .venv" "$python" -m venv .venv
fi
.venv/bin/uv --version 2>/dev/null | grep -q "^uv $(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/bootstrap.txt)" ||
    step "Installing uv" .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt ||
    fail "Cannot install uv from requirements/bootstrap.txt: the message of pip is above. Check that the Python package index is reachable."

echo "Installing the locked requirements …"
step "Installing the locked requirements" .venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements/dev.txt ||
    fail "Cannot install the locked requirements: the message of uv is above. Check that the Python package index is reachable."
step "Installing openipu" .venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .

# Ansible scans site-packages for collections. openipu uses the link src/openipu/shared instead.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$site/ansible_collections/openipu"
ln -sfn "$(pwd)" "$site/ansible_collections/openipu/pod"
touch .venv/.ready
