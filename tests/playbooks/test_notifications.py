# SPDX-License-Identifier: GPL-3.0-or-later
"""Notifications of AWX with the results of real jobs: the mails of drift checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.bringup.conftest import deployed, own
from tests.integration.bringup.own_twin import OwnTwin
from tests.workflow_jobs import HostJobs
from tools.ee.notifications import URL

__all__ = ["deployed", "own"]

Jobs = Callable[[OwnTwin], HostJobs]
STRANGER = {"username": "stranger", "auth_key": "pass-phrase", "priv_key": "pass-phrase", "port": 1161}


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    """Return a function that returns runs of job templates with a twin."""
    return lambda pod: HostJobs(tmp_path, pod.inventory, {}, {"TWIN_STATE_DIR": str(pod.state)})


def test_a_mail_lists_the_differences_of_a_pod(deployed: OwnTwin, jobs: Jobs) -> None:
    deployed.playbook("site.yml", seconds=300)
    runs = jobs(deployed)
    assert list(runs.run_workflow("Drift").jobs) == ["check"]
    assert runs.sent == []
    with Client(Connection(deployed.controller)) as client:
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id="language"))
    assert list(runs.run_workflow("Drift").jobs) == ["check", "report"]
    [mail] = runs.sent
    assert (mail.name, mail.subject) == ("POD drift (mail)", "The POD differs from its description")
    assert mail.body == f"server1: partitions language\n\n{URL}"


def test_a_mail_lists_devices_that_were_not_compared(deployed: OwnTwin, jobs: Jobs) -> None:
    runs = replace(jobs(deployed), variables={"pdu_connection": STRANGER})
    assert [job.status for job in runs.run_workflow("Drift").jobs.values()] == ["failed", "failed"]
    [mail] = runs.sent
    assert mail.subject == "The drift check of the POD failed"
    assert isinstance(mail.body, str)
    lines = mail.body.splitlines()
    assert lines[0] == "Not compared:"
    assert [line.partition(": ")[0] for line in lines[1:3]] == ["pdu1", "pdu2"]
    assert lines[3:5] == ["", "Differences:"]
    assert lines[-1] == URL
