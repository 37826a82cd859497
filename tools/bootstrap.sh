#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Make .venv from the locked requirements and put the collection where Ansible and Python find it.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$1" >&2
    exit 1
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
[ -n "$python" ] || fail "No Python from 3.11 to 3.13 was found: install one (Debian 12: apt install python3 python3-venv) or name it, PYTHON=/path/to/python3.12 make bring-up."
"$python" -c "$usable" 2>/dev/null || fail "$python is not a Python from 3.11 to 3.13: name another with PYTHON=…"
"$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python has no venv module: install it (Debian and Ubuntu: apt install python3-venv) and run the same command again."

if ! .venv/bin/python -c "$usable" >/dev/null 2>&1; then
    echo "Making .venv with $("$python" --version) …"
    rm -rf .venv
    "$python" -m venv .venv
fi
.venv/bin/uv --version 2>/dev/null | grep -q "^uv $(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/bootstrap.txt)" ||
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt ||
    fail "The package installer uv could not be installed from requirements/bootstrap.txt: check that the Python package index is reachable (pip's own message stands above)."

echo "Installing the locked requirements …"
.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements/dev.txt ||
    fail "The locked requirements could not be installed: check that the Python package index is reachable (uv's own message stands above)."
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .

# One link serves both: Ansible scans site-packages for collections, and openipu imports the contracts
# and the POD model of the collection from there.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$site/ansible_collections/openipu"
ln -sfn "$(pwd)" "$site/ansible_collections/openipu/pod"
touch .venv/.ready
