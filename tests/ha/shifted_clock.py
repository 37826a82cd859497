# SPDX-License-Identifier: GPL-3.0-or-later
"""A ``vipu-server`` whose wall clock is wrong by the seconds in the file that ``OPENIPU_HA_CLOCK`` names.

gRPC calculates its deadlines with the true clock, so only modules of this package use the wrong one.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import openipu.vipu.server.replica  # noqa: F401 - imported late otherwise, with the true clock
from openipu.vipu.server.main import main

FILE = "OPENIPU_HA_CLOCK"  # environment variable


class ShiftedTime:
    """The module ``time`` with another ``time()``."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        """Return the wrong time, or the true one without the file."""
        try:
            return time.time() + float(self._file.read_text())
        except FileNotFoundError:
            return time.time()


def shift(file: Path) -> list[str]:
    """Replace the clock of all imported modules of the package. Return their names."""
    clock = ShiftedTime(file)
    modules = [
        (name, module)
        for name, module in list(sys.modules.items())
        if name.startswith("openipu.") and getattr(module, "time", None) is time
    ]
    for _, module in modules:
        module.time = clock  # type: ignore[attr-defined]
    return [name for name, _ in modules]


if __name__ == "__main__":
    assert "openipu.vipu.storage.etcd.store" in shift(Path(os.environ[FILE])), "the epoch has the true time"
    main()
