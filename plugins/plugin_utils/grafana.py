# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Grafana dashboard models from short definitions. No I/O.

A definition lists rows and panels. This module lays them out and generates the model of Grafana::

    uid: openipu-power
    title: Power
    variables: {pdu: 'label_values(pdu:power_watts:current, host)'}
    rows:
      - title: PDUs
        panels:
          - {title: Power, unit: watt, queries: {"{{host}}": 'pdu:power_watts:current{host=~"$pdu"}'}}

The ``kind`` of a panel is ``timeseries`` (the default), ``stat``, ``bargauge``, ``table`` or ``state-timeline``.
``queries`` maps legends to expressions; a table needs no legend. ``width`` is in 24ths of a row; the default is an
equal share. ``steps`` are the thresholds for orange and red. ``lowest``, in place of ``steps``, is the lowest good
value: smaller values are red. ``names`` maps values to texts. Without ``steps`` and ``lowest``, no value is bad: the
first is blue, and others are green.
"""

from __future__ import annotations

import typing as t

KINDS = ("timeseries", "stat", "bargauge", "table", "state-timeline")
WIDTH = 24
HEIGHTS = {"stat": 4, "state-timeline": 6}
_KEYS = {"title", "kind", "unit", "queries", "width", "height", "steps", "lowest", "names", "about", "max", "stack"}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_EMPTY_TEXT = "-"


class DefinitionError(ValueError):
    """Raised when a dashboard definition is invalid."""


def dashboard(definition: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the model of a dashboard, in the format that Grafana imports; raise DefinitionError."""
    title = _required(definition, "title", "a dashboard")
    panels: list[dict[str, t.Any]] = []
    top = 0
    for row in _required(definition, "rows", f"dashboard '{title}'"):
        panels.append(_row(row["title"], top, len(panels) + 1))
        top += 1
        laid, top = _layout(row["panels"], top, len(panels) + 1, f"dashboard '{title}'")
        panels.extend(laid)
    variables = [_datasource(), *(_variable(*item) for item in definition.get("variables", {}).items())]
    return {
        "uid": _required(definition, "uid", f"dashboard '{title}'"),
        "title": title,
        "description": definition.get("about", ""),
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
        "links": [_dashboard_links()],
        "panels": panels,
    }


def queries(definition: t.Mapping[str, t.Any]) -> list[tuple[str, str]]:
    """Return every query of a dashboard with the title of its panel or the name of its variable."""
    found = [(f"variable {name}", query) for name, query in definition.get("variables", {}).items()]
    for row in definition["rows"]:
        for panel in row["panels"]:
            found.extend((panel["title"], query) for query in panel["queries"].values())
    return found


def _required(definition: t.Mapping[str, t.Any], key: str, target: str) -> t.Any:
    if not definition.get(key):
        raise DefinitionError(f"Cannot create {target}: '{key}' is missing. Set it.")
    return definition[key]


def _layout(
    definitions: list[dict[str, t.Any]], top: int, number: int, dashboard_name: str
) -> tuple[list[dict[str, t.Any]], int]:
    """Return the panels, laid out from left to right in lines, and the position of the next line."""
    share = WIDTH // max(1, min(len(definitions), 4))
    panels, left, height = [], 0, 0
    for panel in definitions:
        width = panel.get("width", share)
        if left + width > WIDTH:
            left, top, height = 0, top + height, 0
        model = _panel(panel, number + len(panels), dashboard_name)
        panel_height = panel.get("height", HEIGHTS.get(model["type"], 8))
        model["gridPos"] = {"x": left, "y": top, "w": width, "h": panel_height}
        panels.append(model)
        left, height = left + width, max(height, panel_height)
    return panels, top + height


def _panel(definition: t.Mapping[str, t.Any], number: int, dashboard_name: str) -> dict[str, t.Any]:
    title = _required(definition, "title", f"a panel of {dashboard_name}")
    target = f"panel '{title}' of {dashboard_name}"
    unknown = sorted(set(definition) - _KEYS)
    if unknown:
        raise DefinitionError(
            f"Cannot create {target}: {', '.join(unknown)} is unknown. Choose from {', '.join(sorted(_KEYS))}."
        )
    kind = definition.get("kind", "timeseries")
    if kind not in KINDS:
        raise DefinitionError(f"Cannot create {target}: kind '{kind}' is unknown. Choose from {', '.join(KINDS)}.")
    if "steps" in definition and "lowest" in definition:
        raise DefinitionError(f"Cannot create {target}: 'steps' and 'lowest' both set its colours. Remove one of them.")
    expressions = _required(definition, "queries", target)
    if kind != "table" and not all(legend.strip() for legend in expressions):
        raise DefinitionError(f"Cannot create {target}: a query has no legend. Use the legend as its key.")
    return {
        "id": number,
        "type": kind,
        "title": title,
        "description": definition.get("about", ""),
        "datasource": _SOURCE,
        "targets": [_target(*item, kind, place) for place, item in enumerate(expressions.items())],
        "fieldConfig": {"defaults": _field(definition, kind), "overrides": []},
        "options": _options(kind),
        **({"transformations": _columns()} if kind == "table" else {}),
    }


def _target(legend: str, query: str, kind: str, place: int) -> dict[str, t.Any]:
    instant = kind in ("stat", "bargauge", "table")
    return {
        "refId": chr(ord("A") + place),
        "datasource": _SOURCE,
        "expr": " ".join(query.split()),
        "legendFormat": legend,
        "instant": instant,
        "range": not instant,
        "format": "table" if kind == "table" else "time_series",
    }


def _field(definition: t.Mapping[str, t.Any], kind: str) -> dict[str, t.Any]:
    colours = ("green", "orange", "red")
    steps = [{"color": colours[0], "value": None}]
    steps += [
        {"color": colours[min(place, 2)], "value": value} for place, value in enumerate(definition.get("steps", ()), 1)
    ]
    if len(steps) == 2:
        steps[1]["color"] = "red"
    if "lowest" in definition:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": definition["lowest"]}]
    field: dict[str, t.Any] = {
        "unit": definition.get("unit", "short"),
        "noValue": _EMPTY_TEXT,
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "palette-classic" if kind == "timeseries" else "thresholds"},
        "mappings": [],
    }
    if "max" in definition:
        field.update(min=0, max=definition["max"])
    if "names" in definition:
        plain = "steps" not in definition and "lowest" not in definition
        texts = {
            str(value): {
                "text": text,
                "index": place,
                **({"color": "green" if place else "blue"} if plain else {}),
            }
            for place, (value, text) in enumerate(definition["names"].items())
        }
        field["mappings"] = [{"type": "value", "options": texts}]
    if kind == "timeseries":
        stacking = {"mode": "normal" if definition.get("stack") else "none", "group": "A"}
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
    """Return the transformation of a table, which hides the time and the scrape labels."""
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
    """Return the annotation for firing critical alerts."""
    return {
        "name": "Alerts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertstate="firing",severity="critical"}',
    }


def _dashboard_links() -> dict[str, t.Any]:
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
