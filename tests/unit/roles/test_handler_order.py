# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of roles do not come between a notification and its handlers.

A failed check ends the play before the handlers. The next run finds the files as desired and does not notify them
again, so the service would keep its old settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.unit.roles.test_role_files import INCLUDES, NAMES, ROLES, Loader, arguments, literal

Task = tuple[str, dict[str, Any]]


def in_order(role: str, file: str = "main.yml") -> Iterator[Task]:
    """Yield file and task for the tasks of a role in their order, with those of included files."""
    yield from flattened(role, file, yaml.load((ROLES / role / "tasks" / file).read_text(), Loader))


def flattened(role: str, file: str, tasks: Any) -> Iterator[Task]:
    for task in tasks or ():
        included = arguments(task, *INCLUDES)
        name = included.get("file") if isinstance(included, dict) else included
        if name is None:
            yield from flattened(role, file, task["block"]) if "block" in task else [(file, task)]
        elif literal(name):
            yield from in_order(role, name)


def late_checks(tasks: Iterator[Task]) -> list[str]:
    """Return the checks after a notification whose handlers have not run."""
    found, notified = [], False
    for file, task in tasks:
        if arguments(task, "meta") == "flush_handlers":
            notified = False
        elif notified and arguments(task, "assert", "fail") is not None:
            found.append(f"{file}: {task['name']}")
        notified = notified or bool(task.get("notify"))
    return found


@pytest.mark.parametrize("role", [name for name in NAMES if (ROLES / name / "tasks/main.yml").exists()])
def test_handlers_run_before_checks(role: str) -> None:
    assert late_checks(in_order(role)) == []


def test_a_late_check_is_found() -> None:
    check = ("main.yml", {"name": "Check", "ansible.builtin.assert": {"that": "false"}})
    notify = ("main.yml", {"name": "Write", "ansible.builtin.copy": {}, "notify": "Restart"})
    flush = ("main.yml", {"name": "Flush", "ansible.builtin.meta": "flush_handlers"})
    assert late_checks(iter([notify, check])) == ["main.yml: Check"]
    assert late_checks(iter([check, notify, flush, check])) == []
