# SPDX-License-Identifier: GPL-3.0-or-later
"""The Poplar VM of an order with a share: cloud-init installs the NFS client and mounts the share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_instance.fake_actions import EXPORT, IPUOF
from tests.control_instance.guests import NEEDS_QEMU, USER_DATA, Guest, create_key
from tests.control_instance.lan import CONTROL, DATA, STORAGE, Host, Lan
from tests.control_instance.ordering import CONTROLLER_VM, POPLAR_VM, order
from tests.waiting import until

PORT = 2049
MOUNT = "/mnt/v1"
# NFS 4 only, which needs no further daemons. Other clients than those of the access rule of the order have no access.
_GANESHA = """
NFS_CORE_PARAM {{ Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = {folder}/recovery; }}
EXPORT {{
  Export_Id = 1; Path = {folder}/share; Pseudo = {export};
  SecType = sys; Squash = No_Root_Squash; Access_Type = None;
  CLIENT {{ Clients = {clients}; Access_Type = RW; }}
  FSAL {{ Name = VFS; }}
}}
"""

pytestmark = NEEDS_QEMU


def start_nfs(lan: Lan, server: Host, clients: str) -> Path:
    """Start the NFS server of the share for these addresses. Returns the folder with its files."""
    address, _, export = EXPORT.partition(":")
    for name in ("share", "recovery"):
        (lan.folder / name).mkdir()
    configuration = lan.folder / "ganesha.conf"
    configuration.write_text(_GANESHA.format(folder=lan.folder, export=export, clients=clients))
    files = ("-f", configuration, "-L", lan.folder / "nfs.log", "-p", lan.folder / "nfs.pid")
    process = lan.start(server, "ganesha", "ganesha.nfsd", "-F", *files)
    lan.wait_port(process, server, address, PORT)
    return lan.folder / "share"


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guest, Path]]:
    """The Poplar VM after its first boot, and the folder with the files of its share."""
    folder = tmp_path_factory.mktemp("poplar")
    ordered = order(
        folder,
        vpod_controller_public_keys=["ssh-ed25519 AAAA operator"],
        vpod_public_keys=[create_key(folder)],
        vpod_share_size=1,
    )
    vm, (manila,) = ordered.vms[POPLAR_VM], ordered.shares
    lan = Lan(folder, (DATA, CONTROL, STORAGE))
    try:
        neutron = lan.host(data=["10.1.5.2/24"], control=["10.4.0.2/24"], storage=["10.1.6.2/24"])
        client = lan.host(control=["10.4.0.20/24"])
        server = lan.host(storage=[f"{EXPORT.partition(':')[0]}/24"])
        lan.start_dhcp(neutron, dict(zip((DATA, CONTROL, STORAGE), vm.ports, strict=True)))
        (rule,) = manila["access"]
        files = start_nfs(lan, server, rule["to"])
        guest = Guest(lan, vm, client, vm.ports[1]["addresses"][0])
        guest.boot((DATA, CONTROL, STORAGE))
        # The address of the endpoint is that of the control instance of the same order.
        assert ordered.vms[CONTROLLER_VM].ports[0]["addresses"][0] in guest.output("cat /etc/vipu/vipu-cli.hcl")
        yield guest, files
    finally:
        lan.close()


def test_the_poplar_vm_boots_with_the_user_data_of_the_order(share: tuple[Guest, Path]) -> None:
    guest, _files = share
    assert guest.output(f"sudo cat {USER_DATA}") == guest.vm.user_data
    assert "status: done" in guest.output("cloud-init status --long")
    assert guest.output("cat /etc/ipuof.conf.d/v1.conf") == IPUOF


def check_mount(guest: Guest, files: Path, name: str) -> None:
    """Check that a file of the VM is on the NFS server."""
    source, kind = guest.output(f"findmnt --noheadings --output SOURCE,FSTYPE {MOUNT}").split()
    assert (source, kind) == (EXPORT, "nfs4")
    guest.output(f"echo {name} | sudo tee {MOUNT}/{name}")
    assert (files / name).read_text() == f"{name}\n"


def test_cloud_init_mounts_the_share(share: tuple[Guest, Path]) -> None:
    check_mount(*share, "first")


def test_the_share_is_mounted_again_after_a_reboot(share: tuple[Guest, Path]) -> None:
    guest, files = share
    guest.reboot()
    until(lambda: guest.ssh(f"mountpoint --quiet {MOUNT}").returncode == 0, 300, "mounted after the reboot")
    assert guest.output(f"cat {MOUNT}/first") == "first\n"
    check_mount(guest, files, "second")
