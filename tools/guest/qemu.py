# SPDX-License-Identifier: GPL-3.0-or-later
"""Hardware of the guest, as the command line of QEMU."""

from __future__ import annotations

import os
from pathlib import Path

from .site import DATA, MANAGEMENT, NVME_DISKS, SRIOV_BUS, SRIOV_VFS, SWITCH, Site

PROGRAM = "qemu-system-x86_64"
KVM_SECONDS = 20.0  # until the first output of the kernel with KVM, which takes one second
MEMORY = 1024  # MiB per NUMA node; there are two nodes with one processor each
KERNEL = "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=auto systemd.default_timeout_start_sec=600"
# Only the features that Debian needs, and pages of 1 GiB: Linux benchmarks further features at boot, which is slow.
EMULATED = "qemu64,+pdpe1gb,+rdrand"


def command(site: Site, image: Path, accelerator: str, ssh_port: int, outside: bool) -> list[str]:
    """Return the command line of QEMU. ``outside`` allows connections from the guest to the networks of this host."""
    return [
        *(PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"),
        *_processors(accelerator),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd"), "-append", KERNEL),
        *("-serial", f"file:{site.console}", "-device", "virtio-rng-pci"),
        # Keys are in a file, as a credential of systemd, so that they are neither in arguments nor in the image.
        *("-fw_cfg", f"name=opt/io.systemd.credentials/tmpfiles.extra,file={site.credentials}"),
        *("-drive", f"file={site.root_disk},if=virtio,cache=unsafe"),
        *_network(ssh_port, outside),
        *_disks(site),
    ]


def _processors(accelerator: str) -> list[str]:
    nodes = []
    for node in (0, 1):
        nodes += ["-object", f"memory-backend-ram,id=m{node},size={MEMORY}M"]
        nodes += ["-numa", f"node,nodeid={node},cpus={node},memdev=m{node}"]
    return [*processor(accelerator), "-smp", "2", "-m", f"{2 * MEMORY}M", *nodes]


def accelerators() -> list[str]:
    """Return the accelerators to try, in order. KVM may not work although its device exists."""
    return ["kvm", "tcg"] if os.access("/dev/kvm", os.R_OK | os.W_OK) else ["tcg"]


def processor(accelerator: str) -> list[str]:
    """Return the options of the accelerator, ``kvm`` or ``tcg``, and of the model of the processor."""
    if accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", EMULATED]


def _network(ssh_port: int, outside: bool) -> list[str]:
    """Return the options of the network: management by user networking, each data port with a cable to the switch."""
    user = f"user,id=management,restrict={'off' if outside else 'on'},hostfwd=tcp:127.0.0.1:{ssh_port}-:22"
    args = ["-netdev", user, *_nic("management", MANAGEMENT)]
    for cable, (server, switch) in enumerate(zip(DATA, SWITCH, strict=True)):
        for interface in (server, switch):
            args += ["-netdev", f"hubport,id={interface},hubid={cable}"]
            # 802.3ad requires ports of equal speed, and a virtual port has no speed by default.
            args += _nic(interface, interface, ",speed=100000,duplex=full,host_mtu=9000")
    return args


def _nic(netdev: str, interface: str, properties: str = "") -> list[str]:
    """Return the options of an interface. Its name sets the PCI slot, and the slot sets the MAC address."""
    slot = int(interface.removeprefix("enp0s"))
    return ["-device", f"virtio-net-pci,netdev={netdev},addr={slot:#x},mac=52:54:00:64:00:{slot:02x}{properties}"]


def _disks(site: Site) -> list[str]:
    args = []
    for number in range(NVME_DISKS):
        args += ["-drive", f"file={site.nvme(number)},if=none,id=nvme{number},format=raw,cache=unsafe,discard=unmap"]
        args += ["-device", f"nvme,drive=nvme{number},serial=openipu{number},addr={0x8 + number:#x}"]
    virtual = f"sriov_max_vfs={SRIOV_VFS},sriov_vq_flexible={2 * SRIOV_VFS},sriov_vi_flexible={SRIOV_VFS}"
    args += ["-device", f"pcie-root-port,id={SRIOV_BUS},addr=0x1c", "-device", "nvme-subsys,id=subsystem"]
    args += ["-device", f"nvme,subsys=subsystem,bus={SRIOV_BUS},serial=virtual,{virtual},max_ioqpairs=12,msix_qsize=13"]
    return args
