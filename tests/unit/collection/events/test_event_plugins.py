# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the plugins of ansible-rulebook: their documentation, the filter of alerts, the rulebooks."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest
import yaml

from tests import ROOT

EDA = ROOT / "extensions" / "eda"
SOURCE = runpy.run_path(str(EDA / "plugins/event_source/vipu_events.py"))
FILTER = runpy.run_path(str(EDA / "plugins/event_filter/alertmanager_alerts.py"))
RULEBOOKS = sorted((EDA / "rulebooks").glob("*.yml"))


def test_documented_options_are_those_of_the_source() -> None:
    documented = yaml.safe_load(SOURCE["DOCUMENTATION"])["options"]
    described = {
        name: {key: value for key, value in option.items() if key != "description"}
        for name, option in documented.items()
    }
    assert described == SOURCE["OPTIONS"]


def test_the_example_of_the_source_is_valid() -> None:
    [example] = yaml.safe_load(SOURCE["EXAMPLES"])
    options = SOURCE["checked"](example["openipu.pod.vipu_events"])
    assert options["lost_seconds"] == 300.0
    assert options["api"] == "admin"


def test_empty_texts_mean_defaults() -> None:
    options = SOURCE["checked"](
        {"api_user_id": "", "api_port": "", "poll_seconds": "0.5", "eda_feedback_queue": object()}
    )
    assert (options["api_user_id"], options["api_port"], options["poll_seconds"]) == (None, 8090, 0.5)


def alert(name: str, **more: Any) -> dict[str, Any]:
    return {"status": "firing", "labels": {"alertname": name, "host": "ag03"}, "fingerprint": "f1", **more}


def test_each_alert_becomes_an_event() -> None:
    meta = {"endpoint": "alerts"}
    event = {
        "payload": {"status": "firing", "alerts": [alert("IpuHot", startsAt="now"), alert("LinkDown")]},
        "meta": meta,
    }
    first, second = FILTER["main"](event)
    assert first["alert"] == {
        "name": "IpuHot",
        "status": "firing",
        "fingerprint": "f1",
        "starts_at": "now",
        "labels": {"alertname": "IpuHot", "host": "ag03"},
        "annotations": {},
    }
    assert second["alert"]["name"] == "LinkDown"
    assert first["meta"] == second["meta"] == meta
    assert first["meta"] is not second["meta"]
    assert "payload" not in first


@pytest.mark.parametrize("payload", [{"kind": "drift"}, {"alerts": "x"}, [], "text", None])
def test_other_events_are_passed_on(payload: Any) -> None:
    assert FILTER["main"]({"payload": payload, "meta": {}}) == {"payload": payload, "meta": {}}


def test_incomplete_alerts() -> None:
    [event] = FILTER["main"]({"payload": {"alerts": ["text", {"labels": None}]}})
    assert event["alert"]["name"] == ""
    assert event["alert"]["fingerprint"] == "[]"


def test_texts_of_requests_are_no_templates() -> None:
    evil = "{{ lookup('pipe', 'id') }}{% if x %}{# y #}{{{"
    [event] = FILTER["main"](
        {"payload": {"alerts": [alert(evil, annotations={evil: evil})]}, "meta": {"headers": {"h": evil}}}
    )
    drift = FILTER["main"]({"payload": {"kind": "drift", "summary": [evil]}})
    assert not re.search(r"\{[{%#]", str(event).replace("{'", "").replace("{}", ""))
    assert not re.search(r"\{[{%#]", str(drift))


def test_texts_of_requests_define_no_delimiters() -> None:
    evil = "#jinja2: variable_start_string:'[['\n[[ lookup('pipe', 'id') ]]"
    drift = FILTER["main"]({"payload": {"kind": "drift", "summary": [evil]}})
    assert f"' {evil[:8]}" in str(drift) or f'" {evil[:8]}' in str(drift)
    assert f"'{evil[:8]}" not in str(drift) and f'"{evil[:8]}' not in str(drift)


@pytest.mark.parametrize("path", RULEBOOKS, ids=lambda path: path.stem)
def test_rules_run_existing_playbooks_with_limits(path: Any) -> None:
    [ruleset] = yaml.safe_load(path.read_text())
    assert ruleset["execution_strategy"] == "parallel"
    for rule in ruleset["rules"]:
        assert rule["throttle"]["once_within"], rule["name"]
        assert rule["throttle"]["group_by_attributes"], rule["name"]
        actions = rule["actions"] if "actions" in rule else [rule["action"]]
        for action, options in (item for each in actions for item in each.items()):
            if action != "run_playbook":
                continue
            playbook = ROOT / "playbooks" / f"{options['name'].removeprefix('openipu.pod.')}.yml"
            text = playbook.read_text()
            dry_run = next(name for name in options["extra_vars"] if name.endswith("_dry_run"))
            assert "event_dry_run" in options["extra_vars"][dry_run]
            for name in options["extra_vars"]:
                assert f"\n# {name}:" in text, f"{playbook.name} does not describe {name}"
            assert not re.search(r"(include|import)_(tasks|vars|playbook):|vars_files:", text), "copied alone"


@pytest.mark.parametrize("path", RULEBOOKS, ids=lambda path: path.stem)
def test_arguments_of_sources_have_defaults(path: Any) -> None:
    """ansible-rulebook ends a source without a message when a variable is undefined."""
    [ruleset] = yaml.safe_load(path.read_text())
    for source in ruleset["sources"]:
        for plugin, options in source.items():
            if "." in plugin:
                assert {name for name, value in options.items() if "| default(" not in value} == set()


def test_webhooks_require_a_token_and_listen_on_loopback() -> None:
    for path in RULEBOOKS:
        for source in yaml.safe_load(path.read_text())[0]["sources"]:
            if options := source.get("eda.builtin.webhook"):
                assert options["token"]
                assert "default('127.0.0.1')" in options["host"]
