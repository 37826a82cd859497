#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run the tests of the collection and of a whole bring-up with the oldest releases that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
venv=.cache/oldest
uv venv --quiet --clear "$venv"
uv pip install --quiet --python "$venv/bin/python" --resolution lowest-direct \
    "openipu[twin] @ file://$(pwd)" 'pytest>=9' 'pytest-timeout>=2.4' 'hypothesis>=6.150'
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# The wheel carries some modules of the collection; the tests want all of it.
rm -rf "$site/ansible_collections/openipu/pod"
ln -s "$(pwd)" "$site/ansible_collections/openipu/pod"
PATH="$(pwd)/$venv/bin:$PATH"
export PATH
pytest -p no:cacheprovider tests/unit/collection tests/unit/vipu/test_store.py \
    tests/integration/collection/test_scenarios.py tests/integration/collection/test_written_files.py tests/integration/bringup
