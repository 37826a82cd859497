# SPDX-License-Identifier: GPL-3.0-or-later
"""Several hosts of the controller in roles and orders: all for our tools, the first one for those of others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.playbooks.roles.test_certificate_variables import evaluate

ONE, SEVERAL = "10.3.1.101", "10.3.1.101,10.3.1.102,vipu3"


def test_tools_of_the_vendor_get_the_first_host(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "localhost"),
        ({"vipu_api_host": ONE}, ONE),
        ({"vipu_api_host": SEVERAL}, SEVERAL),
        ({"vipu_api_host": SEVERAL, "vipu_client_install": False}, "10.3.1.101"),
        ({"vipu_api_host": ONE, "vipu_client_install": False}, ONE),
    ]
    found = evaluate(tmp_path, "vipu_client", "{{ vipu_client_api_host }}", *(variables for variables, _ in cases))
    assert found == [expected for _, expected in cases]


def test_a_controller_vm_gets_the_first_host(tmp_path: Path) -> None:
    cases: list[dict[str, object]] = [
        {"vpod_gw_controllers": [], "vipu_connection": {"api_host": host}} for host in (ONE, SEVERAL)
    ]
    cases.append({"vpod_gw_controllers": ["10.2.0.10", "10.2.0.11"], "vipu_connection": {"api_host": SEVERAL}})
    found = evaluate(tmp_path, "vpod", "{{ vpod_controller_upstream }}", *cases)
    assert found == ["10.3.1.101", "10.3.1.101", "10.2.0.10"]


@pytest.mark.parametrize(
    ("hosts", "transport", "expected"),
    [(ONE, "cli", ONE), (SEVERAL, "cli", "10.3.1.101"), (SEVERAL, "grpc", SEVERAL)],
)
def test_the_command_line_of_the_vendor_gets_the_first_host(
    tmp_path: Path, hosts: str, transport: str, expected: str
) -> None:
    connection = {"api_host": hosts, "transport": transport}
    assert (
        shown(
            tmp_path,
            "{{ virm_agent_cli_settings['api-host'] }}",
            [ROOT / "roles/virm_agent/defaults/main.yml", ROOT / "roles/virm_agent/vars/main/machines.yml"],
            virm_agent_connection=connection,
        )
        == expected
    )


@pytest.mark.parametrize(
    ("hosts", "expected"), [(ONE, "10.3.1.101:8091"), (SEVERAL, "10.3.1.101:8091,10.3.1.102:8091,vipu3:8091")]
)
def test_the_result_of_an_order_has_all_addresses(tmp_path: Path, hosts: str, expected: str) -> None:
    order = {"order_team": "t", "order_name": "o", "order_ipus": 4, "order_user": "u", "user_key_host": "h"}
    found = shown(
        tmp_path,
        "{{ order_summary.controller }}",
        [ROOT / "playbooks/vars" / name for name in ("controller.yml", "ipu_order.yml")],
        vipu_api_host=hosts,
        vipu_api_port=8091,
        **order,
    )
    assert found == expected


def shown(folder: Path, expression: str, files: list[Path], **variables: object) -> str:
    """Return the text of an expression with the variables of files."""
    output, book = folder / "value", folder / "play.yml"
    task = {"ansible.builtin.copy": {"dest": str(output), "content": expression, "mode": "0600"}}
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable, **variables},
        "vars_files": [str(file) for file in files],
        "tasks": [{**task, "vars": variables}],
    }
    book.write_text(yaml.safe_dump([play]))
    program = Path(sys.executable).with_name("ansible-playbook")
    run = subprocess.run([program, "-i", "localhost,", book], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    return output.read_text()
