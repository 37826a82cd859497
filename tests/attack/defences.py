# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches of defences, in this process and in processes that a test starts."""

from __future__ import annotations

import importlib
import os
import pickle
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.integration import vipu_servers

VARIABLE = "OPENIPU_ATTACK_SWITCHES"


@dataclass(frozen=True)
class Switch:
    """A defence and the value that switches it off. ``target``: dotted name of an attribute of a module or class."""

    target: str
    off: Any

    def find(self) -> tuple[Any, str]:
        """Return the owner of the attribute and its name. Raises AttributeError for a name that does not exist."""
        names = self.target.split(".")
        for end in range(len(names) - 1, 0, -1):
            try:
                owner: Any = importlib.import_module(".".join(names[:end]))
            except ModuleNotFoundError:
                continue
            for name in names[end:-1]:
                owner = getattr(owner, name)
            getattr(owner, names[-1])
            return owner, names[-1]
        raise AttributeError(f"Cannot switch off {self.target!r}: no module has that name.")


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with the switches of the running test."""
    return [sys.executable, "-m", "tests.attack.defences", module, *arguments]


def replace(monkeypatch: pytest.MonkeyPatch, *switches: Switch) -> None:
    """Replace parts of the controller until a test ends, here and in the controllers that it starts."""
    for switch in switches:
        monkeypatch.setattr(*switch.find(), switch.off)
    monkeypatch.setenv(VARIABLE, export([*_load(), *switches]))
    monkeypatch.setattr(vipu_servers, "command", partial(command, "openipu.vipu.server.main"))


def export(switches: Sequence[Switch]) -> str:
    """Return the value of the environment variable for processes with these defences off."""
    return pickle.dumps(list(switches)).hex()


def switch_off() -> None:
    """Switch off the defences of the environment variable in this process."""
    for switch in _load():
        owner, name = switch.find()
        setattr(owner, name, switch.off)


def _load() -> list[Switch]:
    """Return the switches of the environment variable."""
    switches: list[Switch] = pickle.loads(bytes.fromhex(os.environ.get(VARIABLE, export([]))))
    return switches


def main() -> None:
    """Switch off the defences of the environment variable. Run the module of the first argument."""
    switch_off()
    del sys.argv[0]
    # A module that is imported already keeps its changed attributes; running it as __main__ would make a second one.
    module = importlib.import_module(sys.argv[0])
    if hasattr(module, "main"):
        sys.argv[0] = module.__name__
        module.main()
    else:
        runpy.run_module(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
