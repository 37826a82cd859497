# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest as a whole: brought up, asked, and taken down."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
from pathlib import Path

from openipu.twin.processes import ProcessError, Service, alone, private_folder

from ..hosts.site import environment, run
from . import qemu
from .image import made
from .site import CACHE, NVME_DISKS, NVME_SIZE, USER, Site

BOOT_SECONDS = 600.0  # ten times what it takes on a machine that does nothing else
_KVM_SECONDS = 20.0  # that a kernel has for its first words where the processor runs it; it needs one
_PROGRAMS = {
    qemu.PROGRAM: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}


def up(site: Site, accelerator: str = "", outside: bool = False) -> str:
    """Start it, if it does not run, and wait until one can log in; gives what runs it, ``kvm`` or ``tcg``.

    Without ``accelerator`` that is KVM where it works, and emulation where not. Raises ProcessError.
    """
    _check_possible()
    with alone(CACHE):
        image = made()
        service = _service(site)
        if service.running() and _answers(site):
            return accelerator_of(service)
        service.stop()
        _lay_out(site, image)
        tried = [accelerator] if accelerator else (["kvm"] if _has_kvm() else []) + ["tcg"]
        for name in tried:
            if _start(site, image, name, outside, last=name == tried[-1]):
                return name
        raise AssertionError("the last one starts or raises")


def down(site: Site) -> bool:
    """End it and remove its folder; whether there was anything. Raises ProcessError."""
    with alone(CACHE):
        if not site.state.exists():
            return False
        if not site.ssh_config.exists():
            raise ProcessError(f"{site.state} holds no guest: nothing was removed.")
        _service(site).stop()
        shutil.rmtree(site.state)
        return True


def accelerator_of(service: Service) -> str:
    """What runs a guest that runs."""
    process = service.running()
    return "kvm" if process and "kvm" in process.cmdline() else "tcg"


def _start(site: Site, image: Path, accelerator: str, outside: bool, last: bool) -> bool:
    """Whether it runs; one that is not the last hope may fail silently."""
    port = _free_port()
    _write_ssh_config(site, port)
    site.console.unlink(missing_ok=True)
    service = _service(site, qemu.command(site, image, accelerator, port, outside))
    service.start()
    try:
        if not last:
            service.wait_ready(lambda: site.console.exists() and site.console.stat().st_size > 0, _KVM_SECONDS)
        service.wait_ready(lambda: _answers(site), BOOT_SECONDS)
    except ProcessError as error:
        service.stop()
        if last:
            raise ProcessError(f"{error} What the guest said: {site.console}") from None
        return False
    return True


def _service(site: Site, command: list[str] | None = None) -> Service:
    return Service("The guest", site.state / "qemu.json", site.state / "qemu.log", command or [], environment())


def missing() -> list[str]:
    """The packages that are needed and not installed."""
    path = environment()["PATH"]
    return sorted({package for name, package in _PROGRAMS.items() if not shutil.which(name, path=path)})


def _check_possible() -> None:
    if names := " ".join(missing()):
        raise ProcessError(f"Not installed: {names}. Install with: apt install --no-install-recommends {names}")


def _has_kvm() -> bool:
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def _answers(site: Site) -> bool:
    """Whether one can log in and everything that starts with it has started."""
    ready = "systemctl is-system-running --wait >/dev/null; test -e /run/systemd/system"
    command = ["ssh", "-F", str(site.ssh_config), "guest", ready]
    try:
        return subprocess.run(command, env=environment(), capture_output=True, timeout=BOOT_SECONDS).returncode == 0  # noqa: S603  ours
    except subprocess.TimeoutExpired:
        return False


def _lay_out(site: Site, image: Path) -> None:
    """Fresh disks and keys."""
    if not private_folder(site.state) and not site.ssh_config.exists() and any(site.state.iterdir()):
        raise ProcessError(f"{site.state} holds something else: name another folder with --state-dir.")
    for path in site.state.iterdir():
        path.unlink()
    site.ssh_config.touch(mode=0o600)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image / "root.img")]
    run([*command, str(site.root_disk)], "make the guest's disk")
    for number in range(NVME_DISKS):
        with site.nvme(number).open("wb") as disk:
            disk.truncate(NVME_SIZE)
    for key in (site.key, site.host_key):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f", str(key)], "make a key")
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
    known = site.state / "known_hosts"
    host_key = " ".join(site.host_key.with_suffix(".pub").read_text().split()[:2])
    known.write_text(f"[127.0.0.1]:{port} {host_key}\n")
    site.ssh_config.write_text(
        "Host guest\n"
        f"  HostName 127.0.0.1\n  Port {port}\n  User {USER}\n  IdentityFile {site.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {known}\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n  ConnectTimeout 10\n"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
