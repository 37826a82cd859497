# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects that switches and PDUs of a rack twin have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openipu.twin.cables.wiring import Defect


def device_defects(
    name: str, faults: Any | None, verbs: Mapping[str, tuple[Mapping[str, Any], str]]
) -> Iterator[Defect]:
    """Yield the defects of a device.

    Args:
        name: name of the device.
        faults: its settings of faults; None when it has no power.
        verbs: verb of a fault -> settings that it makes, description.
    """
    if faults is None:
        yield Defect("stop", name, f"{name}: has no power.")
        return
    if faults.slow:
        yield Defect("slow", name, f"{name}: responds {faults.slow:g} s late.", f"{faults.slow:g}", "0")
    for verb, (settings, description) in verbs.items():
        if all(getattr(faults, setting) for setting in settings):
            yield Defect(verb, name, f"{name}: {description}.")
