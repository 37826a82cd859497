# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the static analysis of playbooks: required variables, with defaults, conditions, includes and roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.unit.collection.awx import playbooks
from tests.unit.collection.awx.expressions import names, only_variable
from tests.unit.collection.awx.playbooks import Playbook, analyse

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
DEBUG = "ansible.builtin.debug"


def of(folder: Path, *tasks: dict[str, Any], **play: Any) -> Playbook:
    file = folder / "playbook.yml"
    file.write_text(yaml.safe_dump([{"name": "P", "hosts": "all", "tasks": list(tasks), **play}]))
    return analyse.__wrapped__(file)


@pytest.mark.parametrize(
    ("template", "required"),
    [
        ("{{ a }} {{ b.c }}", {"a", "b"}),
        ("{{ a | default(1) }}", set()),
        ("{{ a.b | default(1) }}", {"a"}),
        ("{{ a | default(b) }}", set()),
        ("{{ a if a is defined else 1 }}", set()),
        ("{% for x in a %}{{ x }}{% endfor %}", {"a"}),
        ("{% set x = a %}{{ x }}", {"a"}),
        ("{{ lookup('ansible.builtin.vars', 'a') }}", {"a"}),
        ("{{ lookup('vars', 'a', default='') }}", set()),
        ("{{ (a | default({})).b + (a.c if b else 1) }}", {"b"}),
    ],
)
def test_required_variables_of_templates(template: str, required: set[str]) -> None:
    assert names(template).required == required


@pytest.mark.parametrize(
    ("template", "variable"),
    [
        ("{{ a }}", "a"),
        ("{{ a | default(omit, true) }}", "a"),
        ("{{ a | int }}", "a"),
        ("{{ a + 1 }}", None),
        ("x{{ a }}", None),
        ("a", None),
    ],
)
def test_templates_that_pass_one_variable_on(template: str, variable: str | None) -> None:
    assert only_variable(template) == variable


@pytest.mark.parametrize(
    ("template", "truths"),
    [
        ("{{ 1 if a else 2 }}", {"a"}),
        ("{{ 1 if a | default(false) else 2 }}", {"a"}),
        ("{{ 1 if a | bool else 2 }}", set()),
        ("{{ a is defined and not b }}", {"b"}),
        ("{% if a or b.c %}x{% endif %}", {"a"}),
        ("{{ a if b == 1 else c }}", set()),
    ],
)
def test_variables_that_are_conditions(template: str, truths: set[str]) -> None:
    assert names(template).truths == truths


def test_conditions_of_tasks(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        {DEBUG: {"msg": 1}, "when": "a"},
        {"ansible.builtin.assert": {"that": ["b | default(false)", "c | bool"]}},
    )
    assert found.truths == {"a", "b"}


def test_conditions_and_definitions(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        {DEBUG: {"msg": "{{ guarded }}"}, "when": "guarded is defined"},
        {DEBUG: {"msg": "{{ lazy }}"}, "when": ["guarded is defined", "compared == 1"]},
        {DEBUG: {"msg": "{{ item }} {{ result }} {{ fact }}"}, "loop": "{{ looped }}"},
        {"ansible.builtin.command": {"cmd": "x"}, "register": "result"},
        {"ansible.builtin.set_fact": {"fact": 1}},
        {"block": [{DEBUG: {"msg": "{{ inside }}"}}], "rescue": [{DEBUG: {"msg": "{{ rescued }}"}}]},
        vars={"lazy": "{{ guarded }} {{ behind }}", "unused": "{{ never }}"},
    )
    assert set(found.missing()) == {"compared", "looped", "behind", "inside", "rescued"}
    assert found.missing()["behind"] == "playbook.yml: ?"


def test_assertions_require_variables(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        {"ansible.builtin.assert": {"that": ["a is defined and a is truthy", "b | default('x') in ['x', 'y']"]}},
        {"ansible.builtin.assert": {"that": ["item in vars"]}, "loop": ["c"]},
        {"ansible.builtin.assert": {"that": "d is defined or e is defined"}},
    )
    assert set(found.missing()) == {"a", "c"}
    assert found.allowed == {"b": {"x", "y"}}


def test_included_files_and_imported_playbooks(tmp_path: Path) -> None:
    (tmp_path / "tasks.yml").write_text(yaml.safe_dump([{DEBUG: {"msg": "{{ given }} {{ missing }}"}}]))
    task = {"ansible.builtin.include_tasks": {"file": "tasks.yml"}, "vars": {"given": 1}}
    of(tmp_path, task)
    (tmp_path / "outer.yml").write_text(
        yaml.safe_dump([{"ansible.builtin.import_playbook": "playbook.yml", "vars": {"missing": "{{ outer }}"}}])
    )
    assert set(analyse(tmp_path / "outer.yml").missing()) == {"outer"}


def test_options_and_environment_of_modules(tmp_path: Path) -> None:
    found = of(tmp_path, {"openipu.pod.vipu_user": {"id": "{{ user }}", "role": "{{ role | default(omit) }}"}})
    ((owner, spec),) = found.options["role"]
    assert (owner, spec["choices"]) == ("openipu.pod.vipu_user.role", ["user", "admin"])
    assert "VIPU_CLI_API_ACCESS_KEY" in found.environment()
    assert "VIPU_CLI_API_ACCESS_KEY" not in of(tmp_path, {DEBUG: {"msg": 1}}).environment()


def test_roles_declare_their_variables() -> None:
    found = analyse(ROOT / "playbooks/ipum_health.yml")
    assert ("role openipu.pod.virm_agent", "bool") in [
        (owner, spec["type"]) for owner, spec in found.options["virm_agent_ssh"]
    ]
    assert "virm_agent_upgrade_domain" not in found.options, "variables of the other entry points"
    assert analyse(ROOT / "playbooks/monitoring.yml").become
    assert not analyse(ROOT / "playbooks/cabling.yml").ssh


def test_tasks_of_roles_are_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    role = tmp_path / "roles" / "test"
    once = {"block": [{DEBUG: {"msg": "{{ shown }}"}}], "run_once": True}
    tasks = [
        {"ansible.builtin.assert": {"that": "size in [1, 2]"}},
        {"ansible.builtin.set_stats": {"data": {"result": "{{ value }}"}}},
        {"ansible.builtin.command": {"cmd": "x"}, "run_once": True, "delegate_to": "localhost"},
    ]
    files = {
        "tasks/main.yml": tasks,
        "tasks/once.yml": [once],
        "meta/main.yml": {},
        "meta/argument_specs.yml": {"argument_specs": {"main": {"options": {"size": {"required": True}}}}},
    }
    for name, content in files.items():
        (role / name).parent.mkdir(parents=True, exist_ok=True)
        (role / name).write_text(yaml.safe_dump(content))
    monkeypatch.setattr(playbooks, "ROOT", tmp_path)
    found = of(tmp_path, roles=["openipu.pod.test"])
    assert (set(found.missing()), found.allowed, found.stats) == ({"size"}, {"size": {1, 2}}, {"result"})
    assert (found.shown, found.run_once) == ({"value"}, False)
    found = of(tmp_path, {"ansible.builtin.import_role": {"name": "openipu.pod.test", "tasks_from": "once"}})
    assert (found.shown, found.run_once) == ({"shown"}, True)


def test_variables_in_messages_and_results(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        {DEBUG: {"msg": "{{ a }}"}},
        {"ansible.builtin.set_stats": {"data": {"result": "{{ b }}"}}},
        {"ansible.builtin.file": {"path": "{{ c }}"}},
    )
    assert found.shown == {"a", "b"}
    assert found.stats == {"result"}
