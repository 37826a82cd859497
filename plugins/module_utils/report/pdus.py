# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readings of PDUs from playbooks: validation, and their table. No I/O."""

from __future__ import annotations

import typing as t

from . import validation
from .validation import REQUIRED, Object, Spec, list_of, mapping_of, or_none, text

Readings = t.Mapping[str, t.Mapping[str, t.Any]]  # by the name of the PDU, each of which was read or failed

# The result of pdu_info; a failed one has no device.
_READING: Spec = {
    "device": (or_none(mapping_of(validation.any_value)), None),
    "alarms": (or_none(list_of(validation.any_value)), None),
    "msg": (or_none(text), None),
}
_ALARM: Spec = {"reason": (text, REQUIRED)}
_NO_REASON = "Cannot read the PDU. Check its address and network."


def checked(value: t.Any) -> dict[str, Object]:
    """Return the checked readings with defaults. Raises ValueError with a clause that names the place."""
    if not mapping_of(validation.any_value)(value):
        raise ValueError("it is not a mapping from names of PDUs to results")
    return {name: _checked(name, reading) for name, reading in value.items()}


def _checked(name: str, value: t.Any) -> Object:
    reading = validation.filled(value, _READING, name)
    numbered = enumerate(reading["alarms"] or (), 1)
    reading["alarms"] = [
        validation.filled(item, _ALARM, "alarm %d of %s" % (number, name)) for number, item in numbered
    ]
    return reading


def table(readings: Readings) -> list[dict[str, t.Any]]:
    """Return name, state and problems of each PDU.

    Values that vary all the time, such as the load, would change the report with every run.
    """
    return [
        {
            "name": name,
            "state": "no data" if reading["device"] is None else "alarm" if reading["alarms"] else "normal",
            "problems": problems(reading),
        }
        for name, reading in readings.items()
    ]


def problems(reading: t.Mapping[str, t.Any]) -> list[str]:
    """Return the reason why a PDU was not read, else its alarms."""
    if reading["device"] is None:
        return [reading["msg"] or _NO_REASON]
    return [alarm["reason"] for alarm in reading["alarms"]]
