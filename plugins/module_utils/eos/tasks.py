# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module eos_pod does: one session for everything that differs, and none when nothing does."""

from __future__ import annotations

from ..reconcile import Action, ItemError, Object, Step, converge, plan
from ..runner import Task, TaskError
from .client import EosError
from .config import without_secrets
from .options import CONFIG_OPTIONS, EOS, Run
from .resources import FAMILIES, Config, commands, interface_clauses, read, wanted


def _eos_pod(run: Run) -> Object:
    params = run.params
    if params["state"] == "rendered":
        steps = _plan(wanted(params["config"], None, replace=False), None)
        made = commands(steps, interface_clauses(params["model"] or ""))
        return {"changed": False, "commands": list(map(without_secrets, made))}
    if not params["host"]:
        raise TaskError("Name the switch with host: only state rendered does without.")
    if params["confirm_timeout"] < 0:
        raise TaskError(
            "The confirm_timeout %g is none: give seconds, or 0 to commit for good." % params["confirm_timeout"]
        )
    there = read(run.transport.show("show running-config")[0])
    if params["state"] == "gathered":
        return {"changed": False, "gathered": there.gathered()}
    steps = _plan(wanted(params["config"], there, params["state"] == "replaced"), there)
    asked = commands(steps, there.clauses)
    diffs: list[str] = []

    def configure(_work: list[Step]) -> list[ItemError]:
        try:
            diffs.append(run.transport.configure(asked, params["confirm_timeout"], params["save"], run.check_mode))
        except EosError as error:
            raise TaskError(error.sentence, changed=error.changed) from None
        return []

    report = converge(steps, configure, run.check_mode, diff=False, foreteller=configure)
    diff = "".join(diffs)
    result = {**report.result(), "changed": bool(diff.strip()), "commands": list(map(without_secrets, asked))}
    if asked and not result["changed"]:
        run.warnings.append(
            "The switch says that these commands change nothing, and so they were not committed: %s."
            % "; ".join(result["commands"])
        )
    if run.diff:
        result["diff"] = {"prepared": without_secrets(diff)}
    return result


def _plan(objects: dict[str, list[Object]], there: Config | None) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        steps += plan(family, objects[family.plural], there.objects[family.plural] if there else [])
    return [step for step in steps if there or step.action is Action.CREATE]


EOS_POD = Task(
    EOS,
    {
        "config": {"type": "dict", "options": CONFIG_OPTIONS},
        "state": {"type": "str", "choices": ["merged", "replaced", "rendered", "gathered"], "default": "merged"},
        "model": {"type": "str"},
        "confirm_timeout": {"type": "float", "default": 60.0},
        "save": {"type": "bool", "default": True},
    },
    _eos_pod,
    {
        "required_if": [
            *(("state", state, ("host", "config")) for state in ("merged", "replaced")),
            ("state", "rendered", ("config",)),
            ("state", "gathered", ("host",)),
        ],
        "required_together": [("client_cert", "client_key")],
    },
)
