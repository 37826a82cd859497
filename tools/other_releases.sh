#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run tests of the collection and of a whole bring-up with other releases than those of .venv:
#   other_releases.sh oldest    the lowest releases that pyproject.toml allows, locked in requirements/oldest.txt
#   other_releases.sh 2.20      the newest ansible-core 2.20.x, and the newest releases of all others
# PYTHON=/path/to/python3.12 chooses the Python; the default is that of .venv.
set -eu
cd "$(dirname "$0")/.."
release=${1:?usage: other_releases.sh oldest|CORE}
venv=.cache/releases/$release
if [ "$release" = oldest ]; then
    # Some of these releases exist only as source. The constraints lock the setuptools that builds them.
    set -- --require-hashes -r requirements/oldest.txt --build-constraints requirements/oldest.txt
else
    set -- "ansible-core==$release.*" -r pyproject.toml --extra twin --extra kubernetes -r requirements/oldest.in
fi
uv venv --quiet --clear --python "${PYTHON:-.venv/bin/python}" "$venv"
uv pip install --quiet --python "$venv/bin/python" "$@"
# Build the package with the locked hatchling of .venv.
uv build --quiet --wheel --no-build-isolation --python .venv/bin/python --out-dir "$venv/dist" .
uv pip install --quiet --python "$venv/bin/python" --no-deps "$venv"/dist/openipu-*.whl
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$site/ansible_collections/openipu"
ln -s "$(pwd)" "$site/ansible_collections/openipu/pod"
PATH="$(pwd)/$venv/bin:$PATH"
export PATH
ansible --version | head -n 1
# The inventory tests expect the line breaks and the options of a newer ansible-inventory.
pytest -p no:cacheprovider -n 2 --dist loadscope --ignore tests/unit/collection/pod/test_pod_inventory.py \
    tests/unit/collection tests/unit/kubernetes tests/unit/roles/test_openipu_lock.py tests/unit/roles/test_role_files.py \
    tests/unit/roles/test_role_specs.py tests/unit/vipu/storage/test_store.py tests/unit/vipu/storage/test_store_file.py \
    tests/integration/bringup tests/integration/pdu tests/playbooks/test_scenarios.py \
    tests/playbooks/test_written_files.py tests/playbooks/test_pod_report.py \
    tests/playbooks/test_pdu_scenarios.py tests/playbooks/test_power_playbook.py tests/playbooks/test_two_pods.py
