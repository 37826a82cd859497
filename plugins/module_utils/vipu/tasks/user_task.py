# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_user: create or remove a user, and write the configuration of a new user to a file."""

from __future__ import annotations

from ...reconcile import Action, Object, Step
from ...runner import Task
from ..convergence import STATE, call_after_write, converge_object, single_result
from ..options import VIPU, Run, connection
from ..resources import OPTIONS, USER
from ..userfile import check_writable, user_file, write_user_file


def _user(run: Run) -> Object:
    """Converge a user. The key of a new user is returned only once, so its file must be writable first."""
    file = user_file(run.params["config_dest"], run.params["id"])

    def prepare(step: Step) -> None:
        if step.action is Action.CREATE and file:
            check_writable(file)

    step, report = converge_object(run, USER, prepare)
    if step and step.action is Action.CREATE and file and not run.check_mode:
        key = run.transport.access_key(step.key)
        call_after_write(True, lambda: write_user_file(file, connection(run.params), step.key, key))
    result = call_after_write(report.changed, lambda: single_result(run, USER, step, report))
    return {**result, "config_dest": str(file)} if file else result


VIPU_USER = Task(
    VIPU,
    {**OPTIONS["user"], "state": STATE, "config_dest": {"type": "path"}},
    _user,
    {"required_if": [("state", "present", ("config_dest",))]},
)
