# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands in the messages of the twin, as a user can paste them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

STATE = Path(".twin")  # default state folder
REHEARSAL_VARIABLES = "rehearsal.json"  # file beside the pod.yml of a rehearsal, with the credentials of the twin


def program(name: str) -> str:
    """Return the shortest path of a program that is installed with this Python; the name if it has no such program.

    The name alone works only in an activated virtual environment. ``make`` has one, but its user may not.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        return name
    short = _short(path)
    return short if "/" in short else f"./{short}"


def command(folder: Path, name: str, *words: str) -> str:
    """Return a command of ``twin`` for a state folder; the default folder needs no option."""
    option = () if folder == STATE.absolute() else ("--state-dir", str(folder))
    return f"{program('twin')} {shlex.join((name, *words, *option))}"


def playbook(folder: Path, inventory: str, name: str) -> str:
    """Return the command that runs a playbook for the twin of a state folder."""
    # Twin inventories read the certificate authority of the switches from the state folder; a generated one is in it.
    known = folder == STATE.absolute() or Path(inventory).is_relative_to(folder)
    variable = "" if known else f"TWIN_STATE_DIR={shlex.quote(str(folder))} "
    file = f"playbooks/{name}.yml"
    playbook = file if Path(file).exists() else f"openipu.pod.{name}"
    extra = Path(inventory).with_name(REHEARSAL_VARIABLES)
    # Without these variables, the playbook of a rehearsal would use the secrets of the user, or skip all devices.
    option = f" -e @{_short(extra)}" if Path(inventory).is_relative_to(folder) and extra.exists() else ""
    return f"{variable}{program('ansible-playbook')} {playbook} -i {_short(Path(inventory))}{option}"


def _short(path: Path) -> str:
    """Return a path for a shell, relative to the working directory if it is inside of it."""
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
