# SPDX-License-Identifier: GPL-3.0-or-later
"""Dashboards and rules of the role `monitoring`: Grafana takes them, and somebody exports what they ask for."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import jinja2
import promql_parser
import pytest
import yaml
from ansible_collections.openipu.pod.plugins.plugin_utils import grafana, snmp_exporter
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import prometheus
from grafana_foundation_sdk.models.dashboard import Dashboard

ROOT = Path(__file__).parents[3]
ROLE = ROOT / "roles" / "monitoring"
DECLARED = {file.stem: yaml.safe_load(file.read_text()) for file in (ROLE / "files/dashboards").glob("*.yml")}
VARIABLES = yaml.safe_load((ROLE / "vars/main.yml").read_text())
# What every series of a target has.
OF_TARGETS = {"job", "instance", "host", "rack", "unit", "agent", "pod"}


def rules() -> list[dict[str, Any]]:
    """All rules, with thresholds as they are unless somebody says otherwise."""
    environment = jinja2.Environment(variable_start_string="[[", variable_end_string="]]", autoescape=False)
    environment.filters.update(to_json=json.dumps, comment=lambda text: f"# {text}")
    values = {
        "ansible_managed": "",
        "monitoring_all_thresholds": VARIABLES["monitoring_default_thresholds"],
        "monitoring_runbook": "https://runbook.example",
    }
    found = []
    for file in sorted((ROLE / "templates/rules").glob("*.j2")):
        groups = yaml.safe_load(environment.from_string(file.read_text()).render(values))["groups"]
        found.extend(rule for group in groups for rule in group["rules"])
    return found


RULES = rules()


def exported() -> dict[str, set[str] | None]:
    """The names of all metrics, with their labels where those are written down."""
    found: dict[str, set[str] | None] = {}
    for name, type_, labels in re.findall(
        r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE
    ):
        told = set(re.findall(r"`(\w+)`", labels)) | OF_TARGETS
        if type_ == "histogram":
            found |= {f"{name}_bucket": told | {"le"}, f"{name}_sum": told, f"{name}_count": told}
        else:
            found[name] = told
    for kind in snmp_exporter.MODULES:
        found.update(dict.fromkeys(snmp_exporter.metrics(kind)))
    for names in yaml.safe_load(Path(__file__).with_name("exported.yml").read_text()).values():
        found.update(dict.fromkeys(names))
    found.update({rule["record"]: None for rule in RULES if "record" in rule})
    return found


EXPORTED = exported()


def selectors(expression: str) -> Iterator[Any]:
    """What an expression asks for."""
    seen: list[Any] = []

    def look(part: Any) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            seen.append(part)
        return True

    promql_parser.walk(promql_parser.parse(expression), look)
    yield from seen


def asked() -> Iterator[tuple[str, str]]:
    """Every expression, with who asks."""
    for rule in RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]
    for name, declared in DECLARED.items():
        for who, query in grafana.queries(declared):
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            yield f"{name}: {who}", values[1] if values else query


def test_whatever_is_asked_for_is_exported() -> None:
    missing = []
    for who, expression in asked():
        for selector in selectors(expression):
            if selector.name not in EXPORTED:
                missing.append(f"{who} asks for {selector.name}, which nobody exports.")
                continue
            labels = EXPORTED[selector.name]
            for matcher in selector.matchers.matchers:
                if labels is not None and matcher.name not in labels:
                    missing.append(f"{who} asks for {selector.name} with '{matcher.name}', which it does not have.")
    assert not missing, "\n".join(missing)


def test_a_metric_that_nobody_exports_is_found() -> None:
    names = [selector.name for selector in selectors('sum(rate(nobody_total{a="b"}[5m])) / on () (up or other)')]
    assert names == ["nobody_total", "up", "other"]
    assert "nobody_total" not in EXPORTED


def federated(name: str) -> bool:
    """Whether a Prometheus that federates has such series of other PODs too."""
    return ":" in name or name in ("up", "ALERTS")


def told_of_pods(expression: str) -> dict[str, list[str]]:
    """What an expression asks for, by name, with how it asks for PODs."""
    return {
        selector.name: [f"{each.op}{each.value}" for each in selector.matchers.matchers if each.name == "pod"]
        for selector in selectors(expression)
    }


def test_what_other_pods_have_computed_is_not_taken_for_ones_own() -> None:
    for rule in RULES:
        told = told_of_pods(rule["expr"])
        own = {name: asked for name, asked in told.items() if federated(name)}
        # Where two are compared, one that is of this POD has no partner of another.
        assert not own or any(own.values()), rule["expr"]
        assert all(asked in ([], ["MatchOp.Equal"]) for asked in own.values()), rule["expr"]


def test_dashboards_tell_pods_apart() -> None:
    for name, declared in DECLARED.items():
        assert next(iter(declared["variables"])) == "pod"
        for who, query in grafana.queries(declared):
            if who == "variable pod":
                continue
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            for asked in told_of_pods(values[1] if values else query).values():
                assert asked == ["MatchOp.Re$pod"], f"{name}: {who}"
            assert not re.search(r"\bby \((?!pod\b)", query), f"{name}: {who}"


def test_nothing_is_recorded_for_nobody() -> None:
    used = {selector.name for _who, expression in asked() for selector in selectors(expression)}
    unused = sorted(rule["record"] for rule in RULES if "record" in rule and rule["record"] not in used)
    assert not unused


def test_alerts_say_whom_they_are_about() -> None:
    for rule in RULES:
        if "alert" not in rule:
            continue
        assert set(rule["labels"]) == {"severity", "about"}, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "none")
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]


def test_all_thresholds_are_used_and_described() -> None:
    options = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    known = set(VARIABLES["monitoring_default_thresholds"])
    assert set(options["monitoring_thresholds"]["options"]) == known
    text = (ROLE / "templates/rules/alerts.yml.j2").read_text()
    assert set(re.findall(r"limit\.(\w+)", text)) == known


def lost(told: Any, understood: Any, where: str) -> Iterator[str]:
    """What there is of one thing and not, or not the same, of the other, which may have more."""
    if isinstance(told, dict) and isinstance(understood, dict):
        for key, value in told.items():
            if key not in understood:
                yield f"{where}.{key}: {value}"
            else:
                yield from lost(value, understood[key], f"{where}.{key}")
    elif isinstance(told, list) and isinstance(understood, list) and len(told) == len(understood):
        for place, (one, other) in enumerate(zip(told, understood, strict=True)):
            yield from lost(one, other, f"{where}[{place}]")
    elif told != understood:
        yield f"{where}: {told} became {understood}"


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_grafana_takes_a_dashboard(name: str) -> None:
    """Grafana's own types understand every word of it: read and written again, nothing is lost or changed."""
    register_default_plugins()
    model = json.loads(json.dumps(grafana.dashboard(DECLARED[name])))
    pairs = [(Dashboard, model, name)]
    for panel in model["panels"]:
        if panel["type"] == "row":
            continue
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type'].replace('-', '')}")
        pairs.append((kind.Options, panel["options"], f"{panel['title']}: options"))
        if "custom" in panel["fieldConfig"]["defaults"]:
            pairs.append((kind.FieldConfig, panel["fieldConfig"]["defaults"]["custom"], f"{panel['title']}: field"))
        pairs.extend((prometheus.Dataquery, target, f"{panel['title']}: target") for target in panel["targets"])
    for type_, told, where in pairs:
        understood = json.loads(JSONEncoder().encode(type_.from_json(json.loads(json.dumps(told)))))
        assert not list(lost(told, understood, where))


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_panels_lie_side_by_side(name: str) -> None:
    model = grafana.dashboard(DECLARED[name])
    numbers = [panel["id"] for panel in model["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    places = [panel["gridPos"] for panel in model["panels"]]
    assert all(place["x"] + place["w"] <= grafana.WIDTH for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert all(upper["y"] <= lower["y"] for upper, lower in pairwise(places))


def test_dashboards_are_told_apart() -> None:
    assert len({declared["uid"] for declared in DECLARED.values()}) == len(DECLARED) == 5
    written = yaml.safe_load((ROLE / "vars/main.yml").read_text())["monitoring_dashboards"]
    assert sorted(written) == sorted(DECLARED)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"uid": "a", "rows": [{}]}, "A dashboard has no 'title': give it one."),
        ({"title": "A", "rows": []}, "Dashboard 'A' has no 'rows': give it one."),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P"}]}]},
            "Panel 'P' of Dashboard 'A' has no 'queries': give it one.",
        ),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P", "kind": "pie"}]}]},
            "Panel 'P' of Dashboard 'A' is of kind 'pie': choose timeseries, stat, bargauge, table, state-timeline.",
        ),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P", "colour": "red"}]}]},
            "Panel 'P' of Dashboard 'A' has colour: it may have about, height, kind, max, names, queries, stack, "
            "steps, title, unit, width.",
        ),
    ],
)
def test_a_slip_in_a_dashboard_is_named(declared: dict[str, Any], sentence: str) -> None:
    with pytest.raises(grafana.DeclarationError, match=f"^{re.escape(sentence)}$"):
        grafana.dashboard(declared)


def test_slips_in_logins_are_named() -> None:
    for connections, sentence in (
        ({"pdu": {}}, "SNMP with v3 needs 'username': give it."),
        ({"pdu": {"version": "v2c"}}, "SNMP with v2c needs 'community': give it."),
        ({"pdu": {"username": "u", "auth_key": "k" * 8}}, "SNMP with auth_priv needs 'priv_key': give it."),
        ({"ups": {}}, "There is no module for ups: there are pdu, switch."),
        (
            {"pdu": {"username": "u", "security_level": "none"}},
            "security_level 'none' is none of auth_priv, auth_no_priv, no_auth_no_priv.",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            snmp_exporter.configuration(connections)


def test_credentials_stand_apart_from_release_0_23_on() -> None:
    login = {"version": "v2c", "community": "c"}
    after, before = (snmp_exporter.configuration({"pdu": login}, split) for split in (True, False))
    assert after["auths"] == {"pdu": {"version": 2, "community": "c"}}
    assert before["pdu"] == {**after["modules"]["pdu"], "version": 2, "auth": {"community": "c"}}
