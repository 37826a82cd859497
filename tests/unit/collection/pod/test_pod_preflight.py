# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the preflight checks."""

from __future__ import annotations

import importlib.metadata
import re
import socket
import sys

import pytest
from ansible_collections.openipu.pod.plugins.module_utils import preflight
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection

from tests import ROOT


def params(**given):
    options = {name: option.get("default") for name, option in preflight.POD_PREFLIGHT.argument_spec.items()}
    return {**options, "timeout": 5.0, **given}


def test_the_libraries_are_those_that_an_execution_environment_gets():
    text = (ROOT / "meta/ee-requirements.txt").read_text()
    assert dict(re.findall(r"^([A-Za-z]+)>=([0-9.]+)", text, re.MULTILINE)) == preflight.LIBRARIES


def test_this_environment_passes():
    found = {check.name: check for check in preflight.versions()}
    assert [check.problem for check in found.values()] == [None] * (2 + len(preflight.LIBRARIES))
    assert found["Python"].found.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")


def test_old_and_missing_libraries_have_a_remedy(monkeypatch):
    def version(name):
        if name == "netaddr":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"grpcio": "1.9.5", "protobuf": "6.31rc1"}.get(name, "99")

    monkeypatch.setattr(importlib.metadata, "version", version)
    problems = {check.name: check.problem for check in preflight.versions() if check.problem}
    assert problems == {
        "grpcio": "grpcio 1.9.5 is older than 1.80: pip install 'grpcio>=1.80'",
        "netaddr": "netaddr is missing in this Python: pip install 'netaddr>=1.1'",
    }


def test_summary_or_error_of_the_pod(pod):
    assert preflight.pod(str(pod.write()), None).found == (
        "test with 4 IPU-Machines, 1 rack, 1 cluster, 0 allocations, 0 partitions"
    )
    wrong = preflight.pod(str(pod.write(tail="partition: []\n")), None)
    assert "line 9: pod 'test': unknown key 'partition': did you mean 'partitions'?" in wrong.problem


def test_agents_that_do_not_respond_are_named():
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        up = {"id": "ag01", "host": "127.0.0.1", "port": listening.getsockname()[1]}
        down = {"id": "ag02", "host": "127.0.0.1", "port": closed.getsockname()[1]}
        closed.close()
        assert preflight.agents([up]).problem is None
        check = preflight.agents([up, down])
        assert check.found == "1 of 2 respond"
        assert check.problem == (
            f"agent ag02 (127.0.0.1:{down['port']}, connection refused) does not respond: "
            "check that the IPU-Machine is on and connected"
        )
        assert "and 2 more do not respond" in preflight.agents([down] * 6).problem


def test_missing_command_is_reported(tmp_path):
    assert preflight.command("vipu-admin", "sh").problem is None
    assert "is not an executable file" in preflight.command("vipu-admin", str(tmp_path / "vipu-admin")).problem


def test_a_failure_lists_every_problem(pod, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    given = params(
        api_host="127.0.0.1",
        api_port=port,
        transport="cli",
        vipu_admin_path=str(tmp_path / "vipu-admin"),
        pod_file=str(pod.write(tail="users: 1\n")),
        agents=[{"id": "ag01", "host": "127.0.0.1", "port": port}],
    )
    result = preflight.POD_PREFLIGHT.perform(given, False, False)
    assert result["failed"]
    assert not result["changed"]
    failed = [line.split()[1] for line in result["report"] if line.startswith("FAIL")]
    assert failed[:2] == ["POD", "controller"]
    assert {"vipu-admin", "agents"} <= set(failed)
    assert len(result["problems"]) == len(failed)
    assert all(problem in result["msg"] for problem in result["problems"])
    assert re.search(r"controller at 127\.0\.0\.1:\d+ does not respond \(connection refused\). Check", result["msg"])


@pytest.mark.parametrize("host", ["nowhere.invalid", ""])
def test_a_controller_without_an_address_is_a_problem_like_others(host):
    assert preflight.controller(Connection(host, 1, timeout=5)).problem


def test_no_connection_without_reach(pod):
    given = params(
        reach=False,
        api_host="127.0.0.1",
        api_port=1,
        pod_file=str(pod.write()),
        agents=[{"id": "a", "host": "127.0.0.1", "port": 1}],
        transport="cli",
        vipu_admin_path="/nonexistent/vipu-admin",
    )
    result = preflight.POD_PREFLIGHT.perform(given, False, False)
    assert not result.get("failed")
    assert not [
        check["name"]
        for check in result["checks"]
        if "controller" in check["name"] or check["name"] in ("agents", "vipu-admin")
    ]
