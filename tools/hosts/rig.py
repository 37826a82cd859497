# SPDX-License-Identifier: GPL-3.0-or-later
"""The place where hosts run: namespaces of their own, with podman in them and a way out to the mirrors.

Whatever is made in there (hosts, networks, firewall rules, mounts, processes) ends with one process,
so nothing of it can stay behind, and several such places do not notice each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil

from openipu.twin.processes import ProcessError, Service, private_folder

from .image import USER, Image
from .site import environment, run

READY_SECONDS = 30.0
_HOLDER = Path(__file__).with_name("holder.sh")
_UPLINK = "100.64.0.0/24"  # as slirp4netns lays it out, its name server is .3; far from all addresses of a POD
_NAME_SERVER = "100.64.0.3"
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}


class Rig:
    """One such place; `state` is removed with it."""

    def __init__(self, state: Path) -> None:
        self.state = state

    @property
    def running(self) -> bool:
        """Whether hosts can be started and found there."""
        return self._holder().running() is not None and self._uplink(0).running() is not None

    @property
    def image(self) -> Image:
        """What its hosts are made from. Raises ProcessError."""
        try:
            return Image((self.state / "image").readlink())
        except OSError:
            raise ProcessError("No hosts can run yet: start their place with python -m tools.hosts up.") from None

    def up(self, image: Image) -> None:
        """Start it, if it does not run. Raises ProcessError."""
        if self.running:
            if self.image != image:
                raise ProcessError("Hosts of another image run: end them first, with python -m tools.hosts down.")
            return
        if self._podman.exists():
            self._clear()  # what a machine that went down, or a kill, has left
        if not private_folder(self.state) and any(self.state.iterdir()):
            raise ProcessError(f"{self.state} holds something else: name another folder with --state-dir.")
        self._write_podman(image)
        (self.state / "image").symlink_to(image.folder)
        holder = self._holder(image)
        holder.start()
        holder.wait_ready(self._laid_out, READY_SECONDS)
        uplink = self._uplink(self._first())
        uplink.start()
        uplink.wait_ready(self._has_way_out, READY_SECONDS)

    def down(self) -> bool:
        """End everything; whether there was anything. Raises ProcessError."""
        if not self.state.exists():
            return False
        if not self._podman.exists():
            raise ProcessError(f"{self.state} holds no hosts: nothing was removed.")
        self._clear()
        return True

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command among the hosts. Raises ProcessError when none can run."""
        if not self.running:
            raise ProcessError("No hosts can run yet: start their place with python -m tools.hosts up.")
        enter = ["nsenter", "--mount", "--net", "--pid", "--ipc", "--uts", f"--target={self._first()}", "--"]
        # Another mount namespace begins in its own root folder.
        return [*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd()), *command]

    def environment(self) -> dict[str, str]:
        """What differs for a command among the hosts: its podman, and how Ansible logs in. Raises ProcessError."""
        image = self.image
        options = {"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "LogLevel": "ERROR"}
        return {
            "PATH": f"{self._podman.parent}{os.pathsep}{os.environ['PATH']}",
            "HOSTS_CONNECTION": "ssh",
            "HOSTS_IMAGE": image.reference,
            "ANSIBLE_REMOTE_USER": USER,
            "ANSIBLE_PRIVATE_KEY_FILE": str(image.key),
            "ANSIBLE_SSH_COMMON_ARGS": " ".join(f"-o {name}={value}" for name, value in options.items()),
            # Sockets in the place's own /run: another place has hosts of the same addresses.
            "ANSIBLE_SSH_CONTROL_PATH_DIR": "/run/hosts/ssh",
        }

    @property
    def _podman(self) -> Path:
        """The podman of the hosts, for who is inside."""
        return self.state / "bin" / "podman"

    def _write_podman(self, image: Image) -> None:
        folder = self._podman.parent
        folder.mkdir()
        settings = folder / "containers.conf"
        # A host may not be given more than this machine's own limits, and control groups may lack controllers.
        limits = [f"{name}={_hard(kind)}" for name, kind in _LIMITS.items()]
        settings.write_text(
            f"""[containers]
default_ulimits = {json.dumps(limits)}
pids_limit = 0
cgroups = "no-conmon"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "/run/hosts/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{self.state / "networks"}"
"""
        )
        options = [f"--root={self.state / 'storage'}", "--runroot=/run/hosts/podman", "--storage-driver=overlay"]
        options += [f"--storage-opt=additionalimagestore={image.store}"]
        command = ["env", f"CONTAINERS_CONF={settings}", "/usr/bin/podman", *options]
        self._podman.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        self._podman.chmod(0o755)

    def _holder(self, image: Image | None = None) -> Service:
        # As long as it runs, its image is in use.
        command = ["flock", "--no-fork", "--shared", str(image.lock)] if image else []
        command += ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
        command += ["--propagation=private", "sh", str(_HOLDER), self.group, _NAME_SERVER]
        return self._service("holder", command)

    def _uplink(self, first: int) -> Service:
        """Carries packets between the hosts and the machine's own network; ends with the holder."""
        command = ["nsenter", "--pid", f"--target={first}", "slirp4netns", "--configure", "--mtu=65520"]
        command += ["--disable-host-loopback", f"--cidr={_UPLINK}", str(first), "uplink"]
        return self._service("uplink", command)

    def _service(self, name: str, command: Sequence[str]) -> Service:
        return Service(name, self.state / f"{name}.json", self.state / f"{name}.log", command, environment())

    def _first(self) -> int:
        """The process that is the first one inside; 0 when there is none."""
        holder = self._holder().running()
        children = holder.children() if holder else []
        return int(children[0].pid) if children else 0

    @property
    def group(self) -> str:
        """The control group of all that runs here."""
        return f"openipu-hosts-{hashlib.sha256(bytes(self.state)).hexdigest()[:8]}"

    def _laid_out(self) -> bool:
        first = self._first()
        return first > 0 and Path(f"/proc/{first}/root/run/hosts/ready").exists()

    def _has_way_out(self) -> bool:
        routes = Path(f"/proc/{self._first()}/net/route")
        with contextlib.suppress(OSError):
            return any(line.split()[:2] == ["uplink", "00000000"] for line in routes.read_text().splitlines())
        return False

    def _clear(self) -> None:
        """End what runs, and remove what is left. With the first process the kernel ends all that is inside."""
        first = self._first()
        if first:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(first)
                process.send_signal(signal.SIGKILL)
                process.wait(READY_SECONDS)
        self._uplink(0).stop()
        self._holder().stop()
        # The tree of control groups may be mounted anywhere on the machine, or nowhere.
        script = "set -e; mount -t cgroup2 none /mnt; cd /mnt; test ! -e $0 || find $0 -depth -type d -exec rmdir {} +"
        run(["unshare", "--mount", "sh", "-c", script, self.group], "remove the hosts' control groups")
        shutil.rmtree(self.state)


def _hard(kind: int) -> str:
    """The hard limit of this process, for soft and hard of another."""
    hard = resource.getrlimit(kind)[1]
    return f"{hard}:{hard}" if hard != resource.RLIM_INFINITY else "-1:-1"
