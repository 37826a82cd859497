# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook against a real Neutron, inside Ansible's worker and by the module, and as the module runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from neutron_pod import AccessLog, Plan, done, run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]

ROOT = Path(__file__).parents[2]
RESULT = re.compile(r"^\S+ \| [A-Z]+!? => (?=\{)", re.MULTILINE)


def play(plan: Plan, *options: str, fails: bool = False, **variables: Any) -> list[dict[str, Any]]:
    """Run playbooks/openstack.yml, and give the results of its tasks that ran."""
    variables["openstack_tenant_clouds"] = {"tenant-a": "tenant-a"}
    program = Path(sys.executable).with_name("ansible-playbook")
    ended = subprocess.run(
        [
            program,
            "-i",
            plan.folder / "pod.yml",
            ROOT / "playbooks/openstack.yml",
            "-e",
            json.dumps(variables),
            *options,
        ],
        env={
            **os.environ,
            "ANSIBLE_STDOUT_CALLBACK": "minimal",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
    decoder = json.JSONDecoder()
    found = [decoder.raw_decode(ended.stdout, match.end())[0] for match in RESULT.finditer(ended.stdout)]
    assert found, ended.stdout + ended.stderr
    return found


@pytest.mark.parametrize("fast", [True, False])
def test_check_apply_and_again(admin: Connection, plan: Plan, log: AccessLog, fast: bool) -> None:
    plan.options()
    with log.nothing_written():
        (foretold,) = play(plan, "--check", "--diff", openipu_fast_path=fast)
    assert foretold["changed"]
    made, looked = play(plan, "--diff", openipu_fast_path=fast)
    assert made["changed"]
    assert done(made) == done(foretold)
    assert looked["ok"]
    assert looked["tenants"][0]["project"] == "tenant-a"
    assert len(plan.ports(admin)) == 12
    for options in ([], ["--check"]):
        with log.nothing_written():
            again = play(plan, "--diff", *options, openipu_fast_path=fast)
        assert not again[0]["changed"]
    # A machine that left the rack leaves OpenStack.
    plan.machines = 3
    plan.options()
    gone, _looked = play(plan, openipu_fast_path=fast)
    assert sorted(gone["ports"]["removed"]) == ["ipum04-bmc", "ipum04-gw", "ipum04-rnic"]


def test_a_leak_fails_the_playbook(admin: Connection, plan: Plan) -> None:
    assert not run(**plan.options()).get("failed")
    leak = admin.network.create_rbac_policy(
        object_type="network",
        object_id=plan.network(admin, "bmc-gw").id,
        action="access_as_shared",
        target_project_id=admin.identity.find_project("tenant-a").id,
    )
    try:
        _made, looked = play(plan, fails=True, openstack_prune=[])
    finally:
        admin.network.delete_rbac_policy(leak)
    assert f"Tenant 'tenant-a' may make ports on network '{plan.name}-bmc-gw': remove its share." in looked["msg"]


def test_a_pod_that_says_nothing_of_openstack_is_left_alone(plan: Plan) -> None:
    plan.options()
    file = plan.folder / "pod.yml"
    said = yaml.safe_load(file.read_text())
    del said["openstack"]
    file.write_text(yaml.safe_dump(said))
    (told,) = play(plan)
    assert told["msg"].startswith("OpenStack is left alone")
