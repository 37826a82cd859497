# SPDX-License-Identifier: GPL-3.0-or-later
"""Program that imports modules and prints what each import changed in its process, as JSON by module."""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

Snapshot = dict[str, dict[str, Any]]
LIBRARIES = ("pyasn1", "sqlalchemy")  # they configure their own logger at their import


def snapshot() -> Snapshot:
    """Return the parts of a process that an import must not change. Each part has named values."""
    return {
        "environment": dict(os.environ),
        "logging": {name: _configured(logger) for name, logger in _loggers().items()},
        "threads": {thread.name: True for thread in threading.enumerate()}
        | {f"native {task.name}": True for task in Path("/proc/self/task").iterdir()},
        "sockets": {fd: target for fd, target in _descriptors().items() if target.startswith("socket:")},
        "signals": {number.name: str(signal.getsignal(number)) for number in signal.Signals},
        "working folder": {"path": str(Path.cwd())},
        "garbage": {"collected": gc.isenabled()},
    }


def _loggers() -> dict[str, logging.Logger]:
    named = logging.root.manager.loggerDict.items()
    found = {name: logger for name, logger in named if isinstance(logger, logging.Logger) and name not in LIBRARIES}
    return {"root": logging.root, **found}


def _configured(logger: logging.Logger) -> list[Any] | None:
    """Return the settings of a logger, None for the defaults. Libraries may add a handler that does nothing."""
    handlers = [str(each) for each in logger.handlers if not isinstance(each, logging.NullHandler)]
    settings = [logger.level, handlers, logger.disabled, logger.propagate, len(logger.filters)]
    return None if settings == [0, [], False, True, 0] else settings


def _descriptors() -> dict[str, str]:
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            found[link.name] = str(link.readlink())
        except FileNotFoundError:  # of the listing itself
            continue
    return found


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """Return one line for each changed value."""
    return [
        f"{part} {name}: {before[part].get(name)} -> {after[part].get(name)}"
        for part in before
        for name in sorted(before[part].keys() | after[part].keys())
        if before[part].get(name) != after[part].get(name)
    ]


def main(names: list[str]) -> None:
    effects = {}
    before = snapshot()
    for name in names:
        importlib.import_module(name)
        after = snapshot()
        if found := differences(before, after):
            effects[name] = found
        before = after
    gc.unfreeze()  # imports of large libraries hide all objects
    engines = sum(type(each).__name__ == "SnmpEngine" for each in gc.get_objects())
    if engines:
        effects["all modules"] = [f"SNMP engines: {engines}"]
    print(json.dumps(effects))


if __name__ == "__main__":
    main(sys.argv[1:])
