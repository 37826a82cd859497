# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the modules for hosts reach what they manage: the programs and the files of the host that they run on."""

from __future__ import annotations

import os
import subprocess
import typing as t

from ..reconcile import SentenceError
from ..runner import Way

# What a login without a shell may not have in its path.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES = {
    "ip": "iproute2",
    "mdadm": "mdadm",
    "mkfs.xfs": "xfsprogs",
    "networkctl": "systemd",
    "nmcli": "NetworkManager",
}


class CommandError(SentenceError):
    """A program ended with an error; ``words`` are its last ones."""

    def __init__(self, program: str, words: str) -> None:
        super().__init__("%s says: %s" % (program, words))
        self.words = words


class Host:
    """This host."""

    def run(self, *command: str, timeout: float = 300) -> str:
        """What a program printed. Raises CommandError when it fails, and SentenceError when it is not installed."""
        program = command[0]
        environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C"}
        try:
            done = subprocess.run(  # noqa: S603 - a list and no shell
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=timeout,
            )
        except FileNotFoundError:
            package = _PACKAGES.get(program, program)
            raise SentenceError(
                "%s is not installed on this host: install the package %s first." % (program, package)
            ) from None
        except subprocess.TimeoutExpired:
            raise CommandError(program, "nothing for %d s" % timeout) from None
        if done.returncode:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise CommandError(program, lines[-1] if lines else "nothing, with exit code %d" % done.returncode)
        return done.stdout

    def succeeds(self, *command: str) -> bool:
        """Whether a program ends without an error."""
        try:
            self.run(*command)
        except CommandError:
            return False
        return True

    def close(self) -> None:
        """There is nothing to let go of."""


def _open(params: dict[str, t.Any]) -> Host:
    return Host()


def _ready(arguments: dict[str, t.Any]) -> bool:
    return True


HOST = Way({}, _open, _ready)
