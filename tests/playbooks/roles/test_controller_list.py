# SPDX-License-Identifier: GPL-3.0-or-later
"""Listen addresses and certificates of the role vipu_server when `pod.yml` lists several hosts of the controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.roles.test_vipu_server_store import ROLE, play

LISTED = "10.3.1.101,10.4.1.102,c3"
# Each host has one of the listed addresses: that of Ansible, another one of pod.yml, or its name.
HOSTS: dict[str, dict[str, Any]] = {
    "c1": {"ansible_host": "10.3.1.101"},
    "c2": {"ansible_host": "10.3.1.102", "pod_addresses": {"p1": "10.3.1.102", "p2": "10.4.1.102"}},
    "c3": {"ansible_host": "10.3.1.103"},
}
STORE = {"vipu_server_store": "etcd://10.1.1.11"}
VALIDATE = {"ansible.builtin.import_tasks": str(ROLE / "tasks/validate.yml")}


def listed(hosts: dict[str, dict[str, Any]], addresses: str = LISTED) -> dict[str, dict[str, Any]]:
    """Return the variables of hosts, as the inventory of a POD has them."""
    return {host: {"vipu_api_host": addresses, **variables} for host, variables in hosts.items()}


def settings(folder: Path, hosts: dict[str, dict[str, Any]], variables: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the settings of the service on each host, after the validation of the variables."""
    copy = {"dest": f"{folder}/{{{{ inventory_hostname }}}}", "content": "{{ vipu_server_settings | to_json }}"}
    output = play(folder, variables, [VALIDATE, {"ansible.builtin.copy": copy}], hosts)
    assert "failed=0" in output, output
    return {host: json.loads((folder / host).read_text()) for host in hosts}


@pytest.mark.parametrize("store", [STORE, {}], ids=["etcd", "database"])
def test_each_controller_listens_on_its_own_address(tmp_path: Path, store: dict[str, Any]) -> None:
    found = settings(tmp_path, listed(HOSTS), store)
    for name in ("VIPU_SERVER_HOST", "VIPU_SERVER_METRICS_HOST", "VIPU_SERVER_ADMIN_HOST"):
        assert {host: each[name] for host, each in found.items()} == {
            "c1": "10.3.1.101",
            "c2": "10.4.1.102",
            "c3": "c3",
        }
    # Clients verify each host of the list.
    for each in found.values():
        assert set(each["VIPU_SERVER_TLS_SAN"].split()) == {"10.3.1.101", "10.4.1.102", "c3"}


def test_credentials_have_the_listen_address_of_each_controller(tmp_path: Path) -> None:
    copy = {"dest": f"{tmp_path}/hosts", "content": "{{ vipu_server_admin_hosts | to_json }}"}
    output = play(tmp_path, STORE, [{"ansible.builtin.copy": copy, "run_once": True}], listed(HOSTS))
    assert "failed=0" in output, output
    assert json.loads((tmp_path / "hosts").read_text()) == ["10.3.1.101", "10.4.1.102", "c3"]


def test_a_setting_takes_precedence_over_the_list(tmp_path: Path) -> None:
    found = settings(tmp_path, listed({"c1": HOSTS["c1"]}), {"vipu_server_host": "10.9.1.1"})
    assert found["c1"]["VIPU_SERVER_HOST"] == "10.9.1.1"
    assert set(found["c1"]["VIPU_SERVER_TLS_SAN"].split()) == {"10.9.1.1", "10.3.1.101", "10.4.1.102", "c3"}


def test_one_address_of_the_pod_is_used_on_each_host(tmp_path: Path) -> None:
    """For example, that of another interface, which the inventory does not have."""
    found = settings(tmp_path, listed({"c1": HOSTS["c1"]}, "10.8.1.1"), {})
    assert (found["c1"]["VIPU_SERVER_HOST"], found["c1"]["VIPU_SERVER_TLS_SAN"]) == ("10.8.1.1", "10.8.1.1")


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        ({}, f"none of {LISTED.replace(',', ', ')} is its name or address"),
        ({"vipu_server_host": "10.3.1.104,10.3.1.105"}, "'10.3.1.104,10.3.1.105' is a list"),
    ],
    ids=["list", "setting"],
)
def test_a_list_is_no_listen_address(tmp_path: Path, variables: dict[str, Any], cause: str) -> None:
    hosts = listed({"c4": {"ansible_host": "10.3.1.104"}})
    output = " ".join(play(tmp_path, variables, [VALIDATE], hosts).split())
    assert f"Cannot choose the listen address of vipu-server on c4: {cause}. Set vipu_server_host" in output, output
