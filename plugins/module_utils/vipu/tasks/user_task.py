# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_user: a user, its certificates, and the file with the configuration of a new user."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...reconcile import Action, Object, Step
from ...runner import Task
from ..convergence import STATE, call_after_write, converge_object, single_result
from ..names import ALL_ALLOCATIONS
from ..options import VIPU, Run
from ..resources import OPTIONS, USER
from ..user_certificates import OPTIONS as CERTIFICATE_OPTIONS
from ..user_certificates import Outcome, check_possible, converge_certificates, without_foreign_certificate
from ..userfile import check_writable, user_file, write_user_file


def _user(run: Run) -> Object:
    """Converge a user. The key of a new user is returned only once, so its file must be writable first."""
    check_possible(run)
    file = user_file(run.params["config_dest"], run.params["id"])

    def prepare(step: Step) -> None:
        if step.action is Action.CREATE and file:
            check_writable(file)

    step, report = converge_object(run, USER, prepare, partial(_with_all_allocations, run))
    if step and step.action is Action.CREATE and file and not run.check_mode:
        key = run.transport.access_key(step.key)
        base = without_foreign_certificate(run, file)
        base = base if run.params["role"] == "admin" else run.transport.of_users(base)
        call_after_write(True, lambda: write_user_file(file, base, step.key, key))
    result = call_after_write(report.changed, lambda: single_result(run, USER, step, report))
    if file is None:
        return result
    result["config_dest"] = str(file)
    created = step is not None and step.action is Action.CREATE
    if run.params["state"] == "present":
        found = call_after_write(report.changed, lambda: converge_certificates(run, file, created))
        if found:
            _add(result, found, run.params["id"])
    return result


def _with_all_allocations(run: Run, step: Step) -> Step:
    """Add the default of the option allocations to the creation of a user: all, as on Graphcore's command line."""
    desired = step.desired
    if step.action is not Action.CREATE or not desired or desired["role"] == "admin":
        return step
    if desired["allocations"] is not None:
        return step
    message = (
        "User '%s' may use all allocations, because allocations is omitted. Set it to a list of allocations, or to [] "
        "for none." % step.key
    )
    if message not in run.warnings:  # another plan of the same task has the same warning
        run.warnings.append(message)
    return replace(step, desired={**desired, "allocations": [ALL_ALLOCATIONS]})


def _add(result: Object, found: Outcome, user: str) -> None:
    """Add certificates to the result of a task."""
    certificate, key = found.files
    result.update(
        changed=result["changed"] or found.changed,
        certificates=found.after,
        client_cert=str(certificate),
        client_key=str(key),
    )
    if "diff" in result and found.changed:
        for side in ("before", "after"):
            result["diff"][side]["certificates"] = {user: getattr(found, side)}


VIPU_USER = Task(
    VIPU,
    {**OPTIONS["user"], "state": STATE, "config_dest": {"type": "path"}, **CERTIFICATE_OPTIONS},
    _user,
    {"required_if": [("state", "present", ("config_dest",))]},
)
