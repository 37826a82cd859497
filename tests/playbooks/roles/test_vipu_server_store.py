# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that the role vipu_server writes for several controllers on etcd, and for one controller without it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/vipu_server"
TEMPLATES = ("vipu-server.env.j2", "vipu-server.service.j2", "keepalived.conf.j2")
STORE = {
    "vipu_server_store": "etcd://10.1.1.11,10.1.1.12",
    "vipu_server_store_tls": {"ca": "ca.crt", "certificate": "client.crt", "key": "client.key"},
    "vipu_server_store_user": "vipu",
    "vipu_server_store_password_file": "password",
    "vipu_server_host": "0.0.0.0",
    "vipu_server_virtual_address": "10.1.1.10/24",
    "vipu_server_virtual_interface": "eth1",
    "vipu_server_controllers": ["c1", "c2"],
}
HOSTS: dict[str, dict[str, Any]] = {f"c{number}": {"vipu_server_advertise": f"10.1.1.1{number}"} for number in (1, 2)}


def play(
    folder: Path,
    variables: dict[str, Any],
    tasks: list[dict[str, Any]],
    hosts: dict[str, dict[str, Any]] = HOSTS,
    play_variables: dict[str, Any] | None = None,
) -> str:
    """Run tasks for the controllers c1 and c2 with the variables of the role. Return the output.

    ``hosts`` are the variables of the inventory by host.
    """
    content: dict[str, Any] = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars": play_variables or {},
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
        "tasks": tasks,
    }
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (folder / "play.json").write_text(json.dumps([content]))
    values = {"ansible_python_interpreter": sys.executable, "ansible_managed": "test", **variables}
    done = run("ansible-playbook", "-i", folder / "hosts.json", "-e", json.dumps(values), folder / "play.json")
    return done.stdout + done.stderr


def rendered(folder: Path, variables: dict[str, Any], hosts: dict[str, dict[str, Any]] = HOSTS) -> dict[str, str]:
    """Return the files of controller c1 by name of the template. ``hosts`` are those of ``play``."""
    tasks = [
        {
            "ansible.builtin.template": {
                "src": str(ROLE / "templates" / name),
                "dest": f"{folder}/{{{{ inventory_hostname }}}}-{name}",
                "mode": "0600",
            }
        }
        for name in TEMPLATES
        if name != "keepalived.conf.j2" or "vipu_server_store" in variables
    ]
    output = play(folder, variables, tasks, hosts)
    assert "failed=0" in output, output
    return {path.name.removeprefix("c1-"): path.read_text() for path in folder.glob("c1-*")}


def test_controllers_have_the_store_and_each_other(tmp_path: Path) -> None:
    files = rendered(tmp_path, STORE)
    settings = dict(re.findall(r'(?m)^(\w+)="(.*)"$', files["vipu-server.env.j2"]))
    assert {name: value for name, value in settings.items() if "STORE" in name} == {
        "VIPU_SERVER_STORE": "etcd://10.1.1.11,10.1.1.12",
        "VIPU_SERVER_STORE_TLS_CA": "/var/lib/vipu/store-tls/ca.crt",
        "VIPU_SERVER_STORE_TLS_CERTIFICATE": "/var/lib/vipu/store-tls/client.crt",
        "VIPU_SERVER_STORE_TLS_KEY": "/var/lib/vipu/store-tls/client.key",
        "VIPU_SERVER_STORE_USER": "vipu",
        "VIPU_SERVER_STORE_PASSWORD_FILE": "/var/lib/vipu/store-tls/password",
    }
    assert settings["VIPU_SERVER_ADVERTISE"] == "10.1.1.11"
    # Users call each controller, and the virtual address.
    assert set(settings["VIPU_SERVER_TLS_SAN"].split()) == {"10.1.1.10", "10.1.1.11", "10.1.1.12"}
    # A controller that cannot reach etcd ends. systemd must start it again at any time.
    assert "StartLimitIntervalSec=0" in files["vipu-server.service.j2"]
    assert "Restart=on-failure" in files["vipu-server.service.j2"]
    address = files["keepalived.conf.j2"]
    assert re.findall(r"unicast_peer \{\s+(.*?)\s+\}", address, re.DOTALL) == ["10.1.1.12"]
    # A flood of the endpoint of users must not remove the address.
    assert "health --host 10.1.1.11 --port 8092 --secure --certs /var/lib/vipu/certs" in address


@pytest.mark.parametrize(
    ("change", "checked"),
    [
        ({"vipu_server_admin_endpoint": False}, "--host 10.1.1.11 --port 8090"),
        ({"vipu_server_admin_host": "10.9.1.11"}, "--host 10.9.1.11 --port 8090"),
        ({"vipu_server_admin_port": 9000}, "--host 10.1.1.11 --port 9000"),
    ],
    ids=str,
)
def test_the_virtual_address_depends_on_the_endpoint_of_administrators(
    tmp_path: Path, change: dict[str, Any], checked: str
) -> None:
    assert f"health {checked} --secure" in rendered(tmp_path, {**STORE, **change})["keepalived.conf.j2"]


def test_the_certificate_has_the_addresses_for_users_and_for_administrators(tmp_path: Path) -> None:
    """A separate address for administrators does not replace those for users, of this host and of the others."""
    hosts = {name: {**own, "vipu_server_admin_host": f"10.9.1.{name[1:]}"} for name, own in HOSTS.items()}
    settings = rendered(tmp_path, STORE, hosts)["vipu-server.env.j2"]
    (names,) = re.findall(r'(?m)^VIPU_SERVER_TLS_SAN="(.*)"$', settings)
    assert set(names.split()) == {"10.1.1.10", "10.1.1.11", "10.1.1.12", "10.9.1.1", "10.9.1.2"}


def test_a_controller_with_a_database_has_no_settings_of_etcd(tmp_path: Path) -> None:
    files = rendered(tmp_path, {"vipu_server_host": "10.1.1.11"})
    assert not re.search("STORE|ADVERTISE|LEASE", files["vipu-server.env.j2"])
    assert "StartLimitIntervalSec" not in files["vipu-server.service.j2"]


def validated(folder: Path, change: dict[str, Any], **options: Any) -> str:
    """Return the output of the checks of changed settings; None omits one."""
    variables = {name: value for name, value in {**STORE, **change}.items() if value is not None}
    variables["vipu_server_tls_names"] = ["controllers"]
    return play(folder, variables, [{"ansible.builtin.import_tasks": str(ROLE / "tasks/validate.yml")}], **options)


@pytest.mark.parametrize(
    "change",
    [
        {"vipu_server_advertise": "10.1.1.11"},
        {"vipu_server_advertise": "{{ vipu_api_host }}", "vipu_api_host": "10.1.1.9"},
    ],
    ids=str,
)
def test_controllers_with_one_address_are_rejected_before_the_first_write(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    output = validated(tmp_path, change)
    address = change.get("vipu_api_host", "10.1.1.11")
    assert f"Cannot configure c1, c2: they have the addresses {address}:8090, {address}:8090" in " ".join(
        output.split()
    )


PLAY = {
    "vipu_server_advertise": "{{ addresses[inventory_hostname] }}",
    "addresses": {f"c{n}": f"10.1.1.1{n}" for n in (1, 2, 3)},
}


@pytest.mark.parametrize(
    ("hosts", "play_variables"),
    [
        ({"c1": {}, "c2": {}, "c3": {}}, PLAY),
        ({"c1": {"ansible_host": "10.1.1.1"}, "c2": {"ansible_host": "10.1.1.1"}}, PLAY),  # NAT
        (
            {"c1": {"vipu_api_port": 8090}, "c2": {"vipu_api_port": 8190}},
            {"vipu_server_advertise": "10.1.1.11"},
        ),
        (
            {f"c{n}": {"vipu_server_advertise": "10.1.1.11", "vipu_api_port": 8190 + n} for n in (1, 2)},
            {},
        ),
        (
            {f"c{n}": {"vipu_server_advertise": "10.1.1.11", "vipu_server_port": 8190 + n} for n in (1, 2)},
            {},
        ),
    ],
    ids=["play", "play-one-ansible-host", "play-ports", "api-ports", "ports"],
)
def test_own_addresses_from_any_variables_are_accepted(
    tmp_path: Path, hosts: dict[str, dict[str, Any]], play_variables: dict[str, Any]
) -> None:
    change = {"vipu_server_virtual_address": None, "vipu_server_controllers": list(hosts)}
    output = validated(tmp_path, change, hosts=hosts, play_variables=play_variables)
    assert "failed=0" in output and "Cannot" not in output, output


@pytest.mark.parametrize("change", [{}, {"vipu_server_restore": "backup.tar.gz"}], ids=str)
def test_settings_of_two_controllers_are_accepted(tmp_path: Path, change: dict[str, Any]) -> None:
    output = validated(tmp_path, change)
    assert "failed=0" in output
    assert "Cannot" not in output


@pytest.mark.parametrize(
    "change",
    [
        {"vipu_server_store": "https://10.1.1.11"},
        {"vipu_server_controllers": ["other"]},
        {"vipu_server_advertise": "0.0.0.0"},
        {"vipu_server_store_password_file": None},
        {"vipu_server_store_tls": None},
        {"vipu_server_virtual_interface": None},
        {"vipu_server_virtual_address": "10.1.1.10"},
        {"vipu_server_virtual_address": "10.1.1.10/24", "vipu_server_virtual_router_id": 256},
        {"vipu_server_advertise": "127.0.0.1"},
        {"vipu_server_store_tls": {"ca": "ca.crt", "certificate": "client.crt"}},
        {"vipu_server_host": "10.1.1.11"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_rejected(tmp_path: Path, change: dict[str, Any]) -> None:
    output = validated(tmp_path, change)
    assert re.search(r"Cannot use vipu_server_(store|virtual_address) on c1", output), output
