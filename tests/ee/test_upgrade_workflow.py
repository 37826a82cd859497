# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow *Rolling upgrade* of AWX with ansible-runner and a twin: cluster tests as gate, approval, failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from openipu.twin.launch.launcher import Twin
from tests.integration.bringup.own_twin import BIN
from tests.playbooks.upgrade.test_rolling_upgrade import HERE, NEW, Upgrades, rack, upgrades
from tests.workflow_jobs import HostJobs

__all__ = ["rack", "upgrades"]

pytestmark = pytest.mark.timeout(1800)  # each workflow has several jobs

NAME = "Rolling upgrade"
GATE = ["backup", "tests_before"]


@pytest.fixture
def jobs(upgrades: Upgrades, tmp_path: Path) -> HostJobs:
    """Return jobs for the rack, whose controller runs on this host without systemd."""
    state = upgrades.twin.state
    variables = {
        "ansible_become": False,
        "virm_agent_upgrade_versions": NEW,
        "virm_agent_upgrade_timeout": 120,
        "virm_agent_rack_tool": str(HERE / "rack_tool.py"),
        "virm_agent_rack_tool_config": str(upgrades.folder / "config.json"),
        # Machines of a twin have neither SSH nor a BMC.
        "virm_agent_ssh": False,
        "virm_agent_fail_on_findings": False,
        "rack_report_folder": str(tmp_path / "reports"),
        "vipu_server_as_user": [],
        "vipu_server_program": str(BIN / "vipu-server"),
        "vipu_server_backup_folder": str(tmp_path / "backups"),
        "vipu_server_command_environment": {
            "VIPU_SERVER_DATABASE": str(Twin(state).database),
            "VIPU_SERVER_CERTS": str(tmp_path / "no-certs"),
        },
    }
    (tmp_path / "backups").mkdir()
    return HostJobs(tmp_path, upgrades.twin.inventory, variables, {"TWIN_STATE_DIR": str(state)})


def test_the_workflow_upgrades_all_machines_after_the_approval(
    jobs: HostJobs, upgrades: Upgrades, tmp_path: Path
) -> None:
    denied = jobs.run_workflow(NAME, approved=False)
    states = {name: (job.status, job.status == "failed" and job.stdout) for name, job in denied.jobs.items()}
    assert states == dict.fromkeys(GATE, ("successful", False))
    assert (denied.status, upgrades.calls) == ("failed", [])
    assert len(list((tmp_path / "backups").iterdir())) == 1

    done = jobs.run_workflow(NAME)
    states = {name: (job.status, job.status == "failed" and job.stdout) for name, job in done.jobs.items()}
    assert states == dict.fromkeys([*GATE, "upgrade", "tests_after", "health"], ("successful", False))
    assert (done.status, done.approvals) == ("successful", ["approval"])
    assert upgrades.calls == [f"upgrade {name}" for name in upgrades.machines]
    assert upgrades.versions() == ["2.1.0"] * 3


def test_a_failed_cluster_test_stops_the_workflow_with_a_report(
    jobs: HostJobs, upgrades: Upgrades, tmp_path: Path
) -> None:
    first = upgrades.machines[0]
    upgrades.release(NEW, **{first: "loses a cable"})
    done = jobs.run_workflow(NAME)
    assert {name: job.status for name, job in done.jobs.items()} == {
        **dict.fromkeys(GATE, "successful"),
        "upgrade": "failed",
        "failure_report": "successful",
    }
    assert upgrades.calls == [f"upgrade {first}"]
    assert upgrades.versions() == ["2.1.0", "2.0.5", "2.0.5"]
    assert list((tmp_path / "reports").glob("*.html"))
