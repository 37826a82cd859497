# SPDX-License-Identifier: GPL-3.0-or-later
"""Extra variables of a job: answers to a survey, checked as AWX checks them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_TEXTS = ("text", "textarea", "password")
_NUMBERS: dict[str, tuple[type, ...]] = {"integer": (int,), "float": (int, float)}


class LaunchError(Exception):
    """Raised when AWX would reject the launch of a template."""


@dataclass(frozen=True)
class ExtraVariables:
    """Variables of a job. Ansible renders those of the template, and never those of the survey."""

    template: Mapping[str, Any]
    answers: Mapping[str, Any]
    ignored: Mapping[str, Any]  # variables that the template does not accept


def extra_variables(
    template: Mapping[str, Any], answers: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
) -> ExtraVariables:
    """Return the extra variables of a launch. Raises LaunchError.

    Args:
        template: a template of jobs or workflows.
        answers: answers to its survey.
        inherited: variables of the workflow of a job. No survey filters or checks them, and they replace answers.
    """
    inherited = inherited or {}
    survey = (template.get("survey_spec") or {}).get("spec", []) if template.get("survey_enabled") else []
    questions = {question["variable"]: question for question in survey}
    asked = [question for question in survey if question["variable"] not in inherited]
    if errors := [error for question in asked for error in _errors(question, answers)]:
        raise LaunchError(f"Cannot launch '{template['name']}': {' '.join(errors)}")
    accepted = set(questions) if not template.get("ask_variables_on_launch") else set(answers)
    defaults = {name: _default(question) for name, question in questions.items() if _has_default(question)}
    return ExtraVariables(
        template=template.get("extra_vars") or {},
        answers={**defaults, **{name: value for name, value in answers.items() if name in accepted}, **inherited},
        ignored={name: value for name, value in answers.items() if name not in accepted},
    )


def choices(question: Mapping[str, Any]) -> list[str]:
    """Return the choices of a question."""
    found = question.get("choices") or []
    return found.splitlines() if isinstance(found, str) else list(found)


def _has_default(question: Mapping[str, Any]) -> bool:
    """Return whether the job gets the default. AWX omits defaults that are no valid answer."""
    default = _default(question)
    return default is not None and not list(_errors(question, {question["variable"]: default}))


def _default(question: Mapping[str, Any]) -> Any:
    default = question.get("default")
    return default.splitlines() if question["type"] == "multiselect" and isinstance(default, str) else default


def _errors(question: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterable[str]:
    variable, kind = question["variable"], question["type"]
    if answers.get(variable) in (None, ""):
        if question.get("required") and not (variable not in answers and _has_default(question)):
            yield f"'{variable}' value missing."
        return
    value = answers[variable]
    low, high = (None if question.get(name) in (None, "") else question[name] for name in ("min", "max"))
    if kind in _TEXTS or kind in _NUMBERS:
        kinds = (str,) if kind in _TEXTS else _NUMBERS[kind]
        if not isinstance(value, kinds) or isinstance(value, bool):
            yield f"Value {value!r} for '{variable}' expected to be of type {kind}."
            return
        size: Any = len(value) if isinstance(value, str) else value
        if low is not None and size < low:
            yield f"'{variable}' value {value!r} is too small (must be at least {low})."
        if high is not None and size > high:
            yield f"'{variable}' value {value!r} is too large (must be no more than {high})."
    elif kind == "multiselect" and not isinstance(value, list):
        yield f"'{variable}' value is expected to be a list."
    else:
        for each in value if kind == "multiselect" else [value]:
            if each not in choices(question):
                yield f"Value {each!r} for '{variable}' expected to be one of {choices(question)}."
