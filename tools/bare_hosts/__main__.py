# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tools.bare_hosts``: bare hosts, ``site.yml``, checks, ``site.yml`` again, removal of everything."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from openipu.process.background import ProcessError, Service, private_folder
from openipu.shared.pod.load import load
from openipu.shared.pod.model import GW
from openipu.vipu.tls import issue

from ..commandline import Command, state_dir
from ..hosts.host_environment import HostEnvironment
from ..hosts.image import ensure_image
from ..hosts.site import CACHE, CHECKOUT, check_requirements, run
from ..locks import folder_lock
from .devices import SOCKET

STATE = CHECKOUT / ".cache" / "bare-hosts"
LOGS = CHECKOUT / "build" / "bare-hosts"
POD = CHECKOUT / "inventory" / "bare-hosts" / "pod.yml"
SITE = CHECKOUT / "playbooks" / "site.yml"
SHARED = CHECKOUT / "extensions" / "molecule" / "shared"
WHEELS = CHECKOUT / ".cache" / "wheelhouse"
PEERS = CHECKOUT / ".cache" / "peers"  # with the callback plugin that measures tasks
UNCHANGED_SHARE = 0.4  # target for the second run, as a share of the first
READY_SECONDS = 60.0
_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", re.MULTILINE)
_MESSAGE = re.compile(r"^    msg: (.+(?:\n {8}.+)*)$", re.MULTILINE)  # long messages continue on further lines
_TASK = re.compile(r"^(.+?) -+ +([\d.]+)s$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """Run of a playbook, with its duration and output."""

    seconds: float
    text: str

    @property
    def changed(self) -> list[str]:
        """Changed hosts."""
        return [host for host, changed in _RECAP.findall(self.text) if changed != "0"]

    @property
    def slowest(self) -> str:
        """Ten slowest tasks, one per line."""
        return "\n".join(f"    {float(seconds):6.1f} s  {task}" for task, seconds in _TASK.findall(self.text)[:10])

    @property
    def messages(self) -> str:
        """Messages of debug tasks, one per line."""
        found = _MESSAGE.findall(self.text)
        return "\n".join("    " + " ".join(text.split()).strip("'") for text in found)


class BareHostRun:
    """Run with its files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = HostEnvironment(folder / "hosts")
        self._begun = time.monotonic()

    def run(self) -> None:
        """Run all steps. Raises ProcessError at the first failure."""
        check_requirements()
        pod = load(str(POD))
        self._report("Creating the environment of the hosts …")
        private_folder(self._folder)
        LOGS.mkdir(parents=True, exist_ok=True)
        with folder_lock(CACHE):
            self._environment.up(ensure_image(click.echo, bare=True))
        self._report("Creating a controller, an IPU-Machine and a Poplar server …")
        inventories = [SHARED / "hosts.yml", POD.with_name("containers.yml")]
        self._play("create", SHARED / "create.yml", inventories)
        # Podman adds a default route for each network. The controller must use the management network.
        gateway = str(ipaddress.ip_network(str(pod.networks[GW].subnet))[1])
        self._run(["podman", "exec", "controller1", "ip", "route", "delete", "default", "via", gateway])
        self._play("wheels", CHECKOUT / "playbooks" / "openipu_wheelhouse.yml", [], f"-eopenipu_wheelhouse={WHEELS}")
        self._report("Starting two switches and a PDU …")
        self._start_devices()
        issue.create(self._folder / "agents", [machine.addresses[GW] for machine in pod.machines])
        self._report("Running site.yml …")
        first = self._play("first", SITE, [POD])
        self._report(f"Duration {first.seconds:.0f} s. Slowest tasks:\n{first.slowest}")
        self._report("Checking partitions, metrics, alerts and logs …")
        click.echo(self._play("prove", Path(__file__).with_name("prove.yml"), [POD]).messages)
        self._report("Running site.yml again …")
        again = self._play("again", SITE, [POD])
        share = again.seconds / first.seconds
        self._report(f"Duration {again.seconds:.0f} s, {share:.0%} of the first run. Slowest tasks:\n{again.slowest}")
        if again.changed:
            raise ProcessError(
                f"The second run of site.yml changed {', '.join(again.changed)}: see {LOGS / 'again'}.log."
            )
        if share > UNCHANGED_SHARE:
            self._report(f"The second run is slower than its target of {UNCHANGED_SHARE:.0%}.")
        self._report("The rack is running, and the second run changed nothing.")

    def clean_up(self) -> None:
        """Stop and remove everything except logs. Raises ProcessError."""
        with folder_lock(CACHE):
            self._environment.down()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _report(self, message: str) -> None:
        click.echo(f"{time.monotonic() - self._begun:6.1f} s  {message}")

    def _start_devices(self) -> None:
        folder = self._folder / "devices"
        folder.mkdir()
        command = [sys.executable, "-m", "tools.bare_hosts.devices", str(POD), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        files = folder / "devices.json", folder / "devices.log"
        service = Service("the twin of switches and PDU", *files, self._environment.command_line(command), environment)
        service.start()
        service.wait_ready((folder / SOCKET).exists, READY_SECONDS)

    def _run(self, command: Sequence[str]) -> None:
        run(self._environment.command_line(command), " ".join(command), {**os.environ, **self._environment.variables()})

    def _play(self, name: str, playbook: Path, inventories: Sequence[Path], *options: str) -> Run:
        """Run a playbook in the environment of the hosts. Raises ProcessError with its first error."""
        program = Path(sys.executable).with_name("ansible-playbook")
        command = [str(program), str(playbook), *(f"--inventory={path}" for path in inventories), *options]
        environment = {
            **os.environ,
            **self._environment.variables(),
            "BARE_HOSTS": str(self._folder),
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(PEERS),
            "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",
            "PROFILE_TASKS_TASK_OUTPUT_LIMIT": "10",
            "ANSIBLE_NOCOLOR": "true",
        }
        begun = time.monotonic()
        log = LOGS / f"{name}.log"
        with log.open("w") as output:
            done = subprocess.run(  # noqa: S603  command of this tool
                self._environment.command_line(command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        text = log.read_text(errors="replace")
        if done.returncode:
            errors = re.findall(r"^\[ERROR\]: (.+)$", text, re.MULTILINE) or text.splitlines()[-1:]
            raise ProcessError(f"Cannot complete {playbook.name}: {errors[0]} Complete log: {log}")
        return Run(time.monotonic() - begun, text)


@click.command(cls=Command)
@click.option("--keep", is_flag=True, help="Keep the hosts running after the run, for inspection.")
@state_dir(STATE, "the hosts")
def main(keep: bool, state_dir: Path) -> None:
    """Configure a rack from bare hosts, check it, and run site.yml again without changes."""
    bare_host_run = BareHostRun(state_dir)
    try:
        bare_host_run.clean_up()  # hosts of an earlier run with --keep
        bare_host_run.run()
    finally:
        if keep:
            click.echo(f"The hosts are running: python -m tools.hosts run --state-dir {state_dir / 'hosts'} podman ps")
        else:
            bare_host_run.clean_up()


if __name__ == "__main__":
    main(prog_name="python -m tools.bare_hosts")
