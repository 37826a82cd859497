# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection, names and a check of the steps of a plan. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Family, Step, UserError

CREATIONS = (Action.CREATE, Action.RECREATE)
REMOVALS = (Action.DELETE, Action.RECREATE)


def select(steps: t.Iterable[Step], family: Family, actions: t.Collection[Action]) -> list[Step]:
    """Return the steps of one family with one of the actions."""
    return [step for step in steps if step.family is family and step.action in actions]


def step_id(step: Step) -> tuple[str, str]:
    """Return kind and key, which identify a step in results and errors."""
    return step.family.kind, step.key


def step_name(step: Step) -> str:
    """Return the kind and name of an object for messages."""
    return "%s '%s'" % (step.family.title, step.key)


def list_objects(noun: str, names: t.Sequence[str]) -> str:
    """Return objects for a message: at most three names, and the number of the others."""
    if len(names) == 1:
        return "%s '%s'" % (noun, names[0])
    shown = ["'%s'" % name for name in names[:3]]
    last = "%d more" % (len(names) - 3) if len(names) > 3 else shown.pop()
    return "%ss %s and %s" % (noun, ", ".join(shown), last)


def check_writable(steps: t.Iterable[Step], project: str) -> None:
    """Reject changes in a project that is not the one of the credentials: only removals are possible there."""
    for step in steps:
        if step.action not in (Action.NONE, Action.DELETE):
            raise UserError(
                "Cannot create or change %s: the credentials are not for project '%s'. Set project_name in auth, and "
                "give the user a role there." % (step_name(step), project)
            )
