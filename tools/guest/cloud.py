# SPDX-License-Identifier: GPL-3.0-or-later
"""VM of a cloud: Debian with cloud-init, which reads a config drive in the format of Nova."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..hosts.site import run, system_environment
from . import qemu
from .image import BASE, INSIDE, Image
from .site import CHECKOUT

# As in the images of Debian for clouds: netplan and systemd-networkd.
PACKAGES = (*BASE, "apt-utils", "cloud-init", "netplan.io", "systemd-resolved")
MEMORY = 1024  # MiB
# The options are those of Nova.
_MAKE_DRIVE = ("genisoimage", "-quiet", "-J", "-r", "-l", "-ldots", "-allow-lowercase", "-allow-multidot")
PROGRAMS = {
    qemu.PROGRAM: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "genisoimage": "genisoimage",
    "mmdebstrap": "mmdebstrap",
    # Programs of the tests: files for a tenant, networks of the VM, server of a share, endpoint without a VM.
    "age": "age",
    "dnsmasq": "dnsmasq-base",
    "ganesha.nfsd": "nfs-ganesha-vfs",
    "haproxy": "haproxy",
    "ip": "iproute2",
    "ssh": "openssh-client",
}


def missing() -> list[str]:
    """Return the required packages that are not installed."""
    path = system_environment()["PATH"]
    return sorted(package for name, package in PROGRAMS.items() if not shutil.which(name, path=path))


def cloud_image() -> Image:
    """Return the disk of the VM. The packages that cloud-init installs are in its repository, and not installed."""
    return Image("cloud", PACKAGES, INSIDE / "cloud", tuple(_installed_packages()))


def _installed_packages() -> list[str]:
    """Return the packages of a control instance, and those of a Poplar VM with a share."""

    def variables(role: str, name: str) -> Any:
        return yaml.safe_load((CHECKOUT / "roles" / role / "vars" / name).read_text())

    metrics = variables("monitoring", "Debian.yml")["monitoring_packages"]
    return [
        *variables("common", "Debian.yml")["common_firewall_packages"],
        *variables("common", "Debian.yml")["common_updates_packages"],
        *variables("log_receiver", "main.yml")["log_receiver_packages"],
        *variables("control_instance", "main.yml")["control_instance_packages"],
        *(metrics[part] for part in ("prometheus", "node_exporter")),
        *yaml.safe_load((CHECKOUT / "roles/vpod/defaults/main.yml").read_text())["vpod_share_packages"],
    ]


def create_config_drive(
    path: Path,
    scratch: Path,
    metadata: Mapping[str, Any],
    macs: Sequence[str],
    user_data: str,
    dns_servers: Sequence[str] = (),
) -> None:
    """Write the config drive of a server whose ports have these MACs and get their addresses and MTUs by DHCP.

    ``dns_servers`` are those of the subnets of all ports. ``scratch`` is an empty folder. Content and options are those
    of Nova: one network for each port, even if the port has addresses in several subnets. Raises ProcessError.
    """
    links = [
        {"id": f"tap{number}", "vif_id": f"port{number}", "type": "ovs", "mtu": None, "ethernet_mac_address": mac}
        for number, mac in enumerate(macs)
    ]
    networks = [
        {"id": f"network{number}", "type": "ipv4_dhcp", "link": link["id"], "network_id": f"network{number}"}
        for number, link in enumerate(links)
    ]
    folder = scratch / "openstack" / "latest"
    folder.mkdir(parents=True)
    (folder / "meta_data.json").write_text(json.dumps(metadata))
    services = [{"type": "dns", "address": address} for address in dns_servers]
    (folder / "network_data.json").write_text(json.dumps({"links": links, "networks": networks, "services": services}))
    (folder / "user_data").write_text(user_data)
    run([*_MAKE_DRIVE, "-V", "config-2", "-o", str(path), str(scratch)], "create the config drive")


def create_disk(path: Path, image: Path) -> None:
    """Create a disk with the differences from an image. Raises ProcessError."""
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image / "root.img")]
    run([*command, str(path)], "create the disk of the guest")


def command(
    image: Path, disk: Path, drive: Path, console: Path, taps: Mapping[str, str], accelerator: str
) -> list[str]:
    """Return the command line of QEMU. ``taps`` are TAP devices of this host, each with the MAC of its port."""
    network = []
    for number, (tap, mac) in enumerate(taps.items()):
        network += ["-netdev", f"tap,id=port{number},ifname={tap},script=no,downscript=no"]
        network += ["-device", f"virtio-net-pci,netdev=port{number},mac={mac}"]
    return [
        *(qemu.PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"),
        *qemu.processor(accelerator),
        *("-smp", "2", "-m", f"{MEMORY}M"),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd"), "-append", qemu.KERNEL),
        *("-serial", f"file:{console}", "-device", "virtio-rng-pci"),
        *("-drive", f"file={disk},if=virtio,cache=unsafe"),
        *("-drive", f"file={drive},if=virtio,format=raw,readonly=on"),
        *network,
    ]
