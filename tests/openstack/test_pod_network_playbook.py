# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook against a real Neutron, by the action plugin and by the module, and runs of the module."""

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
from openstack.connection import Connection

from tests import ROOT
from tests.openstack.neutron_pod import AccessLog, Plan, result_keys, run

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

RESULT = re.compile(r"^\S+ \| [A-Z]+!? => (?=\{)", re.MULTILINE)


def play(plan: Plan, *options: str, fails: bool = False, **variables: Any) -> list[dict[str, Any]]:
    """Run playbooks/openstack.yml and return the results of its tasks."""
    variables["openstack_tenant_clouds"] = {"tenant-a": "tenant-a"}
    program = Path(sys.executable).with_name("ansible-playbook")
    result = subprocess.run(
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
    assert (result.returncode != 0) == fails, result.stdout + result.stderr
    decoder = json.JSONDecoder()
    found = [decoder.raw_decode(result.stdout, match.end())[0] for match in RESULT.finditer(result.stdout)]
    assert found, result.stdout + result.stderr
    return found


@pytest.mark.parametrize("fast", [True, False])
def test_check_mode_apply_and_idempotence(admin: Connection, plan: Plan, log: AccessLog, fast: bool) -> None:
    plan.options()
    with log.no_writes():
        (predicted,) = play(plan, "--check", "--diff", openipu_fast_path=fast)
    assert predicted["changed"]
    applied, checked = play(plan, "--diff", openipu_fast_path=fast)
    assert applied["changed"]
    assert result_keys(applied) == result_keys(predicted)
    assert checked["ok"]
    assert checked["tenants"][0]["project"] == "tenant-a"
    assert len(plan.ports(admin)) == 12
    for options in ([], ["--check"]):
        with log.no_writes():
            second = play(plan, "--diff", *options, openipu_fast_path=fast)
        assert not second[0]["changed"]
    # A machine that was removed from the rack is removed from OpenStack.
    plan.machines = 3
    plan.options()
    deleted, _checked = play(plan, openipu_fast_path=fast)
    assert sorted(deleted["ports"]["removed"]) == ["ipum04-bmc", "ipum04-gw", "ipum04-rnic"]


def test_a_leak_fails_the_playbook(admin: Connection, plan: Plan) -> None:
    assert not run(**plan.options()).get("failed")
    leak = admin.network.create_rbac_policy(
        object_type="network",
        object_id=plan.network(admin, "bmc-gw").id,
        action="access_as_shared",
        target_project_id=admin.identity.find_project("tenant-a").id,
    )
    try:
        _applied, checked = play(plan, fails=True, openstack_prune=[])
    finally:
        admin.network.delete_rbac_policy(leak)
    reason = f"Tenant 'tenant-a' can create ports on network '{plan.name}-bmc-gw'. Remove the share of the network."
    assert reason in checked["msg"]


def test_a_pod_without_openstack_is_skipped(plan: Plan) -> None:
    plan.options()
    file = plan.folder / "pod.yml"
    settings = yaml.safe_load(file.read_text())
    del settings["openstack"]
    file.write_text(yaml.safe_dump(settings))
    (result,) = play(plan)
    assert result["msg"].startswith("OpenStack is skipped")
