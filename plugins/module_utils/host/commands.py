# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the host on which a module runs."""

from __future__ import annotations

import os
import subprocess
import typing as t

from ..reconcile import UserError
from ..runner import Connector

# The path of a login without a shell may lack the folders of system programs.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES = {
    "ip": "iproute2",
    "mdadm": "mdadm",
    "mkfs.xfs": "xfsprogs",
    "networkctl": "systemd",
    "nmcli": "NetworkManager",
}


class CommandError(UserError):
    """Raised when a program fails; ``reason`` is the last line of its output, or the cause if there is none."""

    error_code = "OPU402"

    def __init__(self, program: str, reason: str) -> None:
        self.reason = reason.rstrip(".")
        super().__init__("Command '%s' failed: %s." % (program, self.reason))


def format_cause(error: Exception) -> str:
    """Return the message of an error for use after a colon in another message."""
    text = error.message if isinstance(error, UserError) else str(error)
    return "%s%s." % (text[:1].lower(), text[1:].rstrip("."))


class Host:
    """The host of the task."""

    def run(self, *command: str, timeout: float = 300) -> str:
        """Run a program and return its output; ``timeout`` is in seconds.

        Raises CommandError when it fails, and UserError when it is not installed.
        """
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
            raise UserError(
                "Cannot run '%s': it is not installed on this host. Install the package '%s'." % (program, package)
            ) from None
        except subprocess.TimeoutExpired:
            raise CommandError(program, "it did not finish within %d s" % timeout) from None
        if done.returncode:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise CommandError(program, lines[-1] if lines else "exit code %d without a message" % done.returncode)
        return done.stdout

    def succeeds(self, *command: str) -> bool:
        """Run a program and return whether it ends without an error."""
        try:
            self.run(*command)
        except CommandError:
            return False
        return True

    def close(self) -> None:
        """Do nothing: there is no connection to close."""


def _open(params: dict[str, t.Any]) -> Host:
    return Host()


def _ready(arguments: dict[str, t.Any]) -> bool:
    return True


HOST = Connector({}, _open, _ready)
