# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Grafana dashboards from a few lines each. Pure.

A dashboard is declared as what is to be seen, and this lays it out and says it in Grafana's own model::

    uid: openipu-power
    title: Power
    variables: {pdu: 'label_values(pdu:power_watts:current, host)'}
    rows:
      - title: PDUs
        panels:
          - {title: Power, unit: watt, queries: {"{{host}}": 'pdu:power_watts:current{host=~"$pdu"}'}}

A panel is a ``timeseries`` unless ``kind`` says ``stat``, ``bargauge``, ``table`` or ``state-timeline``. ``queries``
are legends with what is shown under them. ``width`` is of 24, and equal shares of a row unless given. ``steps`` are the
values from which on it is orange and red; ``names`` are texts for values.
"""

from __future__ import annotations

import typing as t

KINDS = ("timeseries", "stat", "bargauge", "table", "state-timeline")
WIDTH = 24
HEIGHTS = {"stat": 4, "state-timeline": 6}
_KEYS = {"title", "kind", "unit", "queries", "width", "height", "steps", "names", "about", "max", "stack"}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TEXT_OF_NOTHING = "-"


class DeclarationError(ValueError):
    """A sentence on what is wrong with a declaration."""


def dashboard(declared: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The model of a dashboard, as Grafana imports it; raises DeclarationError."""
    title = _needed(declared, "title", "A dashboard")
    panels: list[dict[str, t.Any]] = []
    top = 0
    for row in _needed(declared, "rows", f"Dashboard '{title}'"):
        panels.append(_row(row["title"], top, len(panels) + 1))
        top += 1
        laid, top = _laid_out(row["panels"], top, len(panels) + 1, f"Dashboard '{title}'")
        panels.extend(laid)
    variables = [_datasource(), *(_variable(*item) for item in declared.get("variables", {}).items())]
    return {
        "uid": _needed(declared, "uid", f"Dashboard '{title}'"),
        "title": title,
        "description": declared.get("about", ""),
        "tags": ["openipu"],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "annotations": {"list": [_alerts()]},
        "links": [_others()],
        "panels": panels,
    }


def queries(declared: t.Mapping[str, t.Any]) -> list[tuple[str, str]]:
    """Every query of a dashboard, each with the panel or variable that asks it."""
    found = [(f"variable {name}", query) for name, query in declared.get("variables", {}).items()]
    for row in declared["rows"]:
        for panel in row["panels"]:
            found.extend((panel["title"], query) for query in panel["queries"].values())
    return found


def _needed(declared: t.Mapping[str, t.Any], key: str, what: str) -> t.Any:
    if not declared.get(key):
        raise DeclarationError(f"{what} has no '{key}': give it one.")
    return declared[key]


def _laid_out(declared: list[dict[str, t.Any]], top: int, number: int, what: str) -> tuple[list[dict[str, t.Any]], int]:
    """Panels from left to right, in as many lines as they need, and where the next line begins."""
    share = WIDTH // max(1, min(len(declared), 4))
    panels, left, height = [], 0, 0
    for panel in declared:
        width = panel.get("width", share)
        if left + width > WIDTH:
            left, top, height = 0, top + height, 0
        made = _panel(panel, number + len(panels), what)
        tall = panel.get("height", HEIGHTS.get(made["type"], 8))
        made["gridPos"] = {"x": left, "y": top, "w": width, "h": tall}
        panels.append(made)
        left, height = left + width, max(height, tall)
    return panels, top + height


def _panel(declared: t.Mapping[str, t.Any], number: int, what: str) -> dict[str, t.Any]:
    title = _needed(declared, "title", f"A panel of {what}")
    unknown = sorted(set(declared) - _KEYS)
    if unknown:
        raise DeclarationError(
            f"Panel '{title}' of {what} has {', '.join(unknown)}: it may have {', '.join(sorted(_KEYS))}."
        )
    kind = declared.get("kind", "timeseries")
    if kind not in KINDS:
        raise DeclarationError(f"Panel '{title}' of {what} is of kind '{kind}': choose {', '.join(KINDS)}.")
    asked = _needed(declared, "queries", f"Panel '{title}' of {what}")
    return {
        "id": number,
        "type": kind,
        "title": title,
        "description": declared.get("about", ""),
        "datasource": _SOURCE,
        "targets": [_target(*item, kind, place) for place, item in enumerate(asked.items())],
        "fieldConfig": {"defaults": _field(declared, kind), "overrides": []},
        "options": _options(kind),
        **({"transformations": _columns()} if kind == "table" else {}),
    }


def _target(legend: str, query: str, kind: str, place: int) -> dict[str, t.Any]:
    now = kind in ("stat", "bargauge", "table")
    return {
        "refId": chr(ord("A") + place),
        "datasource": _SOURCE,
        "expr": " ".join(query.split()),
        "legendFormat": legend,
        "instant": now,
        "range": not now,
        "format": "table" if kind == "table" else "time_series",
    }


def _field(declared: t.Mapping[str, t.Any], kind: str) -> dict[str, t.Any]:
    colours = ("green", "orange", "red")
    steps = [{"color": colours[0], "value": None}]
    steps += [
        {"color": colours[min(place, 2)], "value": value} for place, value in enumerate(declared.get("steps", ()), 1)
    ]
    if len(steps) == 2:
        steps[1]["color"] = "red"
    field: dict[str, t.Any] = {
        "unit": declared.get("unit", "short"),
        "noValue": _TEXT_OF_NOTHING,
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "palette-classic" if kind == "timeseries" else "thresholds"},
        "mappings": [],
    }
    if "max" in declared:
        field.update(min=0, max=declared["max"])
    if "names" in declared:
        texts = {
            str(value): {"text": text, "index": place} for place, (value, text) in enumerate(declared["names"].items())
        }
        field["mappings"] = [{"type": "value", "options": texts}]
    if kind == "timeseries":
        stacking = {"mode": "normal" if declared.get("stack") else "none", "group": "A"}
        field["custom"] = {"fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "stacking": stacking}
    return field


def _options(kind: str) -> dict[str, t.Any]:
    last = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    return {
        "timeseries": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "stat": {
            "reduceOptions": last,
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
        },
        "bargauge": {
            "reduceOptions": last,
            "displayMode": "gradient",
            "orientation": "horizontal",
            "showUnfilled": True,
        },
        "table": {"showHeader": True, "cellHeight": "sm"},
        "state-timeline": {"mergeValues": True, "showValue": "never", "rowHeight": 0.9, "alignValue": "left"},
    }[kind]


def _columns() -> list[dict[str, t.Any]]:
    """A table shows labels and value; when and by whom it was scraped is left out."""
    hidden = dict.fromkeys(("Time", "__name__", "instance", "job"), True)
    return [{"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": {}}}]


def _row(title: str, top: int, number: int) -> dict[str, t.Any]:
    place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _variable(name: str, query: str) -> dict[str, t.Any]:
    return {
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "hide": 0,
    }


def _datasource() -> dict[str, t.Any]:
    return {
        "name": "datasource",
        "label": "Source",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
        "refresh": 1,
    }


def _alerts() -> dict[str, t.Any]:
    """Alerts that fire, drawn over everything."""
    return {
        "name": "Alerts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertstate="firing",severity="critical"}',
    }


def _others() -> dict[str, t.Any]:
    return {
        "title": "openipu",
        "type": "dashboards",
        "icon": "external link",
        "tooltip": "",
        "tags": ["openipu"],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }
