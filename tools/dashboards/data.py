# SPDX-License-Identifier: GPL-3.0-or-later
"""Data of the panels of a dashboard, and its texts. No I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SUFFIXES = {"amp": " A", "celsius": " °C", "hertz": " Hz", "volt": " V", "watt": " W", "watth": " Wh"}


@dataclass(frozen=True)
class Series:
    """Values of one series, as pairs of seconds and value in the order of time."""

    labels: Mapping[str, str]
    name: str
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        """Newest value."""
        return self.points[-1][1]


def series(target: Mapping[str, Any], result: Sequence[Mapping[str, Any]]) -> list[Series]:
    """Return the series of a response of Prometheus to the query of a target, named by its legend."""
    found = []
    for each in result:
        pairs = each["values"] if "values" in each else [each["value"]]
        points = [(float(when), float(value)) for when, value in pairs if not math.isnan(float(value))]
        if points:
            found.append(Series(each["metric"], legend(target["legendFormat"], each["metric"]), points))
    return sorted(found, key=lambda one: one.name)


def legend(template: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series: the template with the values of labels."""
    text = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), template)
    return " ".join(text.split())


def value_text(value: float, unit: str) -> str:
    """Return a value with its unit, with at most three significant digits."""
    value = float(f"{value:.3g}")  # before the choice of the prefix: 999.6 is 1 k
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 or value == 0 else f"{value * 1000:.3g} ms"
    for scale, prefix in _SCALES:
        if abs(value) >= scale:
            suffix = _SUFFIXES.get(unit, "")
            return f"{value / scale:.3g} {prefix}{suffix.strip()}"
    return f"{value:.3g}{_SUFFIXES.get(unit, '')}"


def shown(value: float, field: Mapping[str, Any]) -> str:
    """Return the text of a value: that of its mapping, or the number with its unit."""
    for mapping in field["mappings"]:
        text = mapping["options"].get(f"{value:g}")
        if text:
            return str(text["text"])
    return value_text(value, field["unit"])


def colour(value: float, field: Mapping[str, Any]) -> str:
    """Return the name of the colour of a value: that of the last threshold that it reaches."""
    steps = field["thresholds"]["steps"]
    return str([each["color"] for each in steps if each["value"] is None or value >= each["value"]][-1])


def scale(lowest: float, highest: float) -> list[float]:
    """Return three to six round numbers that include a range. That of a constant positive value begins at 0."""
    if highest - lowest < abs(highest) / 50:
        lowest = min(lowest, 0)
    if highest <= lowest:
        highest = lowest + 1
    rough = (highest - lowest) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
    first = math.floor(lowest / step)
    return [number * step for number in range(first, math.ceil(highest / step - 1e-9) + 1)]
