# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow *Rolling upgrade* of AWX, with ansible-runner, on hosts with systemd.

The hosts have the open controller and the open agent, which report the versions in their configuration. A substitute
for the vendor's rack_tool runs on the host of the controller and upgrades the IPU-Machine by SSH.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.roles.rack import MACHINE, POD, WHEELS, Rack, write_variables
from tests.waiting import until
from tests.workflow_jobs import HostJobs
from tools.ee.jobs import Job, Launch
from tools.ee.workflow import Workflow

pytestmark = pytest.mark.timeout(1500)  # the services of two hosts are installed, and jobs run one after the other

OLD, NEW = {"GWSW": "2.0.5", "Virm": "1.18.0"}, {"GWSW": "2.1.0", "Virm": "1.19.0"}
TOOL = "/opt/rack_tool"
UNIT = "virm-agent@{{ pod_agent_id }}"
SITE: dict[str, dict[str, Any]] = {
    "all": {
        "virm_agent_upgrade_versions": NEW,
        "virm_agent_upgrade_timeout": 120,
        "virm_agent_rack_tool": f"{TOOL}/rack_tool.py",
        "virm_agent_rack_tool_config": f"{TOOL}/config.json",
        "virm_agent_rack_tool_host": "controller1",
        "virm_agent_vendor_service": UNIT,
    },
    "machines": {
        "virm_agent_agents": [
            {
                "name": "{{ pod_agent_id }}",
                "host": "{{ pod_addresses.gw }}",
                "options": {"versions": ",".join(f"{name}={version}" for name, version in OLD.items())},
            }
        ],
    },
}
SUBSTITUTE = (
    ROOT / "tests" / "playbooks" / "upgrade" / "rack_tool.py",
    ROOT / "extensions" / "molecule" / "virm_agent_upgrade" / "files" / "gateway.py",
)
GATEWAY = SUBSTITUTE[1].with_name("gateway.sh")
# The user of the gateway accepts the key of the host of the controller, and may upgrade.
USER = """
useradd --create-home --shell /bin/bash itadmin
install --directory --owner=itadmin --mode=0700 /home/itadmin/.ssh
install --owner=itadmin --mode=0600 /dev/stdin /home/itadmin/.ssh/authorized_keys
echo 'itadmin ALL=(root) NOPASSWD: /usr/local/sbin/gateway' >/etc/sudoers.d/itadmin
"""
FAILURE = "/etc/gateway-fails"
REPORT = "/var/lib/openipu/reports/bare-hosts.html"


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    made = Rack(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def jobs(rack: Rack, tmp_path: Path) -> HostJobs:
    """Return runs of job templates. The hosts have a controller with a cluster of one IPU-Machine, and rack_tool."""
    inventory = tmp_path / "inventory"
    shutil.copytree(POD, inventory)
    write_variables(inventory, str(rack.exposed), str(WHEELS), **SITE)
    ssh = {name: value for name, value in rack.environment.variables().items() if name != "PATH"}
    made = HostJobs(tmp_path, inventory / "pod.yml", {}, ssh, enter=rack.environment.command_line)
    run(made, "V-IPU server")
    made = replace(made, environment={**ssh, **credential(rack)})  # the job created it
    run(made, "V-IPU agents")
    run(made, "Agents, clusters and allocations")
    install_rack_tool(rack)
    return made


def run(jobs: HostJobs, name: str) -> Job:
    """Run a job template that must succeed."""
    job = jobs.launch(name, Launch())
    assert job.status == "successful", job.stdout
    return job


def credential(rack: Rack) -> dict[str, str]:
    """Return the environment that the credential of the V-IPU controller gives to jobs."""
    login = rack.exposed / "login"
    key = re.search('api-access-key="(.*)"', (login / "admin.vipu-cli.hcl").read_text())
    assert key
    files = {"CA_PATH": "ca.crt", "CLIENT_CERT": "client.crt", "CLIENT_KEY": "client.key"}
    paths = {f"VIPU_CLI_{option}": str(login / file) for option, file in files.items()}
    return {"VIPU_CLI_API_USER_ID": "admin", "VIPU_CLI_API_ACCESS_KEY": key[1], **paths}


def install_rack_tool(rack: Rack) -> None:
    """Install rack_tool on the host of the controller, and its commands on the IPU-Machine."""
    versions = ",".join(f"{name}={version}" for name, version in NEW.items())
    config = {
        "stand_in": ["python3", f"{TOOL}/{SUBSTITUTE[1].name}", versions],
        "machines": [{"name": "ipum1", "gw_ip": MACHINE}],
    }
    file = rack.exposed / "config.json"
    file.write_text(json.dumps(config))
    shell(rack, "controller1", f"mkdir {TOOL}")
    for path in (*SUBSTITUTE, file):
        rack.run("podman", "cp", str(path), f"controller1:{TOOL}/")
    shell(rack, "controller1", f"chmod 0755 {TOOL}/*.py; chown -R ansible {TOOL}")
    home = "/home/ansible/.ssh"
    shell(rack, "controller1", f"su ansible -c 'ssh-keygen -q -t ed25519 -N \"\" -f {home}/id_ed25519'")
    key = shell(rack, "controller1", f"cat {home}/id_ed25519.pub").strip()
    shell(rack, "ipum1", f"echo '{key}' | {{ {USER} }}")
    rack.run("podman", "cp", str(GATEWAY), "ipum1:/usr/local/sbin/gateway")
    shell(rack, "ipum1", "chmod 0755 /usr/local/sbin/gateway")


def shell(rack: Rack, host: str, script: str) -> str:
    """Run a script as root on a host, and return its output."""
    return rack.run("podman", "exec", host, "sh", "-euc", script)


def agent(rack: Rack) -> dict[str, Any]:
    """Return the agent of the IPU-Machine, as the controller reports it."""
    found: dict[str, Any] = json.loads(rack.administrate("--output", "json", "get", "agent", "ipum1"))
    return found


def versions(rack: Rack) -> dict[str, str]:
    """Return the versions that the controller reports for the IPU-Machine."""
    facts = agent(rack)["facts"]
    return {"GWSW": facts["GWSW Version"], "Virm": facts["Virm version"]}


def states(workflow: Workflow) -> dict[str, str]:
    return {name: job.status for name, job in workflow.jobs.items()}


def output(job: Job) -> str:
    return " ".join(job.stdout.split())


def _a_failed_cluster_test_prevents_the_approval(rack: Rack, jobs: HostJobs) -> None:
    shell(rack, "ipum1", "systemctl stop virm-agent@ipum1")
    failed = jobs.run_workflow("Rolling upgrade")
    shell(rack, "ipum1", "systemctl start virm-agent@ipum1")
    until(lambda: agent(rack)["state"] == "Up")
    assert states(failed) == {"backup": "successful", "tests_before": "failed", "failure_report": "failed"}
    assert (failed.status, failed.approvals) == ("failed", [])
    # The start of the reason depends on the version of gRPC. No agent listens on the port after the stop.
    assert re.search(r"\(ipum1: [^()]*Connection refused", output(failed.jobs["tests_before"]))
    report = failed.jobs["failure_report"].artifacts["rack_report_file"]
    assert report == f"controller1:{REPORT}"
    assert "ipum1 does not respond" in shell(rack, "controller1", f"cat {REPORT}")
    jobs.sent.clear()


def _a_failed_upgrade_is_reported_and_the_next_run_upgrades(rack: Rack, jobs: HostJobs) -> None:
    shell(rack, "ipum1", f"touch {FAILURE}")
    failed = jobs.run_workflow("Rolling upgrade")
    shell(rack, "ipum1", f"rm {FAILURE}")
    before = {"backup": "successful", "tests_before": "successful"}
    assert states(failed) == {**before, "upgrade": "failed", "failure_report": "failed"}
    assert (failed.status, failed.approvals) == ("failed", ["approval"])
    assert "the standby image cannot be written" in output(failed.jobs["upgrade"])
    assert [each.name for each in jobs.sent] == ["POD operations (mail)"]
    assert versions(rack) == OLD

    upgraded = jobs.run_workflow("Rolling upgrade")
    nodes = ("backup", "tests_before", "upgrade", "tests_after", "health")
    assert states(upgraded) == dict.fromkeys(nodes, "successful"), list(upgraded.jobs.values())[-1].stdout
    assert [upgraded.jobs[name].changed for name in ("tests_before", "tests_after")] == [1, 1]  # clusters are tested
    assert versions(rack) == NEW
    assert len(list((rack.exposed / "backups").rglob("*.tar.gz"))) == 3


def _the_installed_services_are_unchanged(jobs: HostJobs) -> None:
    for name in ("V-IPU server", "V-IPU agents"):
        job = jobs.launch(name, Launch(job_type="check"))
        assert (job.status, job.changed) == ("successful", 0), job.stdout


# One test, because the workers of a run would install the hosts once for each test.
def test_the_workflow_upgrades_machines_between_cluster_tests(rack: Rack, jobs: HostJobs) -> None:
    _the_installed_services_are_unchanged(jobs)
    _a_failed_cluster_test_prevents_the_approval(rack, jobs)
    _a_failed_upgrade_is_reported_and_the_next_run_upgrades(rack, jobs)
