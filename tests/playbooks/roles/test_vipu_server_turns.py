# SPDX-License-Identifier: GPL-3.0-or-later
"""Order in which the role vipu_server restarts several controllers, and what a failed one does to the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks.roles.test_vipu_server_store import ROLE, STORE, play

HOSTS: dict[str, dict[str, Any]] = {f"c{number}": {} for number in (1, 2, 3)}
LEADS = "vipu-server 0.1.0 serves on 10.1.1.1:8090\nCertificates are valid until 2027-01-01"
FOLLOWS = "vipu-server follows 10.1.1.1:8090, on 10.1.1.2:8090\nCertificates are valid until 2027-01-01"


def restarted(folder: Path, leader: str, *, due: str = "true", failing: str = "") -> tuple[list[str], str]:
    """Return the hosts in the order of their restarts, and the output of the play.

    ``due``: condition for a restart, for each host. ``failing``: host that does not start again.
    """
    statuses = {host: {"stdout": LEADS if host == leader else FOLLOWS} for host in HOSTS}
    loop = {
        "ansible.builtin.include_tasks": "turn.yml",
        "loop": "{{ vipu_server_turns }}",
        "loop_control": {"loop_var": "vipu_server_turn"},
        "when": due,
        "vars": {"vipu_server_turn_verb": "restart", "vipu_server_turn_service": "vipu-server"},
    }
    return in_turns(folder, "vipu_server_status", statuses, loop, failing)


def in_turns(
    folder: Path, fact: str, values: dict[str, dict[str, Any]], loop: dict[str, Any], failing: str = ""
) -> tuple[list[str], str]:
    """Run a task that restarts hosts in turns, with a fact of each host. The result is that of ``restarted``."""
    restarts = folder / "restarts"
    begin, end = f"{{{{ inventory_hostname }}}} stopped >>{restarts}", f"{{{{ inventory_hostname }}}} back >>{restarts}"
    tasks = [
        {"ansible.builtin.shell": f"echo {begin}"},
        {"ansible.builtin.shell": f"echo {end}", "when": f"inventory_hostname != '{failing}'"},
        {"ansible.builtin.fail": {"msg": "not healthy"}, "when": f"inventory_hostname == '{failing}'"},
    ]
    (folder / "restart.json").write_text(json.dumps(tasks))
    output = play(
        folder,
        {**STORE, "vipu_server_controllers": list(HOSTS), "vipu_server_turn_tasks": str(folder / "restart.json")},
        [
            {"ansible.builtin.set_fact": {fact: "{{ values[inventory_hostname] }}"}, "vars": {"values": values}},
            {**loop, "ansible.builtin.include_tasks": str(ROLE / "tasks" / loop["ansible.builtin.include_tasks"])},
        ],
        hosts=HOSTS,
    )
    return restarts.read_text().splitlines() if restarts.exists() else [], " ".join(output.split())


@pytest.mark.parametrize(("leader", "order"), [("c1", "c2 c3 c1"), ("c2", "c1 c3 c2"), ("c3", "c1 c2 c3")])
def test_each_restart_waits_for_the_previous_one_and_the_leader_is_last(
    tmp_path: Path, leader: str, order: str
) -> None:
    lines, output = restarted(tmp_path, leader)
    assert lines == [f"{host} {event}" for host in order.split() for event in ("stopped", "back")], output


def test_only_controllers_with_changes_restart(tmp_path: Path) -> None:
    lines, output = restarted(tmp_path, "c1", due="inventory_hostname != 'c2'")
    assert lines == ["c3 stopped", "c3 back", "c1 stopped", "c1 back"], output


def test_a_failed_restart_keeps_the_other_controllers_running(tmp_path: Path) -> None:
    lines, output = restarted(tmp_path, "c1", failing="c2")
    assert lines == ["c2 stopped"], output
    for host in ("c3", "c1"):
        assert f"Cannot restart vipu-server on {host}: the role failed on c2" in output


def address_restarts() -> dict[str, Any]:
    """Return the task that restarts Keepalived."""
    tasks = yaml.safe_load((ROLE / "tasks/virtual_address.yml").read_text())
    (found,) = (task for task in tasks if task.get("ansible.builtin.include_tasks") == "turn.yml")
    return {**found, "when": "true"}


@pytest.mark.parametrize(
    ("holder", "order"), [("c1", "c2 c3 c1"), ("c2", "c1 c3 c2"), ("c3", "c1 c2 c3"), ("", "c1 c2 c3")]
)
def test_keepalived_restarts_in_turns_and_on_the_host_with_the_address_last(
    tmp_path: Path, holder: str, order: str
) -> None:
    held = {host: {"stdout": "eth1 UP 10.1.1.10/24" if host == holder else ""} for host in HOSTS}
    lines, output = in_turns(tmp_path, "vipu_server_address_held", held, address_restarts())
    assert lines == [f"{host} {event}" for host in order.split() for event in ("stopped", "back")], output


def test_keepalived_restarts_on_no_further_host_after_a_failure(tmp_path: Path) -> None:
    held = {host: {"stdout": ""} for host in HOSTS}
    lines, output = in_turns(tmp_path, "vipu_server_address_held", held, address_restarts(), failing="c1")
    assert lines == ["c1 stopped"], output
    assert "Cannot restart Keepalived on c2: the role failed on c1" in output


def test_a_controller_waits_only_if_it_runs_with_a_store_and_changed(tmp_path: Path) -> None:
    """One with a database stops at once, as does one that does not run."""
    registered = {
        "vipu_server_active": {"stdout": "active"},
        "vipu_server_activated": {"changed": False},
        "vipu_server_written_configuration": {"changed": True},
        "vipu_server_written_agent_tls": {"changed": False},
    }
    cases: list[tuple[bool, dict[str, Any]]] = [
        (True, STORE),
        (False, {}),
        (False, {**STORE, "vipu_server_active": {"stdout": "activating"}}),
        (False, {**STORE, "vipu_server_written_configuration": {"changed": False}}),
        # The registration of a replaced certificate of the first administrator needs exclusive access.
        (False, {**STORE, "vipu_server_certs_activated": {"changed": True}}),
    ]
    for waits, change in cases:
        check = {"ansible.builtin.assert": {"that": f"vipu_server_waits is {str(waits).lower()}"}}
        output = play(tmp_path, {**registered, **change}, [check])
        assert "failed=0" in output, (change, output)
