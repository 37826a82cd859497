# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the answers to surveys: what AWX accepts, ignores and rejects."""

from __future__ import annotations

from typing import Any

import pytest

from tools.ee.survey import LaunchError, extra_variables


def template(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "Test", "survey_enabled": True, "survey_spec": {"spec": list(questions)}, **fields}


def question(kind: str, **fields: Any) -> dict[str, Any]:
    return {"question_name": "Question", "variable": "value", "type": kind, **fields}


@pytest.mark.parametrize(
    ("asked", "answer", "message"),
    [
        (question("integer", min=1, max=64), 100, "too large (must be no more than 64)"),
        (question("integer", min=1, max=64), 0, "too small (must be at least 1)"),
        (question("integer"), "4", "expected to be of type integer"),
        (question("integer"), True, "expected to be of type integer"),
        (question("float", max=1.5), 1.6, "too large"),
        (question("text", min=3), "ab", "too small"),
        (question("text", max=3), "abcd", "too large"),
        (question("text"), 1, "expected to be of type text"),
        (question("text", required=True), "", "value missing"),
        (question("multiplechoice", choices=["1", "2"]), "3", "expected to be one of ['1', '2']"),
        (question("multiplechoice", choices="1\n2"), 1, "expected to be one of ['1', '2']"),
        (question("multiselect", choices=["1", "2"]), "1", "expected to be a list"),
        (question("multiselect", choices=["1", "2"]), ["1", "3"], "expected to be one of"),
    ],
)
def test_wrong_answers_are_rejected(asked, answer, message):
    with pytest.raises(LaunchError) as error:
        extra_variables(template(asked), {"value": answer})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (question("integer", min=1, max=64), 64),
        (question("float"), 1),
        (question("password", min=3), "abc"),
        (question("textarea"), ""),
        (question("multiplechoice", choices="1\n2"), "2"),
        (question("multiselect", choices=["1", "2"]), ["1", "2"]),
    ],
)
def test_right_answers_become_variables(asked, answer):
    assert extra_variables(template(asked), {"value": answer}).answers == {"value": answer}


def test_omitted_answers_are_defaults_that_are_valid():
    assert extra_variables(template(question("integer", default=4)), {}).answers == {"value": 4}
    assert extra_variables(template(question("integer", default=4, max=3)), {}).answers == {}
    assert extra_variables(template(question("integer", default="")), {}).answers == {"value": ""}
    several = question("multiselect", choices="1\n2\n3", default="1\n3")
    assert extra_variables(template(several), {}).answers == {"value": ["1", "3"]}
    assert extra_variables(template(question("integer", default=4, required=True)), {}).answers == {"value": 4}
    with pytest.raises(LaunchError, match="'value' value missing"):
        extra_variables(template(question("integer", required=True)), {})


def test_variables_outside_of_the_survey_are_ignored_unless_the_template_asks_for_them():
    found = extra_variables(template(question("text"), extra_vars={"fixed": 1}), {"value": "a", "other": 2})
    assert (found.template, found.answers, found.ignored) == ({"fixed": 1}, {"value": "a"}, {"other": 2})
    asked = extra_variables(template(question("text"), ask_variables_on_launch=True), {"value": "a", "other": 2})
    assert (asked.answers, asked.ignored) == ({"value": "a", "other": 2}, {})


def test_a_disabled_survey_has_no_questions():
    found = extra_variables(template(question("text", required=True), survey_enabled=False), {"value": "a"})
    assert (found.answers, found.ignored) == ({}, {"value": "a"})


def test_variables_of_a_workflow_are_not_answers():
    """AWX does not require answers at the start of a job in a workflow, and passes all variables of the workflow."""
    asked = template(question("text", required=True, max=3))
    for inherited in ({"value": "abcd"}, {"value": "abcd", "other": 2}):
        found = extra_variables(asked, {}, inherited)
        assert (found.answers, found.ignored) == (inherited, {})
    assert extra_variables(asked, {"value": "a"}, {"value": "b"}).answers == {"value": "b"}
    with pytest.raises(LaunchError, match="'value' value missing"):
        extra_variables(asked, {}, {"other": 2})
