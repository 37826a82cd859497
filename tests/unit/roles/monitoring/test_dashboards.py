# SPDX-License-Identifier: GPL-3.0-or-later
"""Dashboards and rules of the role `monitoring`: Grafana accepts them, and every queried metric is exported."""

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

from tests import ROOT

ROLE = ROOT / "roles" / "monitoring"
DEFINITIONS = {file.stem: yaml.safe_load(file.read_text()) for file in (ROLE / "files/dashboards").glob("*.yml")}
VARIABLES = yaml.safe_load((ROLE / "vars/main.yml").read_text())
# Labels of every series of a target.
TARGET_LABELS = {"job", "instance", "host", "rack", "unit", "agent", "pod"}


def rules() -> list[dict[str, Any]]:
    """Return all rules, rendered with the default thresholds."""
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
    """Return all exported metrics by name, with their labels, or None where the labels are not documented."""
    found: dict[str, set[str] | None] = {}
    for name, type_, labels in re.findall(
        r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE
    ):
        names = set(re.findall(r"`(\w+)`", labels)) | TARGET_LABELS
        if type_ == "histogram":
            found |= {f"{name}_bucket": names | {"le"}, f"{name}_sum": names, f"{name}_count": names}
        else:
            found[name] = names
    for kind in snmp_exporter.MODULES:
        found.update(dict.fromkeys(snmp_exporter.metrics(kind)))
    for metrics in yaml.safe_load(Path(__file__).with_name("exported.yml").read_text()).values():
        found.update(dict.fromkeys(metrics))
    found.update({rule["record"]: None for rule in RULES if "record" in rule})
    return found


EXPORTED = exported()


def selectors(expression: str) -> Iterator[Any]:
    """Yield the vector selectors of an expression."""
    found: list[Any] = []

    def visit(part: Any) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            found.append(part)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    yield from found


def expressions() -> Iterator[tuple[str, str]]:
    """Yield every expression with the name of its rule, or its dashboard and panel."""
    for rule in RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]
    for name, definition in DEFINITIONS.items():
        for owner, query in grafana.queries(definition):
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            yield f"{name}: {owner}", values[1] if values else query


def test_every_queried_metric_is_exported() -> None:
    missing = []
    for owner, expression in expressions():
        for selector in selectors(expression):
            if selector.name not in EXPORTED:
                missing.append(f"{owner}: metric {selector.name} is not exported.")
                continue
            labels = EXPORTED[selector.name]
            for matcher in selector.matchers.matchers:
                if labels is not None and matcher.name not in labels:
                    missing.append(f"{owner}: metric {selector.name} has no label '{matcher.name}'.")
    assert not missing, "\n".join(missing)


def test_an_unexported_metric_is_found() -> None:
    names = [selector.name for selector in selectors('sum(rate(unknown_total{a="b"}[5m])) / on () (up or other)')]
    assert names == ["unknown_total", "up", "other"]
    assert "unknown_total" not in EXPORTED


def federated(name: str) -> bool:
    """Return whether Prometheus federates such series from other PODs."""
    return ":" in name or name in ("up", "ALERTS")


def pod_matchers(expression: str) -> dict[str, list[str]]:
    """Return the matchers on the label ``pod`` for each metric of an expression.

    The servers of the PODs are targets of this server, and their ``up`` is not federated further.
    """
    return {
        selector.name: [f"{each.op}{each.value}" for each in selector.matchers.matchers if each.name == "pod"]
        for selector in selectors(expression)
        if ("job", "federate") not in {(each.name, each.value) for each in selector.matchers.matchers}
    }


def test_rules_exclude_federated_series() -> None:
    for rule in RULES:
        matchers = pod_matchers(rule["expr"])
        own = {name: found for name, found in matchers.items() if federated(name)}
        # In a comparison, one local operand is enough: its labels match no series of another POD.
        assert not own or any(own.values()), rule["expr"]
        assert all(found in ([], ["MatchOp.Equal"]) for found in own.values()), rule["expr"]


def test_dashboards_distinguish_pods() -> None:
    for name, definition in DEFINITIONS.items():
        assert next(iter(definition["variables"])) == "pod"
        for owner, query in grafana.queries(definition):
            if owner == "variable pod":
                continue
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            for matchers in pod_matchers(values[1] if values else query).values():
                assert matchers == ["MatchOp.Re$pod"], f"{name}: {owner}"
            assert not re.search(r"\bby \((?!pod\b)", query), f"{name}: {owner}"


# Metrics of the POD, not of one controller. The leader exports them. At a takeover, Prometheus has those of two
# controllers for some seconds.
OF_POD = re.compile("vipu_(?!(?:build|controller|follower|rpc|watch|store)_)")


def counted_twice(expression: str) -> Iterator[str]:
    """Yield the metrics of the POD whose series of two controllers an expression does not join.

    The innermost aggregation must drop the labels of the controller. Gauges are equal, so their sum would be wrong.
    """
    enclosing: list[Any] = []
    found = []

    def joins(aggregation: Any, name: str) -> bool:
        modifier, controller = aggregation.modifier, {"host", "instance"}
        counter = name.endswith(("_total", "_bucket", "_count", "_sum"))
        if str(aggregation.op) not in (("max", "sum") if counter else ("max",)):
            return False
        if modifier is None or modifier.type == promql_parser.AggModifierType.By:
            return modifier is None or not controller & set(modifier.labels)
        return controller <= set(modifier.labels)

    def enter(part: Any) -> None:
        if isinstance(part, promql_parser.AggregateExpr):
            enclosing.append(part)
        single = isinstance(part, promql_parser.VectorSelector) and OF_POD.match(part.name)
        if single and not (enclosing and joins(enclosing[-1], part.name)):
            found.append(part.name)

    def leave(part: Any) -> None:
        if isinstance(part, promql_parser.AggregateExpr):
            enclosing.pop()

    promql_parser.walk(promql_parser.parse(expression), enter, leave)
    yield from found


def test_objects_in_the_metrics_of_two_controllers_count_once() -> None:
    wrong = [
        f"{owner}: {name}"
        for owner, expression in expressions()
        if ": variable " not in owner
        for name in counted_twice(expression)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("vipu_agent_up == 0", True),
        ("sum(vipu_partitions)", True),
        ("max without (host) (vipu_agent_up)", True),
        ("max without (host, instance) (vipu_agent_up)", False),
        ("sum without (host, instance) (vipu_agent_up)", True),
        ("sum(max without (host, instance) (vipu_partitions))", False),
        ("max by (pod, host) (vipu_agent_up)", True),
        ("sum(max by (pod) (vipu_partitions))", False),
        ("max(sum by (pod) (vipu_partitions))", True),
        ("sum by (pod) (increase(vipu_partition_moves_total[1h]))", False),
        ("vipu_store_revision > vipu_follower_revision", False),
    ],
)
def test_objects_that_count_twice_are_found(expression: str, wrong: bool) -> None:
    assert bool(list(counted_twice(expression))) == wrong


def test_every_recorded_series_is_used() -> None:
    used = {selector.name for _owner, expression in expressions() for selector in selectors(expression)}
    unused = sorted(rule["record"] for rule in RULES if "record" in rule and rule["record"] not in used)
    assert not unused


def test_alerts_have_labels_and_a_summary() -> None:
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


def lost(source: Any, parsed: Any, path: str) -> Iterator[str]:
    """Yield the values of ``source`` that are missing or different in ``parsed``, which may have more."""
    if isinstance(source, dict) and isinstance(parsed, dict):
        for key, value in source.items():
            if key not in parsed:
                yield f"{path}.{key}: {value}"
            else:
                yield from lost(value, parsed[key], f"{path}.{key}")
    elif isinstance(source, list) and isinstance(parsed, list) and len(source) == len(parsed):
        for index, (one, other) in enumerate(zip(source, parsed, strict=True)):
            yield from lost(one, other, f"{path}[{index}]")
    elif source != parsed:
        yield f"{path}: {source} became {parsed}"


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_grafana_accepts_a_dashboard(name: str) -> None:
    """Parse a dashboard with the types of Grafana and write it again: nothing is lost or changed."""
    register_default_plugins()
    model = json.loads(json.dumps(grafana.dashboard(DEFINITIONS[name])))
    pairs = [(Dashboard, model, name)]
    for panel in model["panels"]:
        if panel["type"] == "row":
            continue
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type'].replace('-', '')}")
        pairs.append((kind.Options, panel["options"], f"{panel['title']}: options"))
        if "custom" in panel["fieldConfig"]["defaults"]:
            pairs.append((kind.FieldConfig, panel["fieldConfig"]["defaults"]["custom"], f"{panel['title']}: field"))
        pairs.extend((prometheus.Dataquery, target, f"{panel['title']}: target") for target in panel["targets"])
    for type_, source, path in pairs:
        parsed = json.loads(JSONEncoder().encode(type_.from_json(json.loads(json.dumps(source)))))
        assert not list(lost(source, parsed, path))


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_panels_do_not_overlap(name: str) -> None:
    model = grafana.dashboard(DEFINITIONS[name])
    numbers = [panel["id"] for panel in model["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    places = [panel["gridPos"] for panel in model["panels"]]
    assert all(place["x"] + place["w"] <= grafana.WIDTH for place in places)
    for one, other in combinations(places, 2):
        horizontal = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        vertical = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert horizontal or vertical, (one, other)
    assert all(upper["y"] <= lower["y"] for upper, lower in pairwise(places))


BAD, GOOD = {"down", "not ready", "overload"}, {"up", "ready", "normal", "free", "used"}


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_the_colours_of_named_values_match_their_meaning(name: str) -> None:
    """Grafana uses the colour of the last threshold that a value reaches."""
    for panel in grafana.dashboard(DEFINITIONS[name])["panels"]:
        field = panel.get("fieldConfig", {}).get("defaults", {})
        for mapping in field.get("mappings", []):
            for value, shown in mapping["options"].items():
                steps = field["thresholds"]["steps"]
                colour = [each["color"] for each in steps if each["value"] is None or each["value"] <= float(value)][-1]
                if shown["text"] in BAD | GOOD:
                    assert colour == ("red" if shown["text"] in BAD else "green"), (panel["title"], shown["text"])


def test_dashboards_have_unique_uids() -> None:
    assert len({definition["uid"] for definition in DEFINITIONS.values()}) == len(DEFINITIONS) == 6
    installed = yaml.safe_load((ROLE / "vars/main.yml").read_text())["monitoring_dashboards"]
    assert sorted(installed) == sorted(DEFINITIONS)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"uid": "a", "rows": [{}]}, "Cannot create a dashboard: 'title' is missing. Set it."),
        ({"title": "A", "rows": []}, "Cannot create dashboard 'A': 'rows' is missing. Set it."),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P"}]}]},
            "Cannot create panel 'P' of dashboard 'A': 'queries' is missing. Set it.",
        ),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P", "kind": "pie"}]}]},
            "Cannot create panel 'P' of dashboard 'A': kind 'pie' is unknown. Choose from timeseries, stat, bargauge, "
            "table, state-timeline.",
        ),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P", "colour": "red"}]}]},
            "Cannot create panel 'P' of dashboard 'A': colour is unknown. Choose from about, height, kind, lowest, "
            "max, names, queries, stack, steps, title, unit, width.",
        ),
        (
            {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [{"title": "P", "steps": [1], "lowest": 2}]}]},
            "Cannot create panel 'P' of dashboard 'A': 'steps' and 'lowest' both set its colours. Remove one of them.",
        ),
    ],
)
def test_an_invalid_dashboard_is_rejected(definition: dict[str, Any], message: str) -> None:
    with pytest.raises(grafana.DefinitionError, match=f"^{re.escape(message)}$"):
        grafana.dashboard(definition)


def test_invalid_credentials_are_rejected() -> None:
    for connections, message in (
        ({"pdu": {}}, "Cannot configure SNMP with v3: 'username' is missing. Set it."),
        ({"pdu": {"version": "v2c"}}, "Cannot configure SNMP with v2c: 'community' is missing. Set it."),
        (
            {"pdu": {"username": "u", "auth_key": "k" * 8}},
            "Cannot configure SNMP with auth_priv: 'priv_key' is missing. Set it.",
        ),
        ({"ups": {}}, "Cannot configure ups: the kind is unknown. Choose from pdu, switch."),
        (
            {"pdu": {"username": "u", "security_level": "none"}},
            "Cannot use security_level 'none': it is unknown. Choose from auth_priv, auth_no_priv, no_auth_no_priv.",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            snmp_exporter.configuration(connections)


def test_credentials_are_separate_from_release_0_23_on() -> None:
    credentials = {"version": "v2c", "community": "c"}
    after, before = (snmp_exporter.configuration({"pdu": credentials}, split) for split in (True, False))
    assert after["auths"] == {"pdu": {"version": 2, "community": "c"}}
    assert before["pdu"] == {**after["modules"]["pdu"], "version": 2, "auth": {"community": "c"}}
