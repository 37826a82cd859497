# SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearsals with the inventories of users: shared with other PODs, and with secrets of any name."""

from __future__ import annotations

from pathlib import Path

from tests.rehearsal.conftest import Installation

VARIABLES = """\
eos_connection: {username: admin, password: "{{ my_switch_pw }}"}
eos_config: {snmp_communities: ["{{ my_community }}"]}
"""


def test_a_shared_inventory_with_secrets_of_any_name(installation: Installation, small: Path) -> None:
    pod = small / "pod.yml"
    pod.write_text(pod.read_text() + "shared_inventory: true\n")
    (small / "group_vars").mkdir()
    (small / "group_vars/switches.yml").write_text(VARIABLES)
    report, packets = installation.rehearse(small)
    assert report["succeeded"], report["failures"]
    assert packets == 0
    assert report["undefined_variables"] == {
        "my_switch_pw": "group_vars/switches.yml:1",
        "my_community": "group_vars/switches.yml:2",
    }
    changed = {change["host"]: (change["address"], change["skipped"]) for change in report["changes"]}
    assert changed["mgmt1"] == ("10.3.1.121", False)
    assert changed["pdu1"] == ("10.3.1.131", True)
    assert not [host for host in changed if host.startswith("pod1-")]
