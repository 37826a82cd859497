# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module eos_pod: apply all differences in one configuration session, if there are any.

Modules of this family: ``resources`` compares the configuration, ``config_lines`` maps its options to lines, and
``running_config`` parses what a switch prints. ``client`` sends requests, and ``cabling`` compares the POD model with
a switch.
"""

from __future__ import annotations

from ..reconcile import Action, Failure, ItemError, Object, Step, converge, plan
from ..replan import Attempt, converge_with_others
from ..runner import Task, TaskError
from .client import EosError, SessionConflict
from .options import CONFIG_OPTIONS, EOS, Run
from .resources import FAMILIES, Config, commands, desired, interface_clauses, read
from .running_config import without_secrets


def _eos_pod(run: Run) -> Object:
    params = run.params
    if params["state"] == "rendered":
        steps = _plan(desired(params["config"], None, replace=False), None)
        rendered = commands(steps, interface_clauses(params["model"] or ""))
        return {"changed": False, "commands": list(map(without_secrets, rendered))}
    if not params["host"]:
        raise TaskError("Cannot connect to the switch: host is not set. Set host, or use state rendered.")
    if params["confirm_timeout"] < 0:
        raise TaskError(
            "Cannot use confirm_timeout %g: it is negative. Set it to seconds, or to 0 to commit without confirmation."
            % params["confirm_timeout"]
        )
    if params["state"] == "gathered":
        return {"changed": False, "gathered": _read(run).gathered()}
    needed: list[str] = []
    diffs: list[str] = []

    def configure(work: list[Step]) -> list[ItemError]:
        try:
            diffs.append(run.transport.configure(needed, params["confirm_timeout"], params["save"], run.check_mode))
        except SessionConflict as error:
            return [ItemError.of(step, error.message, Failure.BLOCKED, error.error_code) for step in work]
        except EosError as error:
            raise TaskError(error.message, changed=error.changed, error_code=error.error_code) from None
        return []

    def attempt() -> Attempt:
        actual = _read(run)
        steps = _plan(desired(params["config"], actual, params["state"] == "replaced"), actual)
        needed[:] = commands(steps, actual.clauses)
        return Attempt(steps, lambda: (steps, converge(steps, configure, run.check_mode, False, configure)))

    _steps, report = converge_with_others(attempt, diff=False)
    if report.failed:
        raise TaskError(report.message, error_code=report.error_code)
    diff = "".join(diffs)
    result = {**report.result(), "changed": bool(diff.strip()), "commands": list(map(without_secrets, needed))}
    if needed and not result["changed"]:
        run.warnings.append(
            "The switch accepted these commands, but they changed nothing and were not committed: %s."
            % "; ".join(result["commands"])
        )
    if run.diff:
        result["diff"] = {"prepared": without_secrets(diff)}
    return result


def _read(run: Run) -> Config:
    return read(run.transport.show("show running-config")[0])


def _plan(objects: dict[str, list[Object]], actual: Config | None) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        steps += plan(family, objects[family.plural], actual.objects[family.plural] if actual else [])
    return [step for step in steps if actual or step.action is Action.CREATE]


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
