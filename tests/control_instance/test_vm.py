# SPDX-License-Identifier: GPL-3.0-or-later
"""The control instance as a VM: cloud-init of Debian installs its services, in the networks of a vPOD."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.control_instance.lan import CONTROL, MACHINES, Host, Lan
from tests.control_instance.rendering import ADDRESS, BMC_ADDRESS, CONTROLLER, GW_ADDRESS, MACS, SETTINGS, render
from tests.integration.bringup.own_twin import BIN
from tests.waiting import until
from tools.guest import cloud, qemu
from tools.guest.image import ensure_image

BOOT_SECONDS = 1800  # ten times the duration on an idle machine
KEEP_ALIVE = ("ConnectTimeout=30", "ServerAliveInterval=15", "ServerAliveCountMax=4")  # the VM reboots
POPLAR = "v1-poplar.pod64.example"
TENANT, ROUTER = "10.4.0.20", "10.4.0.254"
V_IPU, METRICS, NODE_EXPORTER, SSH, SYSLOG = 8090, 9090, 9100, 22, 514

pytestmark = [
    pytest.mark.timeout(4000),
    pytest.mark.skipif(bool(cloud.missing()), reason=f"not installed: {' '.join(cloud.missing())}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@dataclass(frozen=True)
class Vpod:
    """Hosts around the VM."""

    folder: Path
    lan: Lan
    tenant: Host  # the Poplar VM
    router: Host  # of the control network, with a host behind it
    rack: Host  # BMC and IPU-Gateway of ipum01
    foreign: Host  # IPU-Gateway of the machine of another tenant
    site: Host  # server1: controller and management server

    def ssh(self, command: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command in the VM over SSH, with the key of its user data."""
        options = ("BatchMode=yes", "StrictHostKeyChecking=accept-new", *KEEP_ALIVE, "LogLevel=ERROR")
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        line = ["ssh", "-i", str(self.folder / "key"), *(f"-o{option}" for option in (*options, known))]
        line = self.tenant.command(*line, f"debian@{ADDRESS}", command)
        return subprocess.run(line, capture_output=True, text=True, timeout=seconds, check=False)

    def output(self, command: str) -> str:
        """Return the output of a command in the VM that must not fail."""
        done = self.ssh(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def start_controller(lan: Lan, site: Host) -> None:
    """Start a secure controller on server1, with the user alice."""
    certificates = lan.folder / "certs"
    server = (BIN / "vipu-server", "--secure", "--host", CONTROLLER, "--database", lan.folder / "controller.db")
    names = ("--tls-san", CONTROLLER, "--tls-san", ADDRESS)
    site.run(*map(str, (*server, "--init", "--tls-init", certificates, *names)))
    process = lan.start(site, "controller", *server, "--certs", certificates)
    lan.wait_port(process, site, CONTROLLER, V_IPU)


def start_metrics(lan: Lan, host: Host, address: str, port: int, name: str) -> None:
    """Serve metrics in the format of Prometheus: those of a controller without agents."""
    metrics = ("--metrics-host", address, "--metrics-port", str(port), "--metrics-name", name, "--host", "127.0.0.1")
    database = lan.folder / f"metrics-{name}.db"
    host.run(*map(str, (BIN / "vipu-server", "--init", "--database", database)))
    process = lan.start(host, f"metrics-{name}", BIN / "vipu-server", *metrics, "--database", database)
    lan.wait_port(process, host, address, port)


def start_dhcp(lan: Lan) -> None:
    """Start the DHCP and DNS servers, as Neutron runs them for both networks."""
    agent = lan.host(control=["10.4.0.2/24"], machines=["10.1.1.250/24", "10.1.2.250/24"])
    pools = ("set:control,10.4.0.0", "set:machines,10.1.1.0", "set:machines,10.1.2.0")
    hosts = (f"{MACS[0]},{ADDRESS}", f"{MACS[1]},{BMC_ADDRESS}", f"{MACS[1]},{GW_ADDRESS}")
    lan.start(
        agent,
        "dhcp",
        *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--no-resolv", "--no-hosts"),
        *("--pid-file=", f"--dhcp-leasefile={lan.folder}/leases", "--domain=pod64.example", "--log-dhcp"),
        *(f"--dhcp-range={pool},static,255.255.255.0" for pool in pools),
        *(f"--dhcp-host={host}" for host in hosts),
        *(f"--dhcp-option=tag:control,3,{ROUTER}", "--dhcp-option=tag:machines,3"),
        f"--host-record={POPLAR},{TENANT}",
    )


def user_data(folder: Path) -> str:
    """Return the user data: the services, and the key of an operator."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    keys = {"ssh_authorized_keys": [(folder / "key.pub").read_text().strip()]}
    return "#cloud-config\n" + yaml.safe_dump({**keys, **render(folder)})


@pytest.fixture(scope="module")
def vpod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vpod]:
    """A vPOD whose VM has completed its first boot."""
    folder = tmp_path_factory.mktemp("vpod")
    image = ensure_image(cloud.cloud_image())
    lan = Lan(folder)
    try:
        rack = lan.host(machines=["10.1.1.1/24", "10.1.2.1/24"])
        created = Vpod(
            folder=folder,
            lan=lan,
            tenant=lan.host(control=[f"{TENANT}/24"]),
            router=lan.host(control=[f"{ROUTER}/24", "10.1.5.20/32"]),
            rack=rack,
            foreign=lan.host(machines=["10.1.1.9/24", "10.1.2.9/24"]),
            site=lan.host(machines=[f"{CONTROLLER}/24"]),
        )
        start_dhcp(lan)
        start_controller(lan, created.site)
        start_metrics(lan, rack, "10.1.2.1", 2112, "ipum01")
        start_metrics(lan, created.tenant, TENANT, NODE_EXPORTER, POPLAR)
        boot(created, image)
        yield created
    finally:
        lan.close()


def boot(vpod: Vpod, image: Path) -> None:
    """Start the VM and wait until cloud-init has finished."""
    folder, console = vpod.folder, vpod.folder / "console.log"
    disk, drive = folder / "disk.qcow2", folder / "config.iso"
    cloud.create_disk(disk, image)
    metadata = {"uuid": "83679162-1378-4288-a2d4-70e13ec132aa", "name": "v1-controller", "hostname": "v1-controller"}
    (folder / "drive").mkdir()
    cloud.create_config_drive(drive, folder / "drive", metadata, MACS, user_data(folder))
    taps = dict(zip((vpod.lan.tap(CONTROL), vpod.lan.tap(MACHINES)), MACS, strict=True))
    *others, last = qemu.accelerators()
    for accelerator in (*others, last):
        line = cloud.command(image, disk, drive, console, taps, accelerator)
        process = vpod.lan.start(vpod.lan.switch, "qemu", *line)
        if accelerator == last or starts(process, console):
            break
        process.kill()
        process.wait()

    def finished() -> bool:
        assert process.poll() is None, (folder / "qemu.log").read_text()
        done = vpod.ssh("cloud-init status --wait", BOOT_SECONDS)
        return "status: " in done.stdout

    until(finished, BOOT_SECONDS, lambda: console.read_text(errors="replace")[-3000:])


def starts(process: subprocess.Popen[bytes], console: Path) -> bool:
    """Return whether the kernel writes to the console soon."""
    deadline = time.monotonic() + qemu.KVM_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if console.exists() and console.stat().st_size > 0:
            return True
        time.sleep(0.05)
    return False


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


def test_users_of_the_tenant_reach_the_controller(vpod: Vpod) -> None:
    assert "alice" in client(vpod, vpod.site, CONTROLLER, "admin", "vipu-admin", "create", "user", "alice").stdout
    done = client(vpod, vpod.tenant, ADDRESS, "alice", "vipu", "list", "partitions")
    assert done.returncode == 0, done.stdout + done.stderr
    # Without a key, the user is rejected.
    done = client(vpod, vpod.tenant, ADDRESS, "", "vipu", "list", "partitions")
    assert done.returncode != 0, done.stdout


def client(vpod: Vpod, host: Host, address: str, user: str, *line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line on a host, with the access key and the certificates of a user, if any."""
    config = ("--config", f"{user}.vipu-cli.hcl") if user else ()
    words = host.command("env", "-C", str(vpod.folder), str(BIN / line[0]), *config, "--api-host", address, *line[1:])
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


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
    before = vpod.output("cat /proc/sys/kernel/random/boot_id")
    vpod.ssh("sudo systemctl reboot")

    def rebooted() -> bool:
        done = vpod.ssh("cat /proc/sys/kernel/random/boot_id && systemctl is-system-running --wait")
        return bool(done.stdout) and not done.stdout.startswith(before) and "running" in done.stdout

    until(rebooted, BOOT_SECONDS, "running after the reboot")
    for port in (V_IPU, METRICS, SSH):
        until(lambda: vpod.tenant.reaches(ADDRESS, port), 120, f"port {port}")  # noqa: B023
    assert not vpod.foreign.reaches(GW_ADDRESS, METRICS)
    assert vpod.foreign.reaches(BMC_ADDRESS, SYSLOG)


def test_the_role_configures_the_vm_over_ssh(vpod: Vpod) -> None:
    """The role manages the files that cloud-init wrote. A second run changes nothing."""
    hosts = {"hosts": {"v1-controller": {"ansible_host": ADDRESS, "ansible_user": "debian"}}}
    play = {"hosts": "v1-controller", "become": True, "gather_facts": False, "roles": ["openipu.pod.control_instance"]}
    inventory, playbook = vpod.folder / "vm.yml", vpod.folder / "play.yml"
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
