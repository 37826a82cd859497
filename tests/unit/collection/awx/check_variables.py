# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of variables: surveys, extra variables and schedules, against the playbooks that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.plugin_utils.pod_data import VARIABLES
from dateutil.rrule import rrulestr

from tests import ROOT
from tests.unit.collection.awx.check_credentials import variables
from tests.unit.collection.awx.checks import APPROVAL, children, label, playbook_of
from tests.unit.collection.awx.content import Content, Item, named

INVENTORY = ROOT / "plugins/inventory/pod.py"
QUESTION_KEYS = {
    *("question_name", "question_description", "variable", "type", "required"),
    *("choices", "min", "max", "default"),
}
# Types of survey answers, and the types of options to which Ansible converts them.
ANSWERS = {
    "text": {"str", "list", "path", "raw"},
    "textarea": {"str", "list", "path", "raw"},
    "integer": {"int", "float", "str", "raw"},
    "float": {"float", "str", "raw"},
    "multiplechoice": {"str", "int", "float", "bool", "path", "raw"},
    "multiselect": {"list"},
}
BOOLEANS = {"true", "false"}


@cache
def inventory_variables() -> frozenset[str]:
    """Return the variables of hosts that the inventory plugin documents."""
    return frozenset(re.findall(r"C\(((?:pod|vipu)_\w+)\)", INVENTORY.read_text())) | frozenset(VARIABLES)


def questions(item: Item) -> dict[str, Item]:
    """Return the questions of a survey by variable."""
    return {question["variable"]: question for question in item.get("survey_spec", {}).get("spec", [])}


def supplied(content: Content) -> Iterator[str]:
    """Variables that a playbook requires and that nothing provides."""
    hosts = set().union(*(item.get("variables", {}) for item in content.inventories))
    for file in (ROOT / content.settings["awx_pod_file"]).parent.glob("group_vars/*.yml"):
        hosts.update(yaml.safe_load(file.read_text()))
    for item in content.templates:
        playbook = playbook_of(item)
        known = {
            *questions(item),
            *item.get("extra_vars", {}),
            *variables(content, item),
            *hosts,
            *inventory_variables(),
        }
        known |= _results(content, item["name"])
        for name, place in sorted(playbook.missing().items()) if playbook else ():
            if name not in known:
                yield f"{label('templates', item)}: variable '{name}' is not provided ({place})"
        for name, question in questions(item).items():
            if playbook and name in playbook.missing() and not question["required"] and "default" not in question:
                yield f"{label('templates', item)}: variable '{name}' is required, but the question is not"


def _results(content: Content, name: str) -> set[str]:
    """Return the results that a job template receives from previous nodes, in each workflow that contains it."""
    templates = named(content.templates)
    found = []
    for workflow in content.workflows:
        nodes = {node["identifier"]: node for node in workflow["workflow_nodes"]}
        for identifier, node in nodes.items():
            if node["unified_job_template"]["name"] == name:
                parents = [each for each in nodes.values() if identifier in children(each)]
                playbooks = [playbook_of(templates.get(each["unified_job_template"]["name"], {})) for each in parents]
                found.append(set().union(*(playbook.stats for playbook in playbooks if playbook)))
    return set.intersection(*found) if found else set()


def used(content: Content) -> Iterator[str]:
    """Survey variables and extra variables that the playbook does not use."""
    for item in content.templates:
        playbook = playbook_of(item)
        for name in sorted({*questions(item), *item.get("extra_vars", {})}) if playbook else ():
            if name not in playbook.used:
                yield f"{label('templates', item)}: variable '{name}' is not used by '{item['playbook']}'"
        both = set(questions(item)) & set(item.get("extra_vars", {}))
        yield from (f"{label('templates', item)}: variable '{name}' is set and asked for" for name in sorted(both))


def surveys(content: Content) -> Iterator[str]:
    """Questions that AWX rejects."""
    for kind in ("templates", "workflows"):
        for item in content.kinds.get(kind, []):
            spec = item.get("survey_spec", {"name": "", "description": "", "spec": []})
            if set(spec) != {"name", "description", "spec"}:
                yield f"{label(kind, item)}: a survey has name, description and spec"
            names = [question.get("variable") for question in spec["spec"]]
            if len(set(names)) != len(names):
                yield f"{label(kind, item)}: a variable is asked for twice"
            for question in spec["spec"]:
                yield from (f"{label(kind, item)}: {name}" for name in _question(question))


def _question(question: Item) -> Iterator[str]:
    place = f"question '{question.get('variable')}'"
    yield from (f"{place}: unknown key '{key}'" for key in sorted(set(question) - QUESTION_KEYS))
    for key, kind in (("question_name", str), ("variable", str), ("type", str), ("required", bool)):
        if not isinstance(question.get(key), kind):
            yield f"{place}: {key} is not of type {kind.__name__}"
    kind, default, choices = question.get("type"), question.get("default"), question.get("choices")
    if kind not in ANSWERS:
        yield f"{place}: unknown type '{kind}'"
    yield from (
        f"{place}: {key} is not an integer" for key in ("min", "max") if not isinstance(question.get(key, 0), int)
    )
    if (kind in ("multiplechoice", "multiselect")) is not isinstance(choices, list):
        yield f"{place}: choices do not agree with type '{kind}'"
    if isinstance(choices, list):
        if not choices or not all(isinstance(choice, str) for choice in choices):
            yield f"{place}: choices are not strings"
        if default is not None and default not in choices:
            yield f"{place}: default '{default}' is no choice"
    elif default is not None:
        size = default if kind == "integer" else len(str(default))
        if kind == "integer" and not isinstance(default, int):
            yield f"{place}: default '{default}' is not an integer"
        elif not question.get("min", size) <= size <= question.get("max", size):
            yield f"{place}: default '{default}' is out of limits"
        if kind != "integer" and not isinstance(default, str):
            yield f"{place}: default '{default}' is not a string"
    if kind in ("integer", "float") and not {"min", "max"} <= set(question):
        yield f"{place}: min or max is missing"


def options(content: Content) -> Iterator[str]:
    """Answers that the option of a module, the argument of a role or an assertion of the playbook rejects."""
    for item in content.templates:
        playbook = playbook_of(item)
        for name, question in questions(item).items() if playbook else ():
            place = f"{label('templates', item)}: question '{name}'"
            answers = set(question.get("choices") or ())
            allowed = playbook.allowed.get(name, answers)
            if answers & BOOLEANS and name in playbook.truths:
                yield f"{place}: an answer is text, and the playbook uses it as a condition without the filter bool"
            yield from (f"{place}: the playbook rejects '{answer}'" for answer in sorted(answers - allowed))
            for owner, spec in playbook.options.get(name, []):
                yield from (f"{place}: {problem} ({owner})" for problem in _answers(question, answers, spec))


def _answers(question: Item, answers: set[str], spec: dict[str, Any]) -> Iterator[str]:
    kind = spec.get("type", "str")
    if kind not in ANSWERS.get(question["type"], set()):
        yield f"an answer of type {question['type']} is no {kind}"
    if spec.get("choices"):
        if not answers:
            yield "the option has choices"
        yield from (f"'{answer}' is no choice" for answer in sorted(answers - {str(each) for each in spec["choices"]}))
    if kind == "bool":
        yield from (f"'{answer}' is no bool" for answer in sorted(answers - BOOLEANS))
    if kind == "int":
        yield from (f"'{answer}' is no integer" for answer in sorted(answers) if not answer.isdigit())


def pod_limits(content: Content) -> Iterator[str]:
    """Sizes in surveys that no partition or allocation of the example POD can have."""
    pod = load(str(ROOT / content.settings["awx_pod_file"]))
    machines = len(pod.desired()["agents"])
    limits = {
        "openipu.pod.vipu_partition.size": {str(1 << power) for power in range((machines * 4).bit_length())},
        "openipu.pod.vipu_allocation.size": {str(number) for number in range(1, machines + 1)},
    }
    for item in content.templates:
        playbook = playbook_of(item)
        for name, question in questions(item).items() if playbook else ():
            for owner, _spec in playbook.options.get(name, []):
                if owner in limits:
                    invalid = sorted(set(question.get("choices") or ["any number"]) - limits[owner])
                    yield from (
                        f"{label('templates', item)}: question '{name}': no {owner} is {each}" for each in invalid
                    )


def prompts(content: Content) -> Iterator[str]:
    """Variables of workflows and schedules that AWX ignores, because the job template does not ask for them."""
    templates, workflows = named(content.templates), named(content.workflows)
    for item in content.workflows:
        nodes = [node for node in item["workflow_nodes"] if node["unified_job_template"]["type"] == "job_template"]
        answers = set(questions(item))
        for node in nodes:
            template = templates.get(node["unified_job_template"]["name"], {})
            place = f"{label('workflows', item)}: node '{node['identifier']}'"
            given = set(node.get("extra_data", {}))
            yield from (f"{place}: AWX ignores '{name}'" for name in sorted(given - _accepted(template)))
            yield from _wrong_answers(place, template, node.get("extra_data", {}))
            for name, question in questions(template).items():
                if question["required"] and "default" not in question and name not in given | answers:
                    yield f"{place}: '{name}' has no answer"
        accepted = set().union(*(_accepted(templates.get(node["unified_job_template"]["name"], {})) for node in nodes))
        yield from (f"{label('workflows', item)}: no node accepts '{name}'" for name in sorted(answers - accepted))
        for node in nodes:
            for name, question in questions(templates.get(node["unified_job_template"]["name"], {})).items():
                mine = questions(item).get(name)
                if mine and (mine["type"], mine.get("choices")) != (question["type"], question.get("choices")):
                    yield f"{label('workflows', item)}: '{name}' differs from the question of the job template"
        approvals = [node for node in item["workflow_nodes"] if node["unified_job_template"]["type"] == APPROVAL]
        if item.get("notification_templates_approvals") and not approvals:
            yield f"{label('workflows', item)}: notifications of approvals, and no approval"
    for item in content.schedules:
        template = {**workflows, **templates}.get(item["unified_job_template"], {})
        given = set(item.get("extra_data", {}))
        yield from (f"{label('schedules', item)}: AWX ignores '{name}'" for name in sorted(given - _accepted(template)))
        for name, question in questions(template).items():
            if question["required"] and "default" not in question and name not in given:
                yield f"{label('schedules', item)}: '{name}' has no answer"


def _accepted(template: Item) -> set[str]:
    return set(questions(template))


def _wrong_answers(place: str, template: Item, data: dict[str, Any]) -> Iterator[str]:
    for name, value in data.items():
        choices = questions(template).get(name, {}).get("choices")
        if choices and value not in choices:
            yield f"{place}: '{value}' is no choice of '{name}'"


def schedules(content: Content) -> Iterator[str]:
    """Recurrence rules that AWX rejects."""
    for item in content.schedules:
        rule = item.get("rrule", "")
        if not re.match(r"DTSTART(;TZID=[^:]+:\d{8}T\d{6}|:\d{8}T\d{6}Z) RRULE:", rule) or rule.count("DTSTART") > 1:
            yield f"{label('schedules', item)}: DTSTART needs a time zone, and RRULE follows it"
            continue
        if "INTERVAL=" not in rule or re.search("EXDATE|RDATE|SECONDLY", rule):
            yield f"{label('schedules', item)}: INTERVAL is missing, or AWX does not support the rule"
        try:
            rrulestr(rule.replace(" ", "\n"))
        except ValueError as error:
            yield f"{label('schedules', item)}: {error}"
