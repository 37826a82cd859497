# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of machines and devices in the faults of a rehearsal. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from openipu.shared.pod import model
from openipu.twin.rack.fault_lines import FaultError, parse, remedy, targets


def parsed(lines: Sequence[str], pod: model.Pod) -> list[str]:
    """Return faults in their normal form. Raises FaultError for unknown verbs, machines and devices."""
    devices = [device for rack in pod.racks for device in (*rack.switches, *rack.pdus)]
    known = {machine.agent for machine in pod.machines} | {each.name for each in (*pod.machines, *devices)}
    found = []
    for line in lines:
        words = parse(line)
        for name in targets(words):
            if name not in known:
                better = remedy(name, known, "Name a machine, switch or PDU of pod.yml.")
                raise FaultError(f"Cannot apply fault {line.strip()!r}: the POD has no {name!r}. {better}")
        found.append(shlex.join(words))
    return found
