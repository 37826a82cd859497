# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing of a dashboard as SVG, in the layout of its model. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tools.dashboards.data import Series, colour, marks, segments, shown, value_text

WIDTH, COLUMN, ROW, GAP = 1200, 50, 34, 6  # pixels: the picture, the grid of the model, and the space around panels
# Colours of series, from the palette of Grafana.
_PALETTE = (
    "#7eb26d",
    "#eab839",
    "#6ed0e0",
    "#ef843c",
    "#e24d42",
    "#1f78c1",
    "#ba43a9",
    "#705da0",
    "#508642",
    "#cca300",
)
_NAMED = {"blue": "#3274d9", "green": "#56a64b", "orange": "#ff9830", "red": "#e02f44"}
_STYLE = """
text { font: 11px "DejaVu Sans", Verdana, sans-serif; fill: var(--ink) }
.title { font-weight: bold; font-size: 12px } .row { font-weight: bold; font-size: 13px }
.big { font-size: 22px; font-weight: bold } .faint { fill: var(--faint) }
svg { --paper: #f4f5f5; --panel: #fff; --ink: #24292e; --faint: #6e7680; --line: #d8dadf }
@media (prefers-color-scheme: dark) {
svg { --paper: #111217; --panel: #181b1f; --ink: #d5d6db; --faint: #9297a3; --line: #34363d } }
"""
_CHARACTER, _BOLD = 7.0, 8.2  # pixels of most characters
_NARROW, _WIDE = frozenset(" !'(),./:;I[]fijlrt|"), frozenset("%@MWmw")
_TABLE_ROW, _BAR_ROW = 18, 20
_MORE = 96  # pixels for the number of names that do not fit into a legend
_HIDDEN = ("__name__", "instance", "job")
_NO_DATA = "No data"

Box = tuple[float, float, float, float]
"""Left, top, width and height."""
Data = Mapping[int, Sequence[Series]]
"""Series of each panel, by its number."""
Period = tuple[float, float]
"""First and last second."""


def picture(model: Mapping[str, Any], data: Data, period: Period) -> str:
    """Return a dashboard as SVG. As in Grafana, all panels show the same period.

    Rows whose panels have no data are omitted.
    """
    blocks = _blocks(model["panels"], data)
    height = sum(bottom - top for top, bottom, _ in blocks) * ROW + 2 * GAP
    title = f"Dashboard {model['title']}"
    root = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}", role="img")
    root.set("aria-label", title)
    SubElement(root, "style").text = _STYLE
    _rectangle(root, (0, 0, WIDTH, height), "var(--paper)")
    shift = 0
    for top, bottom, panels in blocks:
        for panel in panels:
            grid = panel["gridPos"]
            box = (
                grid["x"] * COLUMN + GAP / 2,
                (grid["y"] - top + shift) * ROW + GAP,
                grid["w"] * COLUMN - GAP,
                grid["h"] * ROW - GAP,
            )
            _panel(root, panel, box, data, period)
        shift += bottom - top
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _blocks(panels: Sequence[Mapping[str, Any]], data: Data) -> list[tuple[int, int, list[Mapping[str, Any]]]]:
    """Return the rows that have data, each with its first line, the line after it, and its panels."""
    rows: list[list[Mapping[str, Any]]] = []
    for panel in panels:
        if panel["type"] == "row":
            rows.append([])
        rows[-1].append(panel)
    found = []
    for row in rows:
        places = [panel["gridPos"] for panel in row]
        if any(data.get(panel["id"]) for panel in row):
            found.append((places[0]["y"], max(place["y"] + place["h"] for place in places), row))
    return found


def _panel(root: Element, panel: Mapping[str, Any], box: Box, data: Data, period: Period) -> None:
    left, top, width, height = box
    if panel["type"] == "row":
        _text(root, left + 4, top + 18, panel["title"], "row")
        return
    _rectangle(root, box, "var(--panel)", "var(--line)")
    _text(root, left + 8, top + 17, _cut(panel["title"], width - 16, _BOLD), "title")
    inner = (left + 8, top + 26, width - 16, height - 32)
    found = data.get(panel["id"], ())
    if not found:
        _text(root, left + width / 2, top + height / 2 + 4, _NO_DATA, "faint", "middle")
        return
    field = panel["fieldConfig"]["defaults"]
    if panel["type"] in _OVER_TIME:
        _OVER_TIME[panel["type"]](root, inner, found, field, period)
    else:
        _LATEST[panel["type"]](root, inner, found, field)


def _stat(root: Element, box: Box, found: Sequence[Series], field: Mapping[str, Any]) -> None:
    left, top, width, height = box
    columns = min(len(found), 8)
    lines = -(-len(found) // columns)
    for number, each in enumerate(found):
        x = left + (number % columns + 0.5) * width / columns
        y = top + (number // columns + 0.5) * height / lines
        style = "big" if len(found) <= columns else ""
        _text(root, x, y + 2, shown(each.last, field), style, "middle", _NAMED[colour(each.last, field)])
        if len(found) > 1:
            _text(root, x, y + 18, _cut(each.name, width / columns), "faint", "middle")


def _bars(root: Element, box: Box, found: Sequence[Series], field: Mapping[str, Any]) -> None:
    left, top, width, height = box
    highest = field.get("max") or max(each.last for each in found) or 1
    fitting = int(height // _BAR_ROW)
    kept = found if len(found) <= fitting else found[: fitting - 1]
    names = min(width * 0.5, max(_length(each.name) for each in kept) + 8)
    start = left + names
    space = width - names - max(_length(shown(each.last, field)) for each in kept) - 8
    for number, each in enumerate(kept):
        y = top + number * _BAR_ROW
        _text(root, left, y + 14, _cut(each.name, names))
        _rectangle(root, (start, y + 3, space, 14), "var(--paper)")
        fill = _NAMED[colour(each.last, field)]
        _rectangle(root, (start, y + 3, space * min(each.last / highest, 1), 14), fill)
        _text(root, left + width, y + 14, shown(each.last, field), "", "end")
    _count_omitted(root, left, top + 14 + len(kept) * _BAR_ROW, len(found) - len(kept))


def _table(root: Element, box: Box, found: Sequence[Series], field: Mapping[str, Any]) -> None:
    left, top, width, height = box
    names = sorted({name for each in found for name in each.labels if name not in _HIDDEN})
    lines = [[*(each.labels.get(name, "") for name in names), shown(each.last, field)] for each in found]
    titles = [*names, "value"]
    sizes = [max(len(text) for text in column) + 3 for column in zip(titles, *lines, strict=True)]
    widths = [size * min(width / sum(sizes), _BOLD) for size in sizes]
    lefts = [left + sum(widths[:place]) for place in range(len(widths))]
    for x, size, title in zip(lefts, widths, titles, strict=True):
        _text(root, x, top + 12, _cut(title, size, _BOLD), "title")
    fitting = int(height // _TABLE_ROW) - 1
    kept = lines if len(lines) <= fitting else lines[: fitting - 1]
    for number, line in enumerate(kept, 1):
        for x, size, text in zip(lefts, widths, line, strict=True):
            _text(root, x, top + 12 + number * _TABLE_ROW, _cut(text, size))
    _count_omitted(root, left, top + 12 + fitting * _TABLE_ROW, len(lines) - len(kept))


def _count_omitted(root: Element, x: float, y: float, omitted: int) -> None:
    if omitted:
        _text(root, x, y, f"… and {omitted} more", "faint")


def _states(root: Element, box: Box, found: Sequence[Series], field: Mapping[str, Any], period: Period) -> None:
    left, top, width, height = box
    names = min(width * 0.3, max(_length(each.name) for each in found) + 6)
    start, end = period
    line = (height - 14) / len(found)
    labelled = line >= 10
    for number, each in enumerate(found):
        y = top + number * line
        if labelled:
            _text(root, left, y + line / 2 + 4, _cut(each.name, names))
        for first, last, value in (run for part in segments(each.points) for run in _runs(part)):
            x = left + names + (width - names) * (first - start) / (end - start)
            length = (width - names) * (last - first) / (end - start)
            _rectangle(root, (x, y + line * 0.05, length, line * 0.9), _NAMED[colour(value, field)])
    _times(root, (left + names, top, width - names, height), start, end)


def _lines(root: Element, box: Box, found: Sequence[Series], field: Mapping[str, Any], period: Period) -> None:
    left, top, width, height = box
    stacked = field["custom"]["stacking"]["mode"] == "normal"
    curves = _stacked(found) if stacked else [list(each.points) for each in found]
    start, end = period
    values = [value for curve in curves for _, value in curve]
    lowest = 0.0 if stacked or "max" in field else min(values)
    axis = marks(lowest, max(field.get("max", 0), *values), field["unit"])
    texts = [value_text(mark, field["unit"]) for mark in axis]
    names = max(map(_length, texts)) + 6
    plot = (left + names, top + 4, width - names, height - 40)

    def place(when: float, value: float) -> str:
        x = plot[0] + plot[2] * (when - start) / (end - start)
        y = plot[1] + plot[3] * (1 - (value - axis[0]) / (axis[-1] - axis[0]))
        return f"{x:.1f},{y:.1f}"

    for mark, text in zip(axis, texts, strict=True):
        y = plot[1] + plot[3] * (1 - (mark - axis[0]) / (axis[-1] - axis[0]))
        SubElement(root, "path", d=f"M{plot[0]:.1f},{y:.1f}h{plot[2]:.1f}", stroke="var(--line)", fill="none")
        _text(root, plot[0] - 4, y + 4, text, "faint", "end")
    for number, curve in reversed(list(enumerate(curves))):
        path = "".join("M" + "L".join(place(*point) for point in part) for part in segments(curve))
        line = SubElement(root, "path", d=path, stroke=_PALETTE[number % len(_PALETTE)], fill="none")
        line.set("stroke-width", "1.3")
    _times(root, (plot[0], plot[1], plot[2], plot[3] + 14), start, end)
    _legend(root, (left, top + height - 2, width, 0), found)


def _legend(root: Element, box: Box, found: Sequence[Series]) -> None:
    left, bottom, width, _ = box
    x = left
    for number, each in enumerate(found):
        length = _length(each.name) + 24
        if x + length > left + width - _MORE and number < len(found) - 1:
            _text(root, x, bottom, f"… and {len(found) - number} more", "faint")
            return
        _rectangle(root, (x, bottom - 6, 9, 3), _PALETTE[number % len(_PALETTE)])
        _text(root, x + 12, bottom, each.name)
        x += length


_LATEST: dict[str, Callable[[Element, Box, Sequence[Series], Mapping[str, Any]], None]] = {
    "stat": _stat,
    "bargauge": _bars,
    "table": _table,
}
_OVER_TIME: dict[str, Callable[[Element, Box, Sequence[Series], Mapping[str, Any], Period], None]] = {
    "state-timeline": _states,
    "timeseries": _lines,
}


def _stacked(found: Sequence[Series]) -> list[list[tuple[float, float]]]:
    """Return the curves of series that are added up, at the times of all of them."""
    total: dict[float, float] = {when: 0.0 for each in found for when, _ in each.points}
    curves = []
    for each in found:
        for when, value in each.points:
            total[when] += value
        curves.append(sorted(total.items()))
    return curves


def _runs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """Return the intervals with equal values: start, end and value."""
    runs: list[tuple[float, float, float]] = []
    for when, value in points:
        if runs and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], when, value)
        else:
            if runs:
                runs[-1] = (runs[-1][0], when, runs[-1][2])
            runs.append((when, when, value))
    return runs


def _times(root: Element, box: Box, start: float, end: float) -> None:
    """Write the minutes and seconds since the start below a plot."""
    left, top, width, height = box
    for place, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        seconds = round((end - start) * place)
        _text(root, left + width * place, top + height, f"{seconds // 60}:{seconds % 60:02}", "faint", anchor)


def _text(root: Element, x: float, y: float, text: str, style: str = "", anchor: str = "start", fill: str = "") -> None:
    element = SubElement(root, "text", x=f"{x:.1f}", y=f"{y:.1f}")
    if style:
        element.set("class", style)
    if anchor != "start":
        element.set("text-anchor", anchor)
    if fill:
        element.set("style", f"fill: {fill}")
    element.text = text


def _rectangle(root: Element, box: Box, fill: str, line: str = "") -> None:
    left, top, width, height = (f"{max(value, 0):.1f}" for value in box)
    element = SubElement(root, "rect", x=left, y=top, width=width, height=height, fill=fill)
    if line:
        element.set("stroke", line)


def _length(text: str, character: float = _CHARACTER) -> float:
    """Return the approximate width of a text in pixels."""
    return character * sum(0.6 if each in _NARROW else 1.4 if each in _WIDE else 1.0 for each in text)


def _cut(text: str, width: float, character: float = _CHARACTER) -> str:
    """Return a text that fits into a width."""
    if _length(text, character) <= width:
        return text
    most = next(end for end in range(len(text) - 1, -1, -1) if _length(f"{text[:end]}…", character) <= width or not end)
    return f"{text[:most]}…"
