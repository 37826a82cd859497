# SPDX-License-Identifier: GPL-3.0-or-later
"""Report of a rehearsal: results of runs, with the addresses of the user."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.pod_files.rehearsal import command
from openipu.pod_files.rehearsal.playbook import Phase, Run
from openipu.pod_files.rehearsal.report import Report
from openipu.pod_files.rehearsal.translation import Translator
from openipu.pod_files.variables import Variables
from openipu.pod_files.variables import read as read_variables
from openipu.shared.pod.load import load
from tests import ROOT

RACK = ROOT / "inventory/pod64"


def result(host: str, kind: str = "ok", **more: Any) -> dict[str, Any]:
    found = {"kind": kind, "play": "p", "task": "t", "action": "a", "host": host, "msg": None, "diff": []}
    found |= {"warnings": [], "findings": []}
    return {**found, "changed": False, "ignored": False, **more}


@pytest.fixture
def report():
    pod = load(str(RACK / "pod.yml"))
    translator = Translator(pod, 16)

    def create(
        *results: dict[str, Any],
        connections: tuple[str, ...] = (),
        drawing: str | None = None,
        defects: tuple[str, ...] = (),
        variables: Variables | None = None,
    ) -> Report:
        succeeded = not any(each["kind"] == "failed" for each in results)
        runs = [
            Run(check, 1.0, succeeded, Path("log"), [Phase("p", 0.0, 1.0, list(results))]) for check in (True, False)
        ]
        found = variables or read_variables(RACK)
        return Report(pod, translator, *runs, found, defects, connections, drawing, 2.0)

    return create


def test_changes_are_in_the_order_of_tasks_racks_and_units(report):
    names = ["pdu2", "tor1", "pdu1"]
    machines = [machine.name for machine in load(str(RACK / "pod.yml")).machines]
    finished = [result(name, changed=True, task=task) for task in ("b", "a") for name in (*reversed(machines), *names)]
    found = [(change.task, change.host) for change in report(*finished).changes()]
    devices = ["pdu1", "pdu2", "tor1", *machines]
    assert found == [(task, name) for task in ("b", "a") for name in devices]


def test_a_cluster_test_has_a_note_that_it_configures_nothing(report):
    test = result("localhost", changed=True, task="Test clusters", action="openipu.pod.vipu_cluster_test")
    assert "  localhost: Test clusters (runs on the machines, and configures nothing)\n" in report(test).text()
    assert report(test).as_json()["changes"][0]["note"] == "runs on the machines, and configures nothing"


def test_values_have_paths_and_addresses_of_the_user(report):
    after = {"trap_receivers": {"127.16.3.101": {"address": "127.16.3.101"}}, "name": "pdu1"}
    [change] = report(result("pdu1", changed=True, diff=[{"before": {"name": "x"}, "after": after}])).changes()
    assert (change.host, change.address) == ("pdu1", "10.1.3.131")
    assert change.lines == ("-name: x", "+name: pdu1", "+trap_receivers.10.1.3.101.address: 10.1.3.101")


def test_a_prepared_difference_has_changed_lines_only(report):
    prepared = "--- a\n+++ b\n@@ -1 +1 @@\n !\n-!\n+logging host 127.16.3.101\n context\n"
    [change] = report(result("tor1", changed=True, diff=[{"prepared": prepared}])).changes()
    assert change.lines == ("+logging host 10.1.3.101",)


def test_changed_lines_follow_the_line_of_their_section(report):
    prepared = """\
--- system:/running-config
+++ session:/openipu-session-config
@@ -10,9 +10,11 @@
    mtu 9214
+   no shutdown
 !
 interface Ethernet1
-   description old
+   description new
    mtu 9214
+   spanning-tree portfast
 !
 interface Ethernet2
 !
+interface Ethernet3
+   description m3
+   switchport access vlan 13
 !
 interface Ethernet4
    qos
+      priority 7
@@ -80,2 +82,3 @@
    mtu 9214
+   description m9
+hostname tor1
"""
    [change] = report(result("tor1", changed=True, diff=[{"prepared": prepared}])).changes()
    assert change.lines == (
        "+   no shutdown",
        " interface Ethernet1",
        "-   description old",
        "+   description new",
        "+   spanning-tree portfast",
        "+interface Ethernet3",
        "+   description m3",
        "+   switchport access vlan 13",
        " interface Ethernet4",
        "    qos",
        "+      priority 7",
        "+   description m9",
        "+hostname tor1",
    )


def test_a_rescued_failure_is_none(report):
    rescued = result("server1", "failed", msg="first")
    found = report(rescued, result("server1", "failed", msg="agent 127.16.2.1 failed")).failures()
    assert [(each["message"], each["runs"]) for each in found] == [("agent 10.1.2.1 failed", ["check", "site"])]
    assert report(rescued, result("server1")).failures() == []
    assert report(result("server1", "failed", ignored=True)).failures() == []


def test_failures_and_defects_have_the_names_of_the_user(report):
    failed = result("server1", "failed", msg="Agent ag07 (127.16.2.7:8080) does not respond, ag07-old.ag07.net does.")
    found = report(failed, defects=("IPU-Link cable ag03:5 <--> ag04:1: not plugged in at ag03:5.",))
    message = "Agent ipum07 (10.1.2.7:8080) does not respond, ag07-old.ag07.net does."
    assert [each["message"] for each in found.failures()] == [message]
    cable = "IPU-Link cable ipum03:5 <--> ipum04:1: not plugged in at ipum03:5."
    assert found.as_json()["defects"] == [cable]
    assert cable in found.text()


def test_changes_that_the_real_run_skips_are_marked(report):
    variables = Variables({}, (), {}, lacking={"eos_connection": ["mgmt1"], "pdu_connection": ["pdu1", "pdu3"]})
    changed = (result(name, changed=True, diff=[{"before": {}, "after": {"name": name}}]) for name in ("pdu1", "pdu2"))
    found = report(*changed, result("tor1", changed=True), variables=variables)
    assert {change.host: change.skipped for change in found.changes()} == {"pdu1": True, "pdu2": False, "tor1": False}
    mark = "pdu1 (10.1.3.131): none, because its credentials are missing (twin only: t)"
    assert (mark in found.text(), "+name: pdu1" in found.text(), "+name: pdu2" in found.text()) == (True, False, True)
    assert found.not_rehearsed() == [
        "credentials: without eos_connection, the real run skips mgmt1",
        "credentials: without pdu_connection, the real run skips pdu1, pdu3",
    ]


def test_unmanaged_devices_are_listed(report, tmp_path):
    shutil.copytree(RACK, tmp_path / "pod")
    path = tmp_path / "pod/pod.yml"
    path.write_text(path.read_text().replace("{name: mgmt1, ", "{name: mgmt1, managed: false, "))
    found = replace(report(result("pdu1"), variables=Variables({}, (), {})), pod=load(str(path))).not_rehearsed()
    assert found == ["unmanaged: mgmt1"]


def test_one_connection_outside_loopback_fails_the_rehearsal(report):
    assert report(result("pdu1")).succeeded
    found = report(result("pdu1"), connections=("socket.connect 10.1.3.131 ansible",))
    assert not found.succeeded
    counted = "counted: Python code, without gRPC and other programs, because the network was not isolated"
    count = f"Connections outside loopback: 1 ({counted})."
    assert f"\n{count}\n  socket.connect 10.1.3.131 ansible\nDuration: " in found.text()
    cause = "site.yml succeeds, but the rehearsal FAILS: 1 connection outside loopback.\n"
    assert found.text().partition("): ")[2].startswith(cause)
    assert "\nChanges on the real POD\n" in found.text()


def test_connections_of_other_programs_fail_the_rehearsal(report):
    alone = replace(report(result("pdu1")), other_connections=0)
    assert alone.succeeded
    assert "loopback: 0 (counted: all programs; their network had loopback only).\nDuration: " in alone.text()
    found = replace(alone, connections=("socket.connect 10.1.3.131 ansible",), other_connections=2)
    assert not replace(found, connections=()).succeeded
    assert "FAILS: 2 connections outside loopback.\n" in replace(found, connections=()).text()
    assert "loopback: 3 (counted: all programs; their network had loopback only).\n  socket.connect" in found.text()
    assert "\n  rejected attempts of gRPC and of programs that are not Python: 2\n" in found.text()
    assert found.as_json()["connections_of_other_programs"] == 2


def test_the_text_says_that_nothing_changes(report):
    assert "\nChanges on the real POD\n  none\n" in report(result("pdu1")).text()
    assert "  none\n" not in report(result("pdu1", changed=True)).text()


FINDING = {
    "kind": "link_down",
    "device": "ipum01",
    "connector": "rnic",
    "port": "Ethernet9/1",
    "found": None,
    "reason": "Port Ethernet9/1 has no link: check the cable and the power of ipum01 rnic.",
}


def test_a_cable_that_the_switch_does_not_find_is_a_warning(report):
    found = report(result("mgmt1"), result("tor1", findings=[FINDING]))
    assert found.succeeded
    warning = {"phase": "p", "host": "tor1", "message": FINDING["reason"]}
    cable = {"device": "ipum01", "connector": "rnic", "port": "Ethernet9/1"}
    assert found.as_json()["warnings"] == [{**warning, **cable}]
    assert found.as_json()["phases"][0]["site"]["warnings"] == 1
    text = found.text()
    assert "site.yml succeeds, with 1 warning.\n" in text
    assert f"{'p':56} {'1 warning':>12} {'1 warning':>12}\n" in text
    assert f"\nWarnings\n  p, tor1: {FINDING['reason']}\n" in text


def test_warnings_of_modules_have_the_names_of_the_user(report):
    warned = result("server1", warnings=2 * ["ag07 at 127.16.2.7: tests are skipped."])
    [warning] = report(warned).warnings()
    assert warning == {"phase": "p", "host": "server1", "message": "ipum07 at 10.1.2.7: tests are skipped."}


def test_a_report_without_warnings_has_no_such_section(report):
    found = report(result("pdu1"))
    assert found.as_json()["warnings"] == []
    assert "arning" not in found.text()


def test_the_text_names_secrets(report):
    text = report(result("pdu1")).text()
    assert "site.yml succeeds" in text
    assert "vault_switch_password (used in group_vars/switches.yml:6)" in text


def test_the_text_suggests_the_name_of_a_misspelled_variable(report):
    variables = Variables({Path("group_vars/all.yml"): "ntp_server: x\n"}, (), {"ntp_servr": "a.yml:1", "k": "b:1"})
    text = report(result("pdu1"), variables=variables).text()
    assert "\nUndefined variables, such as secrets (ansible-vault create vault.yml)\n" in text
    assert "\n  ntp_servr (used in a.yml:1): did you mean 'ntp_server'?\n  k (used in b:1)\n" in text


def test_unknown_and_undefined_variables_are_listed(report):
    variables = Variables({Path("group_vars/all.yml"): "a: 1\neos_conection: {}\n"}, (), {"k": "b:1"})
    found = report(result("pdu1"), variables=variables)
    message = "unknown variable 'eos_conection': did you mean 'eos_connection'?"
    assert (
        f"\nUnknown variables, which no playbook of the collection uses\n  group_vars/all.yml:2: {message}\n"
        in found.text()
    )
    plain = found.as_json()
    assert plain["undefined_variables"] == {"k": "b:1"}
    assert plain["unknown_variables"] == [{"file": "group_vars/all.yml", "line": 2, "message": message}]
    assert "Unknown variables" not in report(result("pdu1")).text()


@pytest.mark.parametrize(("output", "begin"), [("text", "Rehearsal"), ("json", "{")])
def test_the_report_is_printed_when_the_picture_cannot_be_written(report, tmp_path, capsys, output, begin):
    drawing = tmp_path / "missing" / "rehearsal-rack-report.html"
    command.show(report(result("pdu1"), drawing="<svg/>"), drawing, output)
    printed = capsys.readouterr()
    assert printed.out.startswith(begin)
    assert printed.err == f"Warning: cannot write the rack report {drawing}: No such file or directory.\n"


def test_the_picture_is_written(report, tmp_path, capsys):
    drawing = tmp_path / "rehearsal-rack-report.html"
    command.show(report(result("pdu1"), drawing="<svg/>"), drawing, "text")
    assert drawing.read_text() == "<svg/>"
    assert f"Rack report: {drawing}" in capsys.readouterr().out
