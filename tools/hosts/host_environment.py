# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment of the hosts: Linux namespaces with a separate podman and a route to package mirrors.

All hosts, networks, firewall rules, mounts and processes in it end with its first process, so nothing
remains. Several environments are isolated from each other.
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

from openipu.process.background import ProcessError, Service, private_folder

from .image import USER, Image
from .site import run, system_environment

READY_SECONDS = 30.0
_HOLDER = Path(__file__).with_name("holder.sh")
_UPLINK = "100.64.0.0/24"  # network of slirp4netns, with its name server at .3; outside of all addresses of a POD
_NAME_SERVER = "100.64.0.3"
_NOT_RUNNING = "Cannot use hosts: their environment is not running. Start it with python -m tools.hosts up."
_RESOURCE_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}


class HostEnvironment:
    """Environment of hosts. The folder `state` is removed with it."""

    def __init__(self, state: Path) -> None:
        self.state = state

    @property
    def running(self) -> bool:
        """True if hosts can be started in the environment."""
        return self._holder().running() is not None and self._uplink(0).running() is not None

    @property
    def image(self) -> Image:
        """Image of the hosts. Raises ProcessError."""
        try:
            return Image((self.state / "image").readlink())
        except OSError:
            raise ProcessError(_NOT_RUNNING) from None

    def up(self, image: Image) -> None:
        """Start the environment, if it is not running. Raises ProcessError."""
        if self.running:
            if self.image != image:
                raise ProcessError(
                    "Cannot start hosts: hosts of another image are running. Stop them with python -m tools.hosts down."
                )
            return
        if self._podman.exists():
            self._remove()  # files from before a crash or reboot
        if not private_folder(self.state) and any(self.state.iterdir()):
            raise ProcessError(
                f"Cannot use {self.state}: it holds other files. Choose another folder with --state-dir."
            )
        self._write_podman_wrapper(image)
        (self.state / "image").symlink_to(image.folder)
        holder = self._holder(image)
        holder.start()
        holder.wait_ready(self._is_prepared, READY_SECONDS)
        uplink = self._uplink(self._init_pid())
        uplink.start()
        uplink.wait_ready(self._has_default_route, READY_SECONDS)

    def down(self) -> bool:
        """Stop and remove everything. Return whether the environment existed. Raises ProcessError."""
        if not self.state.exists():
            return False
        if not self._podman.exists():
            raise ProcessError(f"Cannot remove {self.state}: it holds no hosts. Nothing was removed.")
        self._remove()
        return True

    def command_line(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command in the environment. Raises ProcessError."""
        if not self.running:
            raise ProcessError(_NOT_RUNNING)
        enter = ["nsenter", "--mount", "--net", "--pid", "--ipc", "--uts", f"--target={self._init_pid()}", "--"]
        # nsenter starts in the root folder of the mount namespace.
        return [*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd()), *command]

    def variables(self) -> dict[str, str]:
        """Return the environment variables for commands: podman and the connection of Ansible. Raises ProcessError."""
        image = self.image
        options = {"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "LogLevel": "ERROR"}
        return {
            "PATH": f"{self._podman.parent}{os.pathsep}{os.environ['PATH']}",
            "HOSTS_CONNECTION": "ssh",
            "HOSTS_IMAGE": image.reference,
            "ANSIBLE_REMOTE_USER": USER,
            "ANSIBLE_PRIVATE_KEY_FILE": str(image.key),
            "ANSIBLE_SSH_COMMON_ARGS": " ".join(f"-o {name}={value}" for name, value in options.items()),
            # Separate sockets: hosts of other environments may have the same addresses.
            "ANSIBLE_SSH_CONTROL_PATH_DIR": "/run/hosts/ssh",
        }

    @property
    def _podman(self) -> Path:
        """Path of the podman of the hosts, for commands in the environment."""
        return self.state / "bin" / "podman"

    def _write_podman_wrapper(self, image: Image) -> None:
        folder = self._podman.parent
        folder.mkdir()
        settings = folder / "containers.conf"
        # Hosts cannot exceed the limits of this machine, and control groups may lack controllers.
        limits = [f"{name}={_hard_limit(kind)}" for name, kind in _RESOURCE_LIMITS.items()]
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
        # The lock marks the image as used while the holder runs.
        command = ["flock", "--no-fork", "--shared", str(image.lock)] if image else []
        command += ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
        command += ["--propagation=private", "sh", str(_HOLDER), self.group, _NAME_SERVER]
        return self._service("holder", command)

    def _uplink(self, init_pid: int) -> Service:
        """Return the service that connects the hosts to the network of the machine. It ends with the holder."""
        command = ["nsenter", "--pid", f"--target={init_pid}", "slirp4netns", "--configure", "--mtu=65520"]
        command += ["--disable-host-loopback", f"--cidr={_UPLINK}", str(init_pid), "uplink"]
        return self._service("uplink", command)

    def _service(self, name: str, command: Sequence[str]) -> Service:
        return Service(name, self.state / f"{name}.json", self.state / f"{name}.log", command, system_environment())

    def _init_pid(self) -> int:
        """Return the pid of the first process in the environment, 0 when there is none."""
        holder = self._holder().running()
        children = holder.children() if holder else []
        return int(children[0].pid) if children else 0

    @property
    def group(self) -> str:
        """Control group of all processes in the environment."""
        return f"openipu-hosts-{hashlib.sha256(bytes(self.state)).hexdigest()[:8]}"

    def _is_prepared(self) -> bool:
        init_pid = self._init_pid()
        return init_pid > 0 and Path(f"/proc/{init_pid}/root/run/hosts/ready").exists()

    def _has_default_route(self) -> bool:
        routes = Path(f"/proc/{self._init_pid()}/net/route")
        with contextlib.suppress(OSError):
            return any(line.split()[:2] == ["uplink", "00000000"] for line in routes.read_text().splitlines())
        return False

    def _remove(self) -> None:
        """Stop all processes and remove all files. The kernel ends all others with the first process."""
        init_pid = self._init_pid()
        if init_pid:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(init_pid)
                process.send_signal(signal.SIGKILL)
                process.wait(READY_SECONDS)
        self._uplink(0).stop()
        self._holder().stop()
        # The machine may mount the tree of control groups anywhere, or not at all.
        script = "set -e; mount -t cgroup2 none /mnt; cd /mnt; test ! -e $0 || find $0 -depth -type d -exec rmdir {} +"
        run(["unshare", "--mount", "sh", "-c", script, self.group], "remove the control groups of the hosts")
        shutil.rmtree(self.state)


def _hard_limit(kind: int) -> str:
    """Return the hard limit of this process, as soft and hard limit of a container."""
    hard = resource.getrlimit(kind)[1]
    return f"{hard}:{hard}" if hard != resource.RLIM_INFINITY else "-1:-1"
