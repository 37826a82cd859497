# SPDX-License-Identifier: GPL-3.0-or-later
"""Data of the panels of a dashboard, and its texts. No I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY_SCALES = ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_SUFFIXES = {
    "amp": " A",
    "bps": " b/s",
    "bytes": " B",
    "celsius": " °C",
    "hertz": " Hz",
    "percent": " %",
    "volt": " V",
    "watt": " W",
    "watth": " Wh",
}


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


def segments(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Return points without the gaps between them, such as those of a target that did not respond."""
    steps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    parts = [[points[0]]]
    for step, point in zip(steps, points[1:], strict=True):
        if step > 1.5 * min(steps):
            parts.append([])
        parts[-1].append(point)
    return parts


def legend(template: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series: the template with the values of labels."""
    text = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), template)
    return " ".join(text.split())


def value_text(value: float, unit: str) -> str:
    """Return a value with its unit, with at most three significant digits."""
    if unit == "percentunit":
        return f"{_digits(value * 100)} %"
    if unit == "s":
        return f"{_digits(value)} s" if _rounded(value) >= 1 or value == 0 else f"{_digits(value * 1000)} ms"
    suffix = _SUFFIXES.get(unit, "")
    for scale, prefix in _BINARY_SCALES if unit == "bytes" else _SCALES:
        if abs(_rounded(value / scale)) >= 1:  # 999.6 is 1 k
            return f"{_digits(value / scale)} {prefix}{suffix.strip()}"
    return f"{_digits(value)}{suffix}"


def _rounded(value: float) -> float:
    """Return a number with three significant digits."""
    return float(f"{value:.3g}")


def _digits(value: float) -> str:
    """Return a number with three significant digits, without an exponent."""
    return f"{Decimal(f'{value:.3g}'):f}"


def shown(value: float, field: Mapping[str, Any]) -> str:
    """Return the text of a value: that of its mapping, or the number with its unit."""
    for mapping in field["mappings"]:
        text = mapping["options"].get(f"{value:g}")
        if text:
            return str(text["text"])
    return value_text(value, field["unit"])


def colour(value: float, field: Mapping[str, Any]) -> str:
    """Return the name of the colour of a value: that of its mapping, or of the last threshold that it reaches."""
    for mapping in field["mappings"]:
        text = mapping["options"].get(f"{value:g}", {})
        if "color" in text:
            return str(text["color"])
    steps = field["thresholds"]["steps"]
    return str([each["color"] for each in steps if each["value"] is None or value >= each["value"]][-1])


def marks(lowest: float, highest: float, unit: str) -> list[float]:
    """Return the numbers of an axis: those of ``scale``, and for bytes multiples of a binary unit."""
    factor = next((each for each, _ in _BINARY_SCALES if highest >= each), 1) if unit == "bytes" else 1
    return [each * factor for each in scale(lowest / factor, highest / factor)]


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
