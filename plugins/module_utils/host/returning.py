# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: a timer of the host's own brings the former files back, unless somebody can still say not to."""

from __future__ import annotations

import shlex
import shutil
import typing as t
from pathlib import Path

from .commands import Host

FOLDER = Path("/var/lib/openipu/network-return")
_SCRIPT = FOLDER / "return"
UNIT = "openipu-network-return"


def arm(
    host: Host, files: t.Collection[str], links: t.Sequence[str], after: t.Sequence[t.Sequence[str]], seconds: int
) -> None:
    """Keep the present files, and have them back after so many seconds.

    ``files`` are the paths of all that is about to be written or removed, ``links`` the interfaces that come of them,
    ``after`` are the commands that have the files read; one that fails does not keep the others from being run.
    """
    disarm(host)
    FOLDER.mkdir(mode=0o700, parents=True)
    lines = ["#!/bin/sh", "# What was there before; run by %s.timer unless it is stopped." % UNIT]
    for number, path in enumerate(sorted(files)):
        kept = FOLDER / str(number)
        if Path(path).exists():
            shutil.copy2(path, kept)
            lines.append("cp -p %s %s" % (kept, shlex.quote(path)))
        else:
            lines.append("rm -f %s" % shlex.quote(path))
    lines += ["ip link delete %s 2>/dev/null" % shlex.quote(name) for name in links]
    lines += [*map(shlex.join, after), "rm -r %s" % FOLDER]
    _SCRIPT.write_text("\n".join(lines) + "\n")
    command = ["systemd-run", "--quiet", "--collect", "--unit=%s" % UNIT, "--on-active=%d" % seconds]
    host.run(*command, "--timer-property=AccuracySec=1s", "/bin/sh", str(_SCRIPT))


def now(host: Host) -> None:
    """Go back at once."""
    host.succeeds("systemctl", "stop", UNIT + ".timer")
    host.run("/bin/sh", str(_SCRIPT))


def armed() -> bool:
    """Whether somebody has yet to say that what was changed may stay."""
    return FOLDER.is_dir()


def disarm(host: Host) -> None:
    """What was changed may stay."""
    host.succeeds("systemctl", "stop", UNIT + ".timer")
    shutil.rmtree(FOLDER, ignore_errors=True)
