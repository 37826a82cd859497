# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tools.rehearsal``: bare hosts, ``site.yml``, proofs, ``site.yml`` again, and nothing is left."""

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
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.model import GW

from openipu.twin.processes import ProcessError, Service, alone, private_folder
from openipu.vipu import tls

from ..commandline import Command, state_dir
from ..hosts.image import image
from ..hosts.rig import Rig
from ..hosts.site import CACHE, CHECKOUT, check_possible, run
from .devices import SOCKET

STATE = CHECKOUT / ".cache" / "rehearsal"
LOGS = CHECKOUT / "build" / "rehearsal"
POD = CHECKOUT / "inventory" / "rehearsal" / "pod.yml"
SITE = CHECKOUT / "playbooks" / "site.yml"
SHARED = CHECKOUT / "extensions" / "molecule" / "shared"
WHEELS = CHECKOUT / ".cache" / "wheelhouse"
PEERS = CHECKOUT / ".cache" / "peers"  # with the callback that measures tasks
UNCHANGED_SHARE = 0.4  # of the first run, that a second may take
READY_SECONDS = 60.0
_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", re.MULTILINE)
_MESSAGE = re.compile(r"^    msg: (.+(?:\n {8}.+)*)$", re.MULTILINE)  # long ones go on in further lines
_TASK = re.compile(r"^(.+?) -+ +([\d.]+)s$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A run of a playbook: its seconds, and what it printed."""

    seconds: float
    text: str

    @property
    def changed(self) -> list[str]:
        """The hosts that it changed."""
        return [host for host, changed in _RECAP.findall(self.text) if changed != "0"]

    @property
    def slowest(self) -> str:
        """The ten slowest tasks, a line each."""
        return "\n".join(f"    {float(seconds):6.1f} s  {task}" for task, seconds in _TASK.findall(self.text)[:10])

    @property
    def told(self) -> str:
        """What its tasks told people."""
        found = _MESSAGE.findall(self.text)
        return "\n".join("    " + " ".join(text.split()).strip("'") for text in found)


class Rehearsal:
    """One rehearsal in a folder."""

    def __init__(self, folder: Path) -> None:
        """Nothing is started yet."""
        self._folder = folder
        self._rig = Rig(folder / "rig")
        self._begun = time.monotonic()

    def run(self) -> None:
        """All of it. Raises ProcessError with what went wrong."""
        check_possible()
        pod = load(str(POD))
        self._say("A place for hosts …")
        private_folder(self._folder)
        LOGS.mkdir(parents=True, exist_ok=True)
        with alone(CACHE):
            self._rig.up(image(click.echo, bare=True))
        self._say("A controller, an IPU-Machine and a Poplar server, bare …")
        here = [SHARED / "hosts.yml", POD.with_name("containers.yml")]
        self._play("create", SHARED / "create.yml", here)
        # Podman gives a host a way out by each of its networks; a controller's is the management network.
        gateway = str(ipaddress.ip_network(str(pod.networks[GW].subnet))[1])
        self._inside(["podman", "exec", "controller1", "ip", "route", "delete", "default", "via", gateway])
        self._play("wheels", CHECKOUT / "playbooks" / "openipu_wheelhouse.yml", [], f"-eopenipu_wheelhouse={WHEELS}")
        self._say("Two switches and a PDU …")
        self._devices()
        tls.create(self._folder / "agents", [machine.addresses[GW] for machine in pod.machines])
        self._say("site.yml …")
        first = self._play("first", SITE, [POD])
        self._say(f"That took {first.seconds:.0f} s. The ten slowest tasks:\n{first.slowest}")
        self._say("A partition, all metrics, an alert that comes and goes, a log …")
        click.echo(self._play("prove", Path(__file__).with_name("prove.yml"), [POD]).told)
        self._say("site.yml again …")
        again = self._play("again", SITE, [POD])
        share = again.seconds / first.seconds
        self._say(f"That took {again.seconds:.0f} s, {share:.0%} of the first. The ten slowest tasks:\n{again.slowest}")
        if again.changed:
            raise ProcessError(
                f"The second run changed something on {', '.join(again.changed)}: see {LOGS / 'again'}.log."
            )
        if share > UNCHANGED_SHARE:
            self._say(f"It was meant to take {UNCHANGED_SHARE:.0%} at most.")
        self._say("The rack is up, and a second run changed nothing.")

    def end(self) -> None:
        """Leave nothing of it but logs. Raises ProcessError."""
        with alone(CACHE):
            self._rig.down()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _say(self, sentence: str) -> None:
        click.echo(f"{time.monotonic() - self._begun:6.1f} s  {sentence}")

    def _devices(self) -> None:
        folder = self._folder / "devices"
        folder.mkdir()
        command = [sys.executable, "-m", "tools.rehearsal.devices", str(POD), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        files = folder / "devices.json", folder / "devices.log"
        service = Service("The twin of switches and PDU", *files, self._rig.inside(command), environment)
        service.start()
        service.wait_ready((folder / SOCKET).exists, READY_SECONDS)

    def _inside(self, command: Sequence[str]) -> None:
        run(self._rig.inside(command), " ".join(command), {**os.environ, **self._rig.environment()})

    def _play(self, name: str, playbook: Path, inventories: Sequence[Path], *more: str) -> Run:
        """Run a playbook among the hosts. Raises ProcessError when it fails, with its last words."""
        program = Path(sys.executable).with_name("ansible-playbook")
        command = [str(program), str(playbook), *(f"--inventory={path}" for path in inventories), *more]
        environment = {
            **os.environ,
            **self._rig.environment(),
            "REHEARSAL": str(self._folder),
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(PEERS),
            "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",
            "PROFILE_TASKS_TASK_OUTPUT_LIMIT": "10",
            "ANSIBLE_NOCOLOR": "true",
        }
        begun = time.monotonic()
        log = LOGS / f"{name}.log"
        with log.open("w") as output:
            done = subprocess.run(  # noqa: S603  ours
                self._rig.inside(command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        text = log.read_text(errors="replace")
        if done.returncode:
            errors = re.findall(r"^\[ERROR\]: (.+)$", text, re.MULTILINE) or text.splitlines()[-1:]
            raise ProcessError(f"{playbook.name} failed: {errors[0]} The whole log: {log}")
        return Run(time.monotonic() - begun, text)


@click.command(cls=Command)
@click.option("--keep", is_flag=True, help="Leave the hosts running, to look around.")
@state_dir(STATE, "the running hosts")
def main(keep: bool, state_dir: Path) -> None:
    """Bring a rack up from bare hosts, prove it, and do it again without a change."""
    rehearsal = Rehearsal(state_dir)
    try:
        rehearsal.end()  # what an earlier one was kept for
        rehearsal.run()
    finally:
        if keep:
            click.echo(f"The hosts are kept: python -m tools.hosts run --state-dir {state_dir / 'rig'} podman ps")
        else:
            rehearsal.end()


if __name__ == "__main__":
    main(prog_name="python -m tools.rehearsal")
