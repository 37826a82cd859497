# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop the guest."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
from pathlib import Path

from openipu.process.background import ProcessError, Service, private_folder

from ..hosts.site import run, system_environment
from ..locks import folder_lock
from . import qemu
from .image import ensure_image
from .poplar import poplar_image
from .site import CACHE, NVME_DISKS, NVME_SIZE, USER, Site

BOOT_SECONDS = 600.0  # ten times the duration on an idle machine
_PROGRAMS = {
    qemu.PROGRAM: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}


def up(site: Site, accelerator: str = "", outside: bool = False) -> str:
    """Start the guest, if it is not running, and wait for SSH. Return the accelerator, ``kvm`` or ``tcg``.

    ``accelerator`` defaults to KVM if it works, otherwise to emulation. ``outside`` allows connections from the
    guest. Raises ProcessError.
    """
    _check_requirements()
    with folder_lock(CACHE):
        image = ensure_image(poplar_image())
        service = _service(site)
        if service.running() and _is_ready(site):
            return accelerator_of(service)
        service.stop()
        _create_files(site, image)
        candidates = [accelerator] if accelerator else qemu.accelerators()
        for name in candidates:
            if _start(site, image, name, outside, last=name == candidates[-1]):
                return name
        raise AssertionError("the last accelerator starts or raises")


def down(site: Site) -> bool:
    """Stop the guest and remove its folder. Return whether it existed. Raises ProcessError."""
    with folder_lock(CACHE):
        if not site.state.exists():
            return False
        if not site.ssh_config.exists():
            raise ProcessError(f"Cannot remove {site.state}: it holds no guest. Nothing was removed.")
        _service(site).stop()
        shutil.rmtree(site.state)
        return True


def accelerator_of(service: Service) -> str:
    """Return the accelerator of a running guest."""
    process = service.running()
    return "kvm" if process and "kvm" in process.cmdline() else "tcg"


def _start(site: Site, image: Path, accelerator: str, outside: bool, last: bool) -> bool:
    """Start the guest with an accelerator. Return whether it is ready. Raises ProcessError only for the last one."""
    port = _free_port()
    _write_ssh_config(site, port)
    site.console.unlink(missing_ok=True)
    service = _service(site, qemu.command(site, image, accelerator, port, outside))
    service.start()
    try:
        if not last:
            service.wait_ready(lambda: site.console.exists() and site.console.stat().st_size > 0, qemu.KVM_SECONDS)
        service.wait_ready(lambda: _is_ready(site), BOOT_SECONDS)
    except ProcessError as error:
        service.stop()
        if last:
            raise ProcessError(f"{error} Console log: {site.console}") from None
        return False
    return True


def _service(site: Site, command: list[str] | None = None) -> Service:
    return Service("the guest", site.state / "qemu.json", site.state / "qemu.log", command or [], system_environment())


def missing() -> list[str]:
    """Return the required packages that are not installed."""
    path = system_environment()["PATH"]
    return sorted({package for name, package in _PROGRAMS.items() if not shutil.which(name, path=path)})


def _check_requirements() -> None:
    if names := " ".join(missing()):
        raise ProcessError(
            f"Cannot start the guest: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )


def _is_ready(site: Site) -> bool:
    """Return whether SSH works and the boot is complete."""
    ready = "systemctl is-system-running --wait >/dev/null; test -e /run/systemd/system"
    command = ["ssh", "-F", str(site.ssh_config), "guest", ready]
    try:
        done = subprocess.run(  # noqa: S603  command of this tool
            command, env=system_environment(), capture_output=True, timeout=BOOT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _create_files(site: Site, image: Path) -> None:
    """Create new disks and keys. Raises ProcessError."""
    if not private_folder(site.state) and not site.ssh_config.exists() and any(site.state.iterdir()):
        raise ProcessError(f"Cannot use {site.state}: it holds other files. Choose another folder with --state-dir.")
    for path in site.state.iterdir():
        path.unlink()
    site.ssh_config.touch(mode=0o600)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image / "root.img")]
    run([*command, str(site.root_disk)], "create the disk of the guest")
    for number in range(NVME_DISKS):
        with site.nvme(number).open("wb") as disk:
            disk.truncate(NVME_SIZE)
    for key in (site.key, site.host_key):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f", str(key)], "create an SSH key")
    files: dict[str, tuple[str, Path]] = {
        f"/home/{USER}/.ssh/authorized_keys": (f"0600 {USER} {USER}", site.key.with_suffix(".pub")),
        "/etc/ssh/ssh_host_ed25519_key": ("0600 root root", site.host_key),
        "/etc/ssh/ssh_host_ed25519_key.pub": ("0644 root root", site.host_key.with_suffix(".pub")),
    }
    lines = [f"d /home/{USER}/.ssh 0700 {USER} {USER}"]
    for target, (owner, source) in files.items():
        lines.append(f"f+~ {target} {owner} - {base64.b64encode(source.read_bytes()).decode()}")
    site.credentials.touch(mode=0o600)
    site.credentials.write_text("\n".join(lines) + "\n")


def _write_ssh_config(site: Site, port: int) -> None:
    known_hosts = site.state / "known_hosts"
    host_key = " ".join(site.host_key.with_suffix(".pub").read_text().split()[:2])
    known_hosts.write_text(f"[127.0.0.1]:{port} {host_key}\n")
    site.ssh_config.write_text(
        "Host guest\n"
        f"  HostName 127.0.0.1\n  Port {port}\n  User {USER}\n  IdentityFile {site.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {known_hosts}\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n  ConnectTimeout 10\n"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
