# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Automatic rollback of network changes: a timer of the host restores the previous files unless it is cancelled."""

from __future__ import annotations

import shlex
import shutil
import time
import typing as t
from pathlib import Path

from ..reconcile import UserError
from .commands import CommandError, Host

FOLDER = Path("/var/lib/openipu/network-rollback")
_SCRIPT = FOLDER / "rollback"
_STARTED = FOLDER.with_name("network-rollback.started")  # exists from the start of a rollback until ``settle``
UNIT = "openipu-network-rollback"
_TOO_LATE = (
    "Cannot confirm the network change: the host has started to roll it back. "
    "Increase rollback_timeout, and repeat the change."
)
_POLL_SECONDS = 0.3
_ROLLBACK_SECONDS = 300  # for the restoration that the timer has started


def schedule(
    host: Host,
    files: t.Collection[str],
    links: t.Sequence[str],
    known: t.Sequence[t.Sequence[str]],
    after: t.Sequence[t.Sequence[str]],
    seconds: int,
) -> None:
    """Save the present files and schedule their restoration after this number of seconds.

    ``files`` are the paths that are about to be written or removed. ``links`` are the interfaces that they create,
    which the rollback deletes. ``known`` are commands that succeed until the service has noticed the deletions.
    ``after`` are the commands that apply the restored files; all run even if one fails. Call ``settle`` before.
    """
    FOLDER.mkdir(mode=0o700, parents=True)
    lines = [
        "#!/bin/sh",
        "# Restore the previous network configuration. %s.timer runs this unless it is stopped." % UNIT,
        "touch %s" % _STARTED,
    ]
    for number, path in enumerate(sorted(files)):
        saved = FOLDER / str(number)
        if Path(path).exists():
            shutil.copy2(path, saved)
            lines.append("cp -p %s %s" % (saved, shlex.quote(path)))
        else:
            lines.append("rm -f %s" % shlex.quote(path))
    lines += ["ip link delete %s 2>/dev/null" % shlex.quote(name) for name in links]
    wait = "n=0; while [ $n -lt 20 ] && %s >/dev/null 2>&1; do sleep 0.5; n=$((n + 1)); done"
    lines += [wait % shlex.join(query) for query in known]
    lines += [*map(shlex.join, after), "rm -r %s" % FOLDER]
    _SCRIPT.write_text("\n".join(lines) + "\n")
    command = ["systemd-run", "--quiet", "--collect", "--unit=%s" % UNIT, "--on-active=%d" % seconds]
    host.run(*command, "--timer-property=AccuracySec=1s", "/bin/sh", str(_SCRIPT))


def run_now(host: Host) -> None:
    """Run the scheduled rollback now, or wait for its end if the timer has started it.

    Raises CommandError if it fails or does not end.
    """
    host.succeeds("systemctl", "stop", UNIT + ".timer")
    _wait_until_ended(host)
    if _SCRIPT.exists():
        host.run("/bin/sh", str(_SCRIPT))
    _STARTED.unlink(missing_ok=True)  # the task that calls this fails, so no confirmation follows


def _wait_until_ended(host: Host) -> None:
    """Wait for the end of a rollback that the timer has started, if one is running.

    Raises CommandError if it does not end.
    """
    deadline = time.monotonic() + _ROLLBACK_SECONDS
    while _is_running(host):
        if time.monotonic() > deadline:
            raise CommandError(str(_SCRIPT), "it did not finish within %d s" % _ROLLBACK_SECONDS)
        time.sleep(_POLL_SECONDS)


def settle(host: Host, check_mode: bool) -> bool:
    """Leave no rollback of an earlier change, and return whether this confirms it.

    Wait for the end of a rollback that the timer has started. A scheduled one is cancelled: the call proves that the
    host is reachable.
    """
    if not check_mode:
        host.succeeds("systemctl", "stop", UNIT + ".timer")
    _wait_until_ended(host)
    confirms = FOLDER.is_dir() and not _STARTED.exists()
    if not check_mode:
        _forget()
    return confirms


def confirm(host: Host, check_mode: bool) -> bool:
    """Cancel the scheduled rollback, and return whether there is one. Raises UserError if it has started."""
    if not check_mode:
        host.succeeds("systemctl", "stop", UNIT + ".timer")
    if _is_running(host) or _STARTED.exists():
        raise UserError(_TOO_LATE)
    scheduled = FOLDER.is_dir()
    if scheduled and not check_mode:
        _forget()
    return scheduled


def _forget() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    _STARTED.unlink(missing_ok=True)


def _is_running(host: Host) -> bool:
    return host.succeeds("systemctl", "is-active", "--quiet", UNIT + ".service")
