# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module pod_report: the file is copied, and errors have messages."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.integration.collection.playbook import rejections, results
from tests.integration.pdu_agents import AUTH_KEY, HOST, PRIV_KEY, WRITER, agents_of_pdus
from tests.unit.collection.report.report_support import failing, info, passing

POD = str(ROOT / "inventory/twin/pod.yml")


def draw(folder: Path, *options: str, **given: Any) -> dict[str, Any]:
    (done,) = results(folder, [{"name": "Draw", "openipu.pod.pod_report": given}], *options)
    return done


def test_a_file_is_written_once_and_backed_up_before_a_change(tmp_path: Path) -> None:
    dest = tmp_path / "rack.html"
    given = {"dest": str(dest), "pod": POD, "info": info(), "test_run": passing()}
    assert draw(tmp_path, "--check", **given)["changed"]
    assert not dest.exists(), "check mode"
    first = draw(tmp_path, **given)
    assert (first["changed"], first["dest"], dest.stat().st_mode & 0o777) == (True, str(dest), 0o644)
    before = dest.read_bytes()
    assert not draw(tmp_path, **given)["changed"]
    other = {**given, "test_run": failing(), "mode": "0600", "backup": True}
    changed = draw(tmp_path, "--diff", **other)
    assert (changed["changed"], dest.stat().st_mode & 0o777) == (True, 0o600)
    assert Path(changed["backup_file"]).read_bytes() == before
    assert "ag03:7" in changed["diff"][0]["after"]
    assert dest.read_bytes() != before


def test_saved_results_and_paths_of_the_playbook(tmp_path: Path) -> None:
    """Relative paths start at the playbook, which runs from elsewhere; a saved result alone makes a page."""
    (tmp_path / "results.json").write_text(json.dumps(failing()))
    (tmp_path / "whole.json").write_text(json.dumps({"changed": True, "run": failing()}))
    (tmp_path / "pod.yml").write_text(Path(POD).read_text())
    (tmp_path / "machines.csv").write_text(Path(POD).with_name("machines.csv").read_text())
    draw(tmp_path, dest=str(tmp_path / "alone.html"), test_run="results.json")
    draw(tmp_path, dest=str(tmp_path / "whole.html"), test_run="whole.json", pod="pod.yml")
    assert "Connect ag03:7 and ag04" in (tmp_path / "alone.html").read_text()
    assert "pdu2" in (tmp_path / "whole.html").read_text()


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "one of the following is required: pod, info, test_run, pods"),
    ({"test_run": "nowhere.json"}, "nowhere.json': no such file or directory."),
    ({"test_run": "broken.json"}, "broken.json': it is not JSON. Use the stored result of a task."),
    ({"test_run": "bytes.json"}, "bytes.json': it is not JSON. Use the stored result of a task."),
    ({"test_run": "deep.json"}, "deep.json': it is not JSON. Use the stored result of a task."),
    (
        {"test_run": "late.json"},
        "late.json: 'ended' of the run is invalid. Use the value runs of vipu_cluster_test_info, or",
    ),
    (
        {"test_run": "versions.json"},
        "versions.json: 'versions' of failure 1 of result 1 is invalid. Use the value",
    ),
    ({"test_run": {"ok": True}}, "Cannot read the run of cluster tests in test_run: the run has no 'results'"),
    (
        {"info": {"agents": [{"host": "127.0.0.1"}]}},
        "Cannot read the option info: agents 1 has no 'id'. Use the result of vipu_info.",
    ),
    ({"pod": "nowhere.yml"}, "nowhere.yml"),
    ({"pods": []}, "Cannot write the report: the option pods is empty. Add a POD."),
    ({"pods": [{"name": "north"}]}, "one of the following is required: pod, info, test_run found in pods"),
    ({"pods": [{"pod": POD}], "info": info()}, "parameters are mutually exclusive: pods|info"),
    (
        {"pods": [{"pod": POD}, {"pod": POD, "info": {"agents": [{"host": "127.0.0.1"}]}}]},
        "Cannot read the option info of pods 2: agents 1 has no 'id'. Use the result of vipu_info.",
    ),
    (
        {"test_runs": passing(), "info": {}},
        "Cannot use the options of openipu.pod.pod_report: unknown option 'test_runs'. Did you mean 'test_run'?",
    ),
]


def test_errors_are_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "late.json").write_text(json.dumps({**passing(), "ended": 10**15}))
    failure = {"kind": "version", "component": "Virm", "versions": ["ag01", "ag02"]}
    result = {"test": "Version", "ok": False, "failures": [failure]}
    (tmp_path / "versions.json").write_text(json.dumps({"ok": False, "results": [result]}))
    dest = {"dest": str(tmp_path / "rack.html")}
    messages = rejections(
        tmp_path, [{"name": "Draw", "openipu.pod.pod_report": {**dest, **given}} for given, _message in MISTAKES]
    )
    assert [
        (expected, msg) for (_given, expected), msg in zip(MISTAKES, messages, strict=True) if expected not in msg
    ] == []
    assert "Traceback" not in str(messages)
    assert not (tmp_path / "rack.html").exists()


def rack_report(
    folder: Path, port: int, *options: str, pdus: dict[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """The playbook, with a controller at that port."""
    inventory = folder / "hosts.json"
    variables = {"vipu_connection": {"api_host": "127.0.0.1", "api_port": port, "timeout": 2}, "pod_file": POD}
    groups = {"controllers": {"hosts": {"server1": variables}}, "pdus": {"hosts": pdus or {}}}
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    return subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            "-i",
            inventory,
            ROOT / "playbooks/rack_report.yml",
            *options,
        ],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "PWD": str(folder),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_saved_results_are_drawn_without_a_request_to_the_controller(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(failing()))
    with socket.create_server(("127.0.0.1", 0)) as controller:
        done = rack_report(tmp_path, controller.getsockname()[1], "-e", "pod_report_test=results.json")
        controller.setblocking(False)
        with pytest.raises(BlockingIOError):
            controller.accept()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Connect ag03:7 and ag04" in (tmp_path / "rack-report.html").read_text()


def test_an_unreachable_controller_fails_only_without_saved_results(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(failing()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # the port is closed
    given = ("-e", "pod_report_test=results.json", "-e", "pod_report_controller=true")
    drawn, missing = (
        rack_report(tmp_path, port, *given),
        rack_report(tmp_path, port, "-e", "pod_report_dest=other.html"),
    )
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    assert "Connect ag03:7 and ag04" in (tmp_path / "rack-report.html").read_text()
    assert missing.returncode == 2
    assert not (tmp_path / "other.html").exists()


def test_pdus_are_read_and_unreadable_ones_are_reported(tmp_path: Path) -> None:
    """One PDU responds, one does not, one has no credentials, and one has a credential without a value."""
    (tmp_path / "results.json").write_text(json.dumps(failing()))
    with socket.create_server((HOST, 0)) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        port = server.getsockname()[1]  # the port is closed
        silent.bind((HOST, 0))
        with agents_of_pdus() as agents:
            served = agents.pdu(watts={1: 2300.0})
            user = {"username": WRITER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY, "timeout": 5}
            connections = {
                "pdu1": {**user, "port": served.port},
                "pdu2": {**user, "port": silent.getsockname()[1], "timeout": 1, "retries": 0},
                "pdu4": {**user, "auth_key": "{{ vault_pdu_auth_key }}"},
            }
            pdus: dict[str, Any] = {
                name: {"ansible_host": HOST, "pdu_connection": each} for name, each in connections.items()
            }
            pdus["pdu3"] = {"ansible_host": HOST}
            given = ("-e", "pod_report_test=results.json", "-e", "pod_report_controller=true")
            done = rack_report(tmp_path, port, *given, pdus=pdus)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "rack-report.html").read_text()
    assert "PDU pdu2: Cannot reach 127.0.0.1" in page
    assert re.search(">pdu1</th><td[^>]*>normal<", page)
    assert "pdu3" not in page
    assert re.search("PDU pdu4: .*vault_pdu_auth_key.* is undefined", page)
