# SPDX-License-Identifier: GPL-3.0-or-later
"""The control instance as a VM: cloud-init of Debian installs its services, in the networks of a vPOD."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.control_instance.controller import (
    check_partition_of_tenant,
    create_allocations,
    start_agent,
    start_controller,
)
from tests.control_instance.guests import BOOT_SECONDS, NEEDS_QEMU, USER_DATA, Guest, create_key
from tests.control_instance.lan import CONTROL, MACHINES, Host, Lan
from tests.control_instance.ordering import CONTROLLER_VM, order
from tests.control_instance.rendering import ADDRESS, BMC_ADDRESS, CONTROLLER, GW_ADDRESS, SETTINGS
from tests.docs.blocks import Block, commands
from tests.docs.shell import Shell, run_block
from tests.integration.bringup.own_twin import BIN
from tests.waiting import until

POPLAR = "v1-poplar.pod64.example"
TENANT, ROUTER = "10.4.0.152", "10.4.0.254"  # the Poplar VM, and the router of its control network
PAGE = ROOT / "docs/how-to/control-instance.md"
PRIVATE = ("alice.crt", "alice.key", "alice.vipu-cli.hcl")  # files of the user of the tenant
V_IPU, METRICS, NODE_EXPORTER, SSH, SYSLOG = 8090, 9090, 9100, 22, 514

pytestmark = NEEDS_QEMU


@dataclass(frozen=True)
class Vpod:
    """The VM and the hosts around it."""

    guest: Guest
    tenant: Host  # the Poplar VM
    router: Host  # of the control network, with a host behind it
    rack: Host  # BMC and IPU-Gateway of ipum01
    foreign: Host  # IPU-Gateway of the machine of another tenant
    site: Host  # server1: controller and management server

    @property
    def lan(self) -> Lan:
        return self.guest.lan

    @property
    def folder(self) -> Path:
        return self.lan.folder

    def ssh(self, command: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        return self.guest.ssh(command, seconds)

    def output(self, command: str) -> str:
        return self.guest.output(command)


def start_metrics(lan: Lan, host: Host, address: str, port: int, name: str) -> None:
    """Serve metrics in the format of Prometheus: those of a controller without agents."""
    metrics = ("--metrics-host", address, "--metrics-port", str(port), "--metrics-name", name, "--host", "127.0.0.1")
    database = lan.folder / f"metrics-{name}.db"
    host.run(*map(str, (BIN / "vipu-server", "--init", "--database", database)))
    process = lan.start(host, f"metrics-{name}", BIN / "vipu-server", *metrics, "--database", database)
    lan.wait_port(process, host, address, port)


def start_names(lan: Lan, site: Host) -> None:
    """Start the DNS server of server1, which knows the devices of the POD and is authoritative for its domain."""
    options = ("--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--no-resolv", "--no-hosts")
    records = ("--local=/pod64.example/", "--host-record=ipum01-gw.pod64.example,10.1.2.1")
    lan.start(site, "names", "dnsmasq", *options, "--pid-file=", f"--listen-address={CONTROLLER}", *records)


def start_dhcp(lan: Lan, guest: Guest) -> None:
    """Start the DHCP and DNS servers, as Neutron runs them for both networks."""
    agent = lan.host(control=["10.4.0.2/24"], machines=["10.1.1.250/24", "10.1.2.250/24"])
    lan.start_dhcp(
        agent,
        dict(zip((CONTROL, MACHINES), guest.vm.ports, strict=True)),
        *(f"--dhcp-option=tag:{CONTROL},3,{ROUTER}", f"--dhcp-option=tag:{MACHINES},3"),
        f"--dhcp-option=tag:{MACHINES},6,{CONTROLLER}",  # the DNS server of these subnets in pod.yml
        f"--host-record={POPLAR},{TENANT}",
    )


@pytest.fixture(scope="module")
def vpod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vpod]:
    """A vPOD whose VM has completed its first boot."""
    folder = tmp_path_factory.mktemp("vpod")
    vm = order(folder, vpod_controller_public_keys=[create_key(folder)]).vms[CONTROLLER_VM]
    lan = Lan(folder)
    try:
        rack, tenant = lan.host(machines=["10.1.1.1/24", "10.1.2.1/24"]), lan.host(control=[f"{TENANT}/24"])
        created = Vpod(
            guest=Guest(lan, vm, tenant, ADDRESS),
            tenant=tenant,
            router=lan.host(control=[f"{ROUTER}/24", "10.1.5.20/32"]),
            rack=rack,
            foreign=lan.host(machines=["10.1.1.9/24", "10.1.2.9/24"]),
            site=lan.host(machines=[f"{CONTROLLER}/24"]),
        )
        start_dhcp(lan, created.guest)
        start_names(lan, created.site)
        start_controller(lan, created.site)
        start_agent(lan, rack, created.site)
        start_metrics(lan, rack, "10.1.2.1", 2112, "ipum01")
        start_metrics(lan, tenant, TENANT, NODE_EXPORTER, POPLAR)
        created.guest.boot((CONTROL, MACHINES), dns_servers=[CONTROLLER])
        yield created
    finally:
        lan.close()


def test_the_vm_boots_with_the_user_data_of_the_order(vpod: Vpod) -> None:
    assert vpod.output(f"sudo cat {USER_DATA}") == vpod.guest.vm.user_data


def test_cloud_init_reports_no_error(vpod: Vpod) -> None:
    assert "status: done" in vpod.output("cloud-init status --long")
    assert "Valid cloud-config" in vpod.output("sudo cloud-init schema --system 2>&1")
    failed = vpod.output("systemctl list-units --failed --no-legend --plain")
    assert failed == ""


def test_only_security_updates_are_installed(vpod: Vpod) -> None:
    output = vpod.ssh("sudo unattended-upgrade --dry-run --debug 2>&1", BOOT_SECONDS).stdout
    [allowed] = [line for line in output.splitlines() if line.startswith("Allowed origins are")]
    assert "label=Debian-Security" in allowed
    assert not re.search(r"label=Debian[,\s]", allowed)
    for timer in ("apt-daily.timer", "apt-daily-upgrade.timer"):
        states = vpod.output(f"systemctl is-enabled {timer} && systemctl is-active {timer}")
        assert states.split() == ["enabled", "active"], timer


def test_a_user_of_the_tenant_creates_and_removes_a_partition(vpod: Vpod) -> None:
    create_allocations(vpod.site, vpod.folder)
    check_partition_of_tenant(vpod.tenant, vpod.folder)


def test_the_commands_of_the_page_work(vpod: Vpod, tmp_path: Path) -> None:
    """The tenant receives the files of the user of the test before, and uses the endpoint.

    The only VM of this test receives them in place of the Poplar VM. The host with the address of the Poplar VM has
    the command lines, and gets a copy.
    """
    users, keys, authority = (tmp_path / name for name in ("vipu-users", ".ssh", ".config/openipu/server1"))
    for folder in (users, keys, authority):
        folder.mkdir(parents=True)
    shutil.copy(vpod.folder / "certs/client/ca.crt", authority)
    for name in PRIVATE:
        shutil.copy(vpod.folder / name, users)
    shutil.copy(vpod.folder / "key", keys / "id_ed25519")
    shutil.copy(vpod.folder / "key.pub", vpod.folder / "order.pub")
    config = keys / "config"
    config.write_text(
        f"Host VM\nHostName {ADDRESS}\nUser debian\n"
        f"Host *\nIdentityFile {keys}/id_ed25519\nUserKnownHostsFile {vpod.folder}/known_hosts\nLogLevel ERROR\n"
    )
    path = f"{BIN}:{os.environ['PATH']}"
    enter = vpod.tenant.command("unshare", "--mount")
    shell = Shell(vpod.folder, tmp_path, {"PATH": path}, own_network=False, enter=enter)

    def run(block: Block) -> None:
        # In a subshell, no block has the folder of another.
        text = f"(\n{block.text.replace('10.4.0.10', ADDRESS)}) < /dev/null\n"
        run_block(replace(block, text=text), shell, BOOT_SECONDS)

    pack, send, use, *verify = commands(PAGE)
    try:
        # ssh does not read the variable HOME. Its input is not that of the shell, which has the next commands.
        shell.run(f'ssh() {{ command ssh -F {config} "$@"; }}', 20)
        run(pack)
        run(send)
        shell.run("ssh VM tar -c vipu < /dev/null | tar -C ~ -x", 300)
        shell.keep_unchanged(tmp_path / "etc", "/etc")
        endpoint = f'api-host="{ADDRESS}"\napi-port="8090"'  # as vpod_create.yml writes it into the Poplar VM
        shell.run(f"mkdir -p /etc/vipu; echo '{endpoint}' > /etc/vipu/vipu-cli.hcl", 20)
        for block in (use, *verify):
            run(block)
    finally:
        shell.close()
    corrected = (tmp_path / "vipu/alice.vipu-cli.hcl").read_text()
    paths = [line.partition("=")[2].strip('"') for line in corrected.splitlines() if '"/' in line]
    assert sorted(paths) == [f"{tmp_path}/vipu/{name}" for name in ("alice.crt", "alice.key", "ca.crt")]
    received = vpod.output("cd vipu && stat -c '%a %n' alice.*")
    assert received.splitlines() == [f"600 {name}" for name in PRIVATE]


def test_services_answer_in_the_networks_of_the_table_only(vpod: Vpod) -> None:
    ports = (V_IPU, METRICS, NODE_EXPORTER, SSH, SYSLOG)

    def reached(host: Host, address: str) -> list[int]:
        return [port for port in ports if host.reaches(address, port)]

    until(
        lambda: reached(vpod.tenant, ADDRESS) == [V_IPU, METRICS, SSH], 120, lambda: str(reached(vpod.tenant, ADDRESS))
    )
    # Hosts behind the router of the control network have other addresses.
    vpod.router.run("ip", "route", "replace", "10.4.0.0/24", "dev", CONTROL, "src", "10.1.5.20")
    assert reached(vpod.router, ADDRESS) == [SSH]
    for address in (GW_ADDRESS, BMC_ADDRESS):
        assert reached(vpod.foreign, address) == [SYSLOG]
    assert reached(vpod.site, GW_ADDRESS) == [METRICS, NODE_EXPORTER, SSH, SYSLOG]
    # The VM does not forward packets, and does not serve the control network to the machines.
    vpod.foreign.run("ip", "route", "replace", "10.4.0.0/24", "via", GW_ADDRESS)
    assert reached(vpod.foreign, ADDRESS) == []
    assert not vpod.foreign.reaches(TENANT, NODE_EXPORTER)


def test_the_tenant_reaches_no_machine_over_the_vm(vpod: Vpod) -> None:
    for network in ("10.1.1.0/24", "10.1.2.0/24"):
        vpod.tenant.run("ip", "route", "replace", network, "via", ADDRESS)
    # The exporter accepts connections of its own network.
    assert vpod.site.reaches("10.1.2.1", 2112)
    assert not vpod.tenant.reaches("10.1.2.1", 2112)
    for address in (GW_ADDRESS, BMC_ADDRESS):
        for port in (V_IPU, METRICS, NODE_EXPORTER, SSH, SYSLOG):
            assert not vpod.tenant.reaches(address, port), f"{address}:{port}"


def test_the_vm_reaches_the_machines_of_the_vpod_only(vpod: Vpod) -> None:
    def connects(address: str, port: int) -> bool:
        return vpod.ssh(f"timeout 5 bash -c 'exec 3<>/dev/tcp/{address}/{port}'").returncode == 0

    start_metrics(vpod.lan, vpod.foreign, "10.1.2.9", 2112, "foreign")
    assert connects("10.1.2.1", 2112)
    assert not connects("10.1.2.9", 2112)


def test_metrics_of_the_machines_of_the_vpod(vpod: Vpod) -> None:
    def up() -> dict[str, str]:
        found = vpod.tenant.get_json(f"http://{ADDRESS}:{METRICS}/api/v1/query?query=up")["data"]["result"]
        return {series["metric"]["host"] + " " + series["metric"]["job"]: series["value"][1] for series in found}

    expected = {
        "ipum01 ipu-machine": "1",
        "ipum02 ipu-machine": "0",  # no such machine runs here
        "v1-controller node": "1",
        "v1-controller prometheus": "1",
        "v1-poplar node": "1",  # found by its name
    }
    until(lambda: up() == expected, 180, lambda: str(up()))


def test_logs_of_the_machines_of_the_vpod(vpod: Vpod) -> None:
    vpod.foreign.send(GW_ADDRESS, SYSLOG, "<13>Nov 28 00:00:00 gw test: message of another tenant")
    for address, name in ((BMC_ADDRESS, "bmc"), (GW_ADDRESS, "gw")):
        vpod.rack.send(address, SYSLOG, f"<13>Nov 28 00:00:00 ipum test: message of {name}")
    for name in ("bmc", "gw"):
        file = f"/var/log/openipu/ipum01/{name}.log"
        until(lambda: vpod.ssh(f"sudo grep -q 'message of {name}' {file}").returncode == 0, 120, file)  # noqa: B023
    assert vpod.output("sudo find /var/log/openipu -type f | sort").split() == [
        "/var/log/openipu/ipum01/bmc.log",
        "/var/log/openipu/ipum01/gw.log",
    ]


def test_services_start_again_after_a_reboot(vpod: Vpod) -> None:
    vpod.guest.reboot()
    for port in (V_IPU, METRICS, SSH):
        until(lambda: vpod.tenant.reaches(ADDRESS, port), 120, f"port {port}")  # noqa: B023
    assert not vpod.foreign.reaches(GW_ADDRESS, METRICS)
    assert vpod.foreign.reaches(BMC_ADDRESS, SYSLOG)


def test_the_role_configures_the_vm_over_ssh(vpod: Vpod) -> None:
    """The role manages the files that cloud-init wrote. A second run changes nothing."""
    hosts = {"hosts": {"v1-controller": {"ansible_host": ADDRESS, "ansible_user": "debian"}}}
    play = {"hosts": "v1-controller", "become": True, "gather_facts": False, "roles": ["openipu.pod.control_instance"]}
    site = vpod.folder / "site"  # the folder of the order has a collection with fake actions
    site.mkdir()
    inventory, playbook = site / "vm.yml", site / "play.yml"
    # The defaults are the name of the host, and a time for reconnection that an emulated processor exceeds.
    settings = {name: value for name, value in SETTINGS.items() if name != "control_instance_name"}
    settings["common_confirm_seconds"] = 600
    inventory.write_text(yaml.safe_dump({"control_instances": hosts}))
    playbook.write_text(yaml.safe_dump([{**play, "vars": settings}]))
    options = f"-o UserKnownHostsFile={vpod.folder / 'known_hosts'} -o ConnectTimeout=30"

    inventories = ("-i", str(ROOT / "inventory/pod64/pod.yml"), "-i", str(inventory))

    def run() -> str:
        return vpod.tenant.run(
            *("env", f"ANSIBLE_CONFIG={ROOT / 'ansible.cfg'}", f"HOME={vpod.folder}"),
            *(str(BIN / "ansible-playbook"), str(playbook), *inventories),
            *("--private-key", str(vpod.folder / "key"), "--ssh-common-args", options),
            seconds=BOOT_SECONDS,
        )

    first = run()
    assert "Load and confirm the firewall rules" in first
    assert re.search(r"v1-controller +: ok=\d+ +changed=0 ", run())
    for port in (V_IPU, METRICS, SSH):
        until(lambda: vpod.tenant.reaches(ADDRESS, port), 120, f"port {port}")  # noqa: B023
