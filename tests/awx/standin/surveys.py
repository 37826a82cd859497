# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of surveys, prompts on launch and saved launch configurations.

Sources: ``JobTemplateSurveySpec``, ``SurveyJobTemplateMixin`` and ``JobTemplate._accept_or_ignore_job_kwargs`` of
AWX 24.6.1, and launches on a real AWX 24.6.1.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.awx.standin.fields import Rejected, parse_variables

ENCRYPTED = "$encrypted$"
TYPES: dict[str, Any] = {
    "text": str,
    "textarea": str,
    "password": str,
    "multiplechoice": str,
    "multiselect": str,
    "integer": int,
    "float": (float, int),
}
# Fields of nodes and schedules, and the field of the template that allows them.
PROMPTS = {
    "inventory": "ask_inventory_on_launch",
    "scm_branch": "ask_scm_branch_on_launch",
    "job_type": "ask_job_type_on_launch",
    "job_tags": "ask_tags_on_launch",
    "skip_tags": "ask_skip_tags_on_launch",
    "limit": "ask_limit_on_launch",
    "diff_mode": "ask_diff_mode_on_launch",
    "verbosity": "ask_verbosity_on_launch",
    "execution_environment": "ask_execution_environment_on_launch",
    "forks": "ask_forks_on_launch",
    "job_slice_count": "ask_job_slice_count_on_launch",
    "timeout": "ask_timeout_on_launch",
    "credentials": "ask_credential_on_launch",
    "labels": "ask_labels_on_launch",
    "instance_groups": "ask_instance_groups_on_launch",
}


def displayed(survey: dict[str, Any]) -> dict[str, Any]:
    """Return a survey without the defaults of passwords."""
    shown = copy.deepcopy(survey)
    for question in shown.get("spec", []):
        if question["type"] == "password" and question.get("default"):
            question["default"] = ENCRYPTED
    return shown


def checked(survey: Any, old: dict[str, Any]) -> dict[str, Any]:
    """Return a survey to store. Raise Rejected, with the message under ``error``."""
    for field, kind, title in (
        ("name", str, "string"),
        ("description", str, "string"),
        ("spec", list, "list of items"),
    ):
        if field not in survey:
            raise Rejected({"error": f"Field '{field}' is missing from survey spec."})
        if not isinstance(survey[field], kind):
            received = type(survey[field]).__name__
            raise Rejected({"error": f"Expected {title} for field '{field}', received {received} type."})
    if not survey["spec"]:
        raise Rejected({"error": "'spec' doesn't contain any items."})
    before = {question["variable"]: question for question in old.get("spec", [])}
    found: set[str] = set()
    for index, question in enumerate(survey["spec"]):
        _check_question(index, question, found)
        _check_default(index, question)
        _keep_password(index, question, before.get(question["variable"], {}))
        found.add(question["variable"])
    return dict(survey)


def _check_question(index: int, question: Any, found: set[str]) -> None:
    if not isinstance(question, dict):
        raise Rejected({"error": f"Survey question {index} is not a json object."})
    for field in ("type", "question_name", "variable", "required"):
        kind, title = (bool, "boolean") if field == "required" else (str, "string")
        if field not in question:
            raise Rejected({"error": f"'{field}' missing from survey question {index}"})
        if not isinstance(question[field], kind):
            raise Rejected({"error": f"'{field}' in survey question {index} expected to be {title}."})
    if question["variable"] in found:
        raise Rejected({"error": f"'variable' '{question['variable']}' duplicated in survey question {index}."})
    if question["type"] not in TYPES:
        allowed = ", ".join(TYPES)
        problem = f"'{question['type']}' in survey question {index} is not one of '{allowed}' allowed question types."
        raise Rejected({"error": problem})
    for limit in ("min", "max"):
        if question.get(limit) is not None and not isinstance(question[limit], int):
            raise Rejected({"error": f"The {limit} limit in survey question {index} expected to be integer."})


def _check_default(index: int, question: dict[str, Any]) -> None:
    kind, default = question["type"], question.get("default", "")
    if default != "" and not isinstance(default, TYPES[kind]):
        title = kind if kind in ("integer", "float") else "string"
        raise Rejected({"error": f"Default value {default} in survey question {index} expected to be {title}."})
    if kind not in ("multiselect", "multiplechoice"):
        return
    if "choices" not in question:
        raise Rejected({"error": f"Survey question {index} of type {kind} must specify choices."})
    for field in ("choices", "default"):
        if isinstance(question.get(field), str):
            question[field] = "\n".join(line for line in question[field].splitlines() if line.strip())
    defaults = question.get("default", "").splitlines()
    if kind == "multiplechoice" and len(defaults) > 1:
        raise Rejected({"error": "Multiple Choice (Single Select) can only have one default value."})
    if any(item not in question["choices"] for item in defaults):
        raise Rejected({"error": "Default choice must be answered from the choices listed."})


def _keep_password(index: int, question: dict[str, Any], before: dict[str, Any]) -> None:
    default = question.get("default")
    if not isinstance(default, str) or not default.startswith(ENCRYPTED):
        return
    if question["type"] != "password":
        message = f"{ENCRYPTED} is a reserved keyword for password question defaults, survey question {index} is type"
        raise Rejected({"error": f"{message} {question['type']}."})
    if "default" not in before:
        raise Rejected(
            {"error": f"{ENCRYPTED} is a reserved keyword, may not be used for new default in position {index}."}
        )
    question["default"] = before["default"]


def answer_errors(template: dict[str, Any], answers: dict[str, Any], required: bool = True) -> list[str]:
    """Return what the survey of a template rejects in these answers."""
    survey = template.get("_survey") or {}
    if not template.get("survey_enabled"):
        return []
    return [error for question in survey.get("spec", []) for error in _answer_errors(question, answers, required)]


def _answer_errors(question: dict[str, Any], answers: dict[str, Any], required: bool) -> list[str]:
    name, kind = question["variable"], question["type"]
    if name not in answers:
        return [f"'{name}' value missing"] if question["required"] and required else []
    value = answers[name]
    if kind == "password" and value == ENCRYPTED:
        return []
    if kind in ("text", "textarea", "password"):
        if not isinstance(value, str):
            return [f"Value {value} for '{name}' expected to be a string."]
        return _range_errors(question, value, len(value))
    if kind in ("integer", "float"):
        if isinstance(value, bool) or not isinstance(value, TYPES[kind]):
            expected = "an integer" if kind == "integer" else "a numeric type"
            return [f"Value {value} for '{name}' expected to be {expected}."]
        return _range_errors(question, value, value)
    choices = question["choices"].splitlines() if isinstance(question["choices"], str) else question["choices"]
    if kind == "multiselect" and not isinstance(value, list):
        return [f"'{name}' value is expected to be a list."]
    values = value if kind == "multiselect" else [value]
    return [f"Value {item} for '{name}' expected to be one of {choices}." for item in values if item not in choices]


def _range_errors(question: dict[str, Any], value: Any, size: float) -> list[str]:
    name, least, most = question["variable"], question.get("min"), question.get("max")
    errors = []
    if least not in ("", None) and size < least:
        length = f"length is {size} " if isinstance(value, str) else ""
        errors.append(f"'{name}' value {value} is too small ({length}must be at least {least}).")
    if most not in ("", None) and size > most:
        errors.append(f"'{name}' value {value} is too large (must be no more than {most}).")
    return errors


def passwords(template: dict[str, Any] | None) -> set[str]:
    """Return the variables of password questions of a template."""
    survey = (template or {}).get("_survey") or {}
    return {question["variable"] for question in survey.get("spec", []) if question["type"] == "password"}


def prompt_errors(template: dict[str, Any], values: dict[str, Any], required: bool) -> dict[str, Any]:
    """Return what a template rejects in the prompts of a node or schedule, by field.

    ``required``: whether required answers may not be missing. They may be in nodes of workflows.
    """
    errors: dict[str, Any] = {}
    answers = parse_variables(values.get("extra_data") or {})
    if found := answer_errors(template, answers, required):
        errors["variables_needed_to_start"] = found
    if extra := rejected_variables(template, answers):
        hint = "Check the Prompt on Launch setting on the template to include Extra Variables."
        errors["extra_data"] = [f"Variables {', '.join(extra)} are not allowed on launch. {hint}"]
    for field, ask in PROMPTS.items():
        value = values.get(field)
        if value in (None, []) or value == template.get(field) or isinstance(value, list):
            continue
        if not template.get(ask):
            errors[field] = ["Field is not configured to prompt on launch."]
    return errors


def rejected_variables(template: dict[str, Any], answers: dict[str, Any]) -> list[str]:
    """Return the variables that neither the survey nor the template accepts."""
    if template.get("ask_variables_on_launch"):
        return []
    survey = (template.get("_survey") or {}) if template.get("survey_enabled") else {}
    known = {question["variable"] for question in survey.get("spec", [])}
    preset = parse_variables(template.get("extra_vars") or "")
    return sorted(name for name in answers if name not in known and preset.get(name, answers) != answers[name])
