# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the jobs and workflows of ``extensions/awx`` with ansible-runner on this host.

Suites with their own services use it. Playbooks, surveys, variables and results are those of AWX. The
inventory and the variables of the test replace the credentials, and no container isolates the jobs.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.unit.collection.awx.content import Content, load, named
from tools.ee.jobs import Job, Launch, arguments, extra_vars_file
from tools.ee.notifications import Notification, notifications
from tools.ee.survey import extra_variables
from tools.ee.tools import runner_environment
from tools.ee.workflow import Workflow, run_workflow

_BIN = Path(sys.executable).parent
_IDENT = "job"


@dataclass
class HostJobs:
    """Runs of job templates.

    ``variables``: site variables of the test, which replace those of templates, answers and results. ``enter``:
    function that returns the command line which runs a command in other namespaces, whose network the jobs use.
    ``sent``: notifications of the jobs.
    """

    folder: Path
    inventory: Path
    variables: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    content: Content = field(default_factory=load)
    enter: Callable[[Sequence[str]], list[str]] = list
    sent: list[Notification] = field(default_factory=list)

    def launch(self, name: str, launch: Launch) -> Job:
        """Run a job template, and return the result, also of a failed job."""
        template = named(self.content.templates)[name]
        found = extra_variables(template, launch.answers, launch.inherited)
        answers = {name: value for name, value in found.answers.items() if name not in self.variables}
        found = replace(found, template={**found.template, **self.variables}, answers=answers)
        data = Path(tempfile.mkdtemp(prefix="job-", dir=self.folder))
        (data / "env").mkdir()
        (data / "env" / "extravars").write_text(extra_vars_file(found, launch.user))
        (data / "env" / "cmdline").write_text(shlex.join(arguments(template, launch)))
        command = [sys.executable, "-m", "ansible_runner", "run", str(data), f"--playbook={template['playbook']}"]
        command += [f"--ident={_IDENT}", f"--project-dir={ROOT}", f"--inventory={self.inventory}", "--quiet"]
        base = runner_environment()
        environment = {**base, "PATH": f"{_BIN}:{base['PATH']}", "ANSIBLE_NOCOLOR": "true", **self.environment}
        done = subprocess.run(self.enter(command), env=environment, capture_output=True, text=True, check=False)
        job = Job(data, found.ignored)
        assert (data / "artifacts" / _IDENT / "status").exists(), done.stdout + done.stderr
        self.sent += notifications(named(self.content.notifications), template, job)
        return job

    def run_workflow(self, name: str, answers: Mapping[str, Any] | None = None, *, approved: bool = True) -> Workflow:
        """Run a workflow with answers to its survey."""
        workflow = named(self.content.workflows)[name]
        return run_workflow(workflow, self.launch, Launch(answers=answers or {}), approve=lambda _node: approved)
