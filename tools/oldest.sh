#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run the tests of the collection and of a whole bring-up with the oldest releases that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
venv=.cache/oldest
uv venv --quiet --clear "$venv"
uv pip install --quiet --python "$venv/bin/python" --resolution lowest-direct \
    "openipu[twin] @ file://$(pwd)" 'pyeapi>=1.0' 'openstacksdk>=4.0' \
    'pytest>=9' 'pytest-timeout>=2.4' 'pytest-xdist>=3.8' 'hypothesis>=6.150'
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# The wheel carries some modules of the collection; the tests want all of it.
rm -rf "$site/ansible_collections/openipu/pod"
ln -s "$(pwd)" "$site/ansible_collections/openipu/pod"
PATH="$(pwd)/$venv/bin:$PATH"
export PATH
pytest -p no:cacheprovider -n 2 --dist loadscope tests/unit/collection tests/unit/vipu/test_store.py tests/integration/bringup tests/integration/pdu \
    tests/integration/collection/test_scenarios.py tests/integration/collection/test_written_files.py tests/integration/collection/test_pod_report.py
