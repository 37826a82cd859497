# SPDX-License-Identifier: GPL-3.0-or-later
"""Bare-metal nodes in a real Ironic, whose BMCs are served by sushy-tools' emulator with TLS and a password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.task import OPENSTACK_POD_BARE_METAL
from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO

from tests import ROOT
from tests.openstack.conftest import STATE, command
from tests.openstack.neutron_pod import AccessLog, run
from tests.waiting import until
from tools.openstack.bare_metal import PROCESSES, VENV, bmc_variables, system
from tools.openstack.daemons import Daemons
from tools.openstack.site import SYSTEM_CLOUD, Secrets, Site

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


class Rack:
    """Two IPU-Machines with BMCs, as nodes of a POD that no other test uses."""

    def __init__(self, cloud: Path, bmc: dict[str, Any]) -> None:
        self.log = AccessLog(cloud / "log" / "ironic-access.log")
        self.bmc = bmc
        self.pod = f"t{uuid.uuid4().hex[:6]}"
        self.names = [f"{self.pod}-{number}" for number in (1, 2)]

    def mac(self, number: int) -> str:
        return f"02:{self.pod[1:3]}:{self.pod[3:5]}:{self.pod[5:7]}:00:{number:02x}"

    def nodes(self, **settings: Any) -> list[dict[str, Any]]:
        """Return the option of the module."""
        return [
            {
                "name": name,
                "resource_class": "ipu-machine",
                "properties": {"serial": f"s-{number}", "rack_unit": number},
                "traits": ["CUSTOM_IPU_MACHINE"],
                "bmc": {**self.bmc, "system_id": f"/redfish/v1/Systems/{system(f'ipum{number:02}')}"},
                "ports": [{"mac": self.mac(number), "physical_network": "physnet100g", "pxe_enabled": False}],
                "state": "manageable",
                **settings,
            }
            for number, name in enumerate(self.names, 1)
        ]

    def run(self, **options: Any) -> dict[str, Any]:
        return run(task=OPENSTACK_POD_BARE_METAL, **{"cloud": SYSTEM_CLOUD, "pod": self.pod, **options})

    def register(self, **settings: Any) -> None:
        result = self.run(nodes=self.nodes(**settings))
        assert result["nodes"]["created"] == self.names, result

    def power(self, number: int) -> str:
        """Return the power state at the BMC, read with Redfish."""
        address, _, port = self.bmc["address"].removeprefix("https://").partition(":")
        connection = {name: self.bmc[name] for name in ("username", "password", "ca_path")}
        found = run(task=REDFISH_INFO, host=address, port=int(port), **connection)
        (state,) = (each["power"] for each in found["systems"] if each["id"] == system(f"ipum{number:02}"))
        return str(state)


def client(*arguments: str, fails: bool = False) -> Any:
    """Run the command line of Ironic, and return its output, parsed if it is JSON."""
    environment = {**os.environ, "OS_CLOUD": SYSTEM_CLOUD, "OS_AUTH_TYPE": "password"}
    line = [VENV / "bin" / "baremetal", *arguments]
    result = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode != 0) == fails, result.stdout + result.stderr
    return json.loads(result.stdout) if "json" in arguments else result.stdout + result.stderr


def show(name: str) -> dict[str, Any]:
    found: dict[str, Any] = client("node", "show", name, "-f", "json")
    return found


@pytest.fixture(scope="module")
def ironic(cloud: Path) -> Iterator[Path]:
    """Folder of a cloud with Ironic. It is stopped afterwards, unless it was running."""
    daemons = Daemons(Site(STATE, Secrets.read(STATE / "secrets.json")))
    was_running = set(PROCESSES) <= set(daemons.running())
    result = command("up", "--bare-metal")
    assert result.returncode == 0, result.stderr
    yield cloud
    if not was_running:
        daemons.stop(PROCESSES)


@pytest.fixture
def rack(ironic: Path) -> Iterator[Rack]:
    """Rack whose nodes are removed afterwards."""
    site = Site(STATE, Secrets.read(STATE / "secrets.json"))
    bmc = yaml.safe_load(bmc_variables(site).read_text())["openstack_bmc"]
    created = Rack(ironic, bmc)
    yield created
    removed = created.run(state="absent")
    assert not removed.get("failed"), removed


def test_nodes_are_registered_once_and_removed(rack: Rack) -> None:
    with rack.log.no_writes():
        predicted = rack.run(check=True, diff=True, nodes=rack.nodes())
    assert predicted["nodes"]["created"] == rack.names
    created = rack.run(diff=True, nodes=rack.nodes())
    assert created["diff"] == predicted["diff"], created
    assert rack.bmc["password"] not in json.dumps(created)
    for number, name in enumerate(rack.names, 1):
        found = show(name)
        assert (found["provision_state"], found["power_state"], found["driver"]) == (
            "manageable",
            "power on",
            "redfish",
        )
        assert (found["extra"], found["properties"]["serial"]) == ({"openipu.pod": rack.pod}, f"s-{number}")
        assert found["uuid"] == created["details"][name]["id"]
        (port,) = client("port", "list", "--node", name, "--long", "-f", "json")
        assert (port["address"], port["physical_network"]) == (rack.mac(number), "physnet100g")
    for check in (False, True):
        with rack.log.no_writes():
            assert not rack.run(check=check, nodes=rack.nodes())["changed"]
    foreign = f"{rack.pod}-foreign"
    client("node", "create", "--driver", "redfish", "--name", foreign)
    try:
        assert rack.run(nodes=rack.nodes()[:1], prune="yes")["nodes"]["removed"] == rack.names[1:]
        assert rack.run(state="absent")["nodes"]["removed"] == rack.names[:1]
        with rack.log.no_writes():
            assert not rack.run(state="absent")["changed"]
            rejected = rack.run(nodes=[{"name": foreign}])
        assert rejected["msg"].startswith(f"Cannot manage node '{foreign}': no task of this collection created it.")
        names = [found["name"] for found in client("node", "list", "-f", "json")]
        assert [name for name in names if name and name.startswith(rack.pod)] == [foreign]
    finally:
        client("node", "delete", foreign)


def test_ironic_switches_the_power_unless_a_node_is_protected(rack: Rack) -> None:
    rack.register()
    name = rack.names[0]
    assert rack.power(1) == "On"
    client("node", "power", "off", name)
    until(lambda: rack.power(1) == "Off", 60)
    until(lambda: show(name)["power_state"] == "power off", 60)
    # The task shows the power state and does not change it.
    with rack.log.no_writes():
        result = rack.run(nodes=rack.nodes())
    assert not result["changed"]
    assert result["details"][name]["power_state"] == "power off"
    client("node", "power", "on", name)
    until(lambda: rack.power(1) == "On", 60)
    until(lambda: show(name)["power_state"] == "power on", 60)
    protected = rack.nodes(disable_power_off=True)
    assert rack.run(nodes=protected)["nodes"]["updated"] == rack.names
    assert "Failed to set node power state to power off" in client("node", "power", "off", name, fails=True)
    assert rack.power(1) == "On"
    assert not rack.run(nodes=protected)["changed"]


def test_drift_is_repaired(rack: Rack) -> None:
    rack.register(automated_clean=False)
    nodes = rack.nodes(automated_clean=False)
    first, second = rack.names
    client("node", "set", first, "--resource-class", "other", "--property", "serial=x", "--property", "note=kept")
    client("node", "remove", "trait", first, "CUSTOM_IPU_MACHINE")
    client("node", "add", "trait", first, "CUSTOM_OTHER")
    (port,) = client("port", "list", "--node", second, "-f", "json")
    client("port", "set", port["uuid"], "--physical-network", "physnet1g")
    client("node", "provide", second, "--wait", "120")  # Ironic rejects changes of its ports now
    with rack.log.no_writes():
        predicted = rack.run(check=True, diff=True, nodes=nodes)
    repaired = rack.run(diff=True, nodes=nodes)
    assert repaired["diff"] == predicted["diff"], repaired
    assert repaired["nodes"]["updated"] == rack.names
    assert repaired["ports"]["updated"] == [rack.mac(2)]
    found = show(first)
    assert (found["resource_class"], found["traits"]) == ("ipu-machine", ["CUSTOM_IPU_MACHINE"])
    assert (found["properties"]["serial"], found["properties"]["note"]) == ("s-1", "kept")
    assert show(second)["provision_state"] == "manageable"
    with rack.log.no_writes():
        assert not rack.run(nodes=nodes)["changed"]
    # Exchanged RNICs.
    nodes[0]["ports"], nodes[1]["ports"] = nodes[1]["ports"], nodes[0]["ports"]
    assert sorted(rack.run(nodes=nodes)["ports"]["recreated"]) == [rack.mac(1), rack.mac(2)]
    (port,) = client("port", "list", "--node", first, "-f", "json")
    assert port["address"] == rack.mac(2)
    assert rack.run(nodes=[{**node, "state": "available"} for node in nodes])["nodes"]["updated"] == rack.names
    assert show(first)["provision_state"] == "available"


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"password": "wrong"}, "the BMC rejects user name or password. Correct username and password in bmc."),
        ({"address": "https://127.6.0.1:9"}, "it does not respond. Check its power and network, and address in bmc."),
        ({"ca_path": None}, "its certificate is not trusted. Set ca_path in bmc to its CA on the conductors."),
    ],
)
def test_an_unusable_bmc_has_one_message(rack: Rack, settings: dict[str, Any], cause: str) -> None:
    node = rack.nodes()[0]
    failed = rack.run(nodes=[{**node, "bmc": {**node["bmc"], **settings}}])
    address = settings.get("address", rack.bmc["address"])
    assert failed["msg"] == (
        f"Cannot create node '{node['name']}': Ironic cannot use its BMC at {address}: {cause} Then run the task again."
    )
    assert show(node["name"])["provision_state"] == "enroll"
    # A corrected run continues.
    assert rack.run(nodes=[node])["nodes"]["updated"] == [node["name"]]
    assert show(node["name"])["provision_state"] == "manageable"


def awx_connection() -> dict[str, Any]:
    """Return the connection as the credential of AWX provides it."""
    settings = yaml.safe_load((STATE / "clouds.yaml").read_text())["clouds"][SYSTEM_CLOUD]
    auth = {name: settings["auth"][name] for name in ("auth_url", "username", "password")}
    return {"auth": {**auth, "user_domain_name": "Default", "system_scope": "all"}}


@pytest.mark.parametrize("awx", [False, True])
def test_the_playbook_registers_the_devices_of_a_pod(rack: Rack, tmp_path: Path, awx: bool) -> None:
    """With the variables of an inventory and the fast path, or with those of the credentials of AWX and modules.

    A Poplar server becomes available for deployments. IPU-Machines never do.
    """
    server, server_mac = f"{rack.pod}-server", rack.mac(3)
    switches = [
        {"name": "tor1", "kind": "data", "mac": "44:4c:a8:00:00:01"},
        {"name": "mgmt1", "kind": "management", "managed": False},
    ]
    idrac = {"idrac": "10.3.1.201"}
    servers = [{"name": server, "bare_metal": True, "addresses": idrac, "macs": {"data": server_mac}}]
    pod = {
        "plugin": "openipu.pod.pod",
        "name": rack.pod,
        "controller": {"host": "127.0.0.1"},
        "racks": [{"name": "rack1", "number": 1, "switches": switches, "servers": servers}],
        "openstack": {},
    }
    (tmp_path / "pod.yml").write_text(yaml.safe_dump(pod))
    rows = [f"{name},{n},02:00:00:00:01:0{n},02:00:00:00:02:0{n},{rack.mac(n)}" for n, name in enumerate(rack.names, 1)]
    (tmp_path / "machines.csv").write_text("name,unit,bmc_mac,gw_mac,rnic_mac\n" + "\n".join(rows) + "\n")
    systems = {node["name"]: node["bmc"]["system_id"] for node in rack.nodes()}
    systems[server] = f"/redfish/v1/Systems/{system('server1')}"
    # The devices of the emulator share one BMC, so it has several systems.
    bmc = {**rack.bmc, "system_id": f"{{{{ {systems!r}[pod_device] }}}}"}
    variables: dict[str, Any] = {"openstack_connection": {"cloud": SYSTEM_CLOUD}}
    if awx:
        credential = {name: rack.bmc[name] for name in ("username", "password", "ca_path")}
        variables = {"openstack_machine_bmc": credential, "openstack_server_bmc": credential}
        variables |= {"openstack_connection": awx_connection()}
        variables |= {"openstack_survey_power_off_machines": "", "openstack_survey_server_state": "inventory"}
        bmc.update(username="other", password="{{ vault_password }}")  # the credential replaces both
    (tmp_path / "group_vars").mkdir()
    of_groups = {"machines": {}, "poplar_servers": {"openstack_server_state": "available"}}
    for group, settings in of_groups.items():
        (tmp_path / "group_vars" / f"{group}.yml").write_text(yaml.safe_dump({"openstack_bmc": bmc, **settings}))
    variables["openipu_fast_path"] = not awx

    def play(*options: str, fails: bool = False, **more: Any) -> str:
        program = Path(sys.executable).with_name("ansible-playbook")
        playbook = ROOT / "playbooks/openstack_bare_metal.yml"
        line = [program, "-i", tmp_path / "pod.yml", playbook, "-e", json.dumps({**variables, **more}), *options]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        if awx:
            environment = {name: value for name, value in environment.items() if not name.startswith("OS_")}
        result = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        assert (result.returncode != 0) == fails, result.stdout + result.stderr
        assert rack.bmc["password"] not in result.stdout + result.stderr
        return result.stdout

    with rack.log.no_writes():
        assert "changed=1" in play("--check")
    assert "changed=1" in play()
    with rack.log.no_writes():
        assert "changed=0" in play()
        assert "changed=0" in play("--check")
    assert show(rack.names[0])["disable_power_off"] is True
    nodes = {name: show(name) for name in systems}
    assert {name: node["driver_info"]["redfish_system_id"] for name, node in nodes.items()} == systems
    states = {name: (node["provision_state"], node["resource_class"]) for name, node in nodes.items()}
    machine = ("manageable", "ipu-machine")
    assert states == {**dict.fromkeys(rack.names, machine), server: ("available", "poplar-server")}
    assert nodes[server]["disable_power_off"] is False
    for name, mac, number in ((rack.names[0], rack.mac(1), 9), (server, server_mac, 25)):
        ports = client("port", "list", "--node", name, "--long", "-f", "json")
        links = {port["address"]: port["local_link_connection"] for port in ports}
        port_id = f"Ethernet{number}/1"
        assert links[mac] == {"switch_id": "44:4c:a8:00:00:01", "port_id": port_id, "switch_info": "tor1"}
    removal = {"openstack_node_state": "absent"}
    assert "changed=1" in play("--limit", rack.names[0], **removal)
    assert [node for node in client("node", "list", "-f", "json") if node["name"] == rack.names[0]] == []
    assert show(rack.names[1])["provision_state"] == "manageable"
    assert "changed=0" in play("--limit", rack.names[0], **removal)
    assert "changed=1" in play(**removal)


def test_members_of_the_port_group_of_a_bond_stay(rack: Rack) -> None:
    rack.register()
    name, second = rack.names[0], rack.mac(9)
    node = show(name)["uuid"]
    (first,) = client("port", "list", "--node", name, "-f", "json")
    bond = ("--name", f"{rack.pod}-data", "--address", rack.mac(1), "--mode", "802.3ad", "--unsupport-standalone-ports")
    group = client("port", "group", "create", "--node", node, *bond, "-f", "json")["uuid"]
    client("port", "set", first["uuid"], "--pxe-disabled", "--port-group", group)
    member = ("--port-group", group, "--pxe-enabled", "false", "--physical-network", "physnet100g")
    client("port", "create", second, "--node", node, *member)
    other = rack.mac(8)
    client("port", "create", other, "--node", node)
    assert rack.run(nodes=rack.nodes())["ports"]["removed"] == [other]
    with rack.log.no_writes():
        unchanged = rack.run(nodes=rack.nodes())
    assert not unchanged["changed"]
    assert unchanged["kept_ports"] == [{"mac": second, "node": name, "group": group}]
    assert "warnings" not in unchanged
    ports = client("port", "list", "--node", name, "--long", "-f", "json")
    found = {port["address"]: port["portgroup_uuid"] for port in ports}
    assert found == {rack.mac(1): group, second: group}
    # An exchanged RNIC: the site removes the old members and adds the new port, as in the warning.
    nodes = rack.nodes()
    nodes[0]["ports"][0]["mac"] = rack.mac(7)
    exchanged = rack.run(nodes=nodes)
    assert exchanged["ports"]["created"] == [rack.mac(7)]
    assert [each["mac"] for each in exchanged["kept_ports"]] == [rack.mac(1), second]
    assert len(exchanged["warnings"]) == 2
    for port in ports:
        client("port", "delete", port["uuid"])
    client("port", "set", exchanged["ids"]["ports"][rack.mac(7)], "--pxe-disabled", "--port-group", group)
    with rack.log.no_writes():
        repaired = rack.run(nodes=nodes)
    assert not repaired["changed"]
    assert "warnings" not in repaired


def test_ports_of_an_available_node_change_in_maintenance(rack: Rack) -> None:
    nodes = rack.nodes(state="available", automated_clean=False)
    rack.register(state="available", automated_clean=False)
    for node in nodes:
        node["ports"] = [{**node["ports"][0], "physical_network": "physnet1g", "pxe_enabled": True}]
    with rack.log.no_writes():
        assert rack.run(check=True, nodes=nodes)["ports"]["updated"] == [rack.mac(1), rack.mac(2)]
    assert rack.run(nodes=nodes)["ports"]["updated"] == [rack.mac(1), rack.mac(2)]
    with rack.log.no_writes():
        assert not rack.run(nodes=nodes)["changed"]
    for name in rack.names:
        found = show(name)
        assert (found["provision_state"], found["maintenance"]) == ("available", False)


def test_verification_returns_with_its_default(rack: Rack) -> None:
    without = {name: value for name, value in rack.bmc.items() if name != "ca_path"}
    node = {**rack.nodes()[0], "bmc": {**rack.nodes()[0]["bmc"], "validate_certs": False}}
    node["bmc"].pop("ca_path")
    assert rack.run(nodes=[node])["nodes"]["created"] == [node["name"]]
    assert show(node["name"])["driver_info"]["redfish_verify_ca"] is False
    node["bmc"] = {**without, "system_id": node["bmc"]["system_id"]}
    assert rack.run(nodes=[node])["nodes"]["updated"] == [node["name"]]
    assert show(node["name"])["driver_info"]["redfish_verify_ca"] is True
    with rack.log.no_writes():
        assert not rack.run(nodes=[node])["changed"]
