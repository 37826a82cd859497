# SPDX-License-Identifier: GPL-3.0-or-later
"""State folder and end of a rehearsal: data of other twins is kept, and SIGTERM leaves no processes."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from openipu.pod_files.rehearsal import command, fault_names, inventory, playbook
from openipu.pod_files.rehearsal.playbook import RehearsalError
from openipu.pod_files.rehearsal.progress import Progress
from openipu.pod_files.rehearsal.rehearse import Options, _LockedWriter, rehearse
from openipu.pod_files.rehearsal.report import Report
from openipu.pod_files.rehearsal.translation import Translator
from openipu.pod_files.variables import read as read_variables
from openipu.process.failures import ProgramError
from openipu.shared.pod.load import load
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.launcher import Identity, Twin
from openipu.twin.rack.fault_lines import FaultError
from tests import ROOT, waiting

RACK = ROOT / "inventory/pod64"


def stopped_twin(folder: Path, source: Path) -> Twin:
    """Return a twin as ``twin down --keep-data`` leaves it."""
    twin = Twin(folder)
    twin.data.mkdir(parents=True)
    twin.database.write_text("records")
    (folder / "twin.json").write_text(json.dumps(asdict(Identity(str(source), "127.1.3.101", 8090))))
    return twin


def stopped_rehearsal(folder: Path, source: Path) -> Twin:
    """Return the stopped twin of a rehearsal of a POD."""
    twin = stopped_twin(folder, Twin(folder).pod / "pod.yml")
    translated = inventory.TranslatedPod(
        load(str(source)), read_variables(source.parent), Translator(load(str(source)), 16)
    )
    translated.write(twin.pod, str(folder))
    return twin


def test_a_stopped_twin_is_kept(tmp_path: Path) -> None:
    twin = stopped_twin(tmp_path / "twin", ROOT / "inventory/twin/pod.yml")
    with pytest.raises(RehearsalError, match=r"it holds the twin of .*inventory/twin/pod\.yml.*--state-dir"):
        rehearse(load(str(RACK / "pod.yml")), Options(twin.folder), Progress(print))
    assert twin.database.read_text() == "records"
    assert twin.identity() is not None


def test_the_rehearsal_of_another_pod_is_kept(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(RACK, other)
    twin = stopped_rehearsal(tmp_path / "twin", other / "pod.yml")
    with pytest.raises(RehearsalError, match=f"it holds the twin of {other}/pod.yml"):
        rehearse(load(str(RACK / "pod.yml")), Options(twin.folder), Progress(print))
    assert twin.database.read_text() == "records"
    assert inventory.read_origin(twin.pod) == {"file": f"{other}/pod.yml", "name": "pod64"}


def test_the_data_is_kept_when_the_twin_cannot_start(tmp_path: Path) -> None:
    twin = stopped_rehearsal(tmp_path / ("long" * 40), RACK / "pod.yml")  # too long for its socket
    with pytest.raises(TwinError, match="its path is too long"):
        rehearse(load(str(RACK / "pod.yml")), Options(twin.folder), Progress(print))
    assert twin.database.read_text() == "records"


def test_a_twin_that_another_command_created_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "twin"

    def progress(text: str) -> None:
        if text.startswith("Translating") and not folder.exists():
            stopped_twin(folder, ROOT / "inventory/twin/pod.yml")

    with pytest.raises(RehearsalError, match="it holds the twin of"):
        rehearse(load(str(RACK / "pod.yml")), Options(folder), Progress(progress))
    assert Twin(folder).database.read_text() == "records"


def test_connections_of_the_search_for_undefined_variables_are_kept(tmp_path: Path, monkeypatch) -> None:
    twin, pod = Twin(tmp_path / "twin"), load(str(RACK / "pod.yml"))
    log = twin.pod / "connections.log"

    def undefined(path: Path, _environment: object) -> playbook.Undefined:
        (path.parent / "connections.log").write_text("socket.connect 10.9.8.7 ansible\n")
        return playbook.Undefined(["eos_connection"])

    monkeypatch.setattr(playbook, "undefined", undefined)
    translated = inventory.TranslatedPod(pod, read_variables(RACK), Translator(pod, 16))
    writer = _LockedWriter(twin, False, translated, {}, Progress(print))
    writer.write(twin.pod, str(twin.folder))
    assert log.read_text() == "socket.connect 10.9.8.7 ansible\n"
    assert writer.translated.variables.undefined["eos_connection"].startswith("group_vars/")
    variables = json.loads((twin.pod / inventory.VARIABLES).read_text())
    assert variables["vault_switch_password"] == "rehearsal"


EOS, PDU, ENCRYPTED = (
    "eos_connection: {password: '{{ my_pw }}'}\n",
    "pdu_connection: {}\n",
    "$ANSIBLE_VAULT;1.1;AES256\n61\n",
)


@pytest.mark.parametrize(
    ("files", "options", "skipped"),
    [
        (
            {"host_vars/tor1.yml": EOS, "host_vars/mgmt9.yml": EOS, "group_vars/pdu.yml": EOS + PDU},
            "",
            [
                "without eos_connection, the real run skips mgmt1",
                "without pdu_connection, the real run skips pdu1, pdu2",
            ],
        ),
        (
            {"group_vars/data_switches/login.yml": EOS, "host_vars/pdu2/vault": ENCRYPTED, "group_vars/pdu": ENCRYPTED},
            "",
            ["without eos_connection, the real run skips mgmt1", "without pdu_connection, the real run skips pdu1"],
        ),
        (
            {"group_vars/pod64_rack1.yml": EOS, "host_vars/pod64-pdu1.json": '{"nested": {"pdu_connection": {}}}\n'},
            'shared_inventory: true\ncompose: {pdu_connection: "dict(pdu2=dict())[pod_device]"}\n',
            ["without pdu_connection, the real run skips pdu1"],
        ),
        ({"group_vars/own.yml": EOS + PDU}, "groups: {own: \"pod_kind in ('switch', 'pdu')\"}\n", []),
        ({"group_vars/all/vault.yml": ENCRYPTED}, "", []),
    ],
)
def test_devices_to_which_no_file_with_credentials_applies_are_skipped(
    tmp_path: Path, files: dict[str, str], options: str, skipped: list[str]
) -> None:
    shutil.copytree(RACK, tmp_path / "rack")
    shutil.rmtree(tmp_path / "rack/group_vars")
    path = tmp_path / "rack/pod.yml"
    path.write_text(path.read_text() + options)
    for name, text in files.items():
        file = path.parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    twin, pod = Twin(tmp_path / "twin"), load(str(path))
    translated = inventory.TranslatedPod(pod, read_variables(path.parent), Translator(pod, 16))
    environment = playbook.guarded_environment(tmp_path / "connections.log")
    writer = _LockedWriter(twin, False, translated, environment, Progress(lambda _text: None))
    writer.write(twin.pod, str(twin.folder))
    runs = [playbook.Run(check, 1.0, True, tmp_path / "log", []) for check in (True, False)]
    report = Report(pod, translated.translator, *runs, writer.translated.variables, (), (), None, 2.0)
    assert [line for line in report.not_rehearsed() if "credentials" in line] == [
        f"credentials: {each}" for each in skipped
    ]


PROGRAM = """
import os, sys
from pathlib import Path
from openipu.pod_files.rehearsal import playbook
from openipu.process.signals import sigterm_exits
playbook.PLAYBOOK = sys.argv[1]
folder = Path(sys.argv[1]).parent
with sigterm_exits():
    try:
        playbook.run(folder / "hosts", folder / "variables.json", os.environ, False, print)
    finally:
        (folder / "cleaned").touch()
"""
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Wait
      ansible.builtin.command: sleep 300
"""


def sleeps(process: psutil.Process) -> bool:
    """Return whether a process is that of the task."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.cmdline()[1:] == ["300"])
    return False


def test_sigterm_ends_the_playbook_and_cleans_up(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(PLAYBOOK)
    (tmp_path / "hosts").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    (tmp_path / "variables.json").write_text(json.dumps({"ansible_python_interpreter": sys.executable}))
    process = psutil.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "site.yml")])
    children: list[psutil.Process] = []
    try:
        waiting.until(lambda: any(map(sleeps, process.children(recursive=True))), 60, (tmp_path / "site.log").read_text)
        children = process.children(recursive=True)
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        _ended, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
        assert (tmp_path / "cleaned").exists()
    finally:
        for each in [process, *children]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def test_results_have_the_names_of_devices(tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(RACK, tmp_path / "rack")
    path = tmp_path / "rack/pod.yml"
    path.write_text(path.read_text() + "shared_inventory: true\n")
    play = tmp_path / "play.yml"
    task = {"name": "Print", "ansible.builtin.debug": {"msg": "{{ inventory_hostname }}"}, "changed_when": True}
    play.write_text(json.dumps([{"hosts": "switches:localhost", "gather_facts": False, "tasks": [task]}]))
    (tmp_path / "variables.json").write_text("{}")
    monkeypatch.setattr(playbook, "PLAYBOOK", str(play))
    environment = playbook.guarded_environment(tmp_path / "connections.log")
    found = playbook.run(path, tmp_path / "variables.json", environment, False, lambda _phase: None)
    assert found.succeeded, found.log.read_text()
    names = {each["host"]: each["msg"] for phase in found.phases for each in phase.results}
    assert names == {"localhost": "localhost", "mgmt1": "pod64-mgmt1", "tor1": "pod64-tor1"}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("stop ipum7", "Cannot apply fault 'stop ipum7': the POD has no 'ipum7'. Did you mean 'ipum07'?"),
        ("swap ipum01:5 nothing:3", "the POD has no 'nothing'. Name a machine, switch or PDU of pod.yml."),
        ("heal pdu1 nothing", "the POD has no 'nothing'"),
        ("unplg ipum01:5", "Cannot apply fault 'unplg': it is unknown. Did you mean 'unplug'?"),
        (
            "ipum07:5",
            "Cannot apply fault 'ipum07:5': it is unknown. Write a verb before the port, such as: unplug ipum07:5",
        ),
        (
            "unplug ipum07:99",
            "Cannot find port 'ipum07:99': the IPU-Link ports of a machine are 1 to 8. Use one of these.",
        ),
        ("swap ipum01:gw1 ipum02:gw3", "Cannot find port 'ipum02:gw3': the GW-Link ports of a machine are 1 to 2."),
        ("unplug ipum07", "Cannot read port 'ipum07': its format is unknown. Write AGENT:5 (IPU-Link)"),
        (
            "break ag01:internal16",
            "Cannot find link 'ag01:internal16': the machine does not have it. Choose from internal0",
        ),
        ("move tor1:Ethernet9/1 tor1:Et40/1", "Cannot find port 'Et40/1': switch 'tor1' does not have it."),
        ("unplug pdu1:3", "Cannot apply fault 'unplug pdu1:3': 'pdu1' has no such ports. Name a machine or switch."),
        ("unplug tor1", "Cannot read port 'tor1': the port is missing. Write SWITCH:PORT."),
        ("unplug ipum01:internal3", "Cannot read port 'ipum01:internal3': its format is unknown. Write AGENT:5"),
        ("move ipum01:1 ipum02:internal0", "Cannot read port 'ipum02:internal0': its format is unknown."),
        (
            "move tor1:Ethernet9/1 ipum01:5",
            "'move tor1:Ethernet9/1 ipum01:5': a port is in a machine, the other in a switch. Change one.",
        ),
        ("swap ipum01:5 tor1:Ethernet9/1", "a port is in a machine, the other in a switch. Change one."),
        ("break tor1:Ethernet9/1", "'break tor1:Ethernet9/1': the port is in a switch. Name a port of a machine."),
    ],
)
def test_faults_are_checked_before_the_start(tmp_path: Path, fault: str, message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)):
        command.run(RACK / "pod.yml", tmp_path / "twin", [fault], keep=False, output="text")
    assert not (tmp_path / "twin").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [("AP8886, managed: false", "it is not managed"), ("other", "it does not support the model other")],
)
def test_faults_of_devices_that_the_twin_does_not_run_are_rejected(tmp_path: Path, change: str, reason: str) -> None:
    shutil.copytree(RACK, tmp_path / "rack")
    path = tmp_path / "rack/pod.yml"
    path.write_text(path.read_text().replace("model: AP8886", f"model: {change}", 1))
    with pytest.raises(FaultError) as caught:
        fault_names.parsed(["stop pdu1"], load(str(path)))
    assert (
        str(caught.value)
        == f"Cannot apply fault 'stop pdu1': the twin does not run 'pdu1', because {reason}. Choose another one."
    )


def test_names_of_all_kinds_of_faults_are_known() -> None:
    lines = [
        "unplug ipum07:5",
        "swap tor1:Ethernet9/1 tor1:Ethernet10/1",
        "break ag01:internal1",
        "version ipum01 Virm 1.5.1",
        "versions ipum01 Virm=1.5.1 BMC=2",
        "drop tor1 before",
        "slow pdu1 3",
        "stop ipum01 mgmt1",
        "heal",
    ]
    assert fault_names.parsed(lines, load(str(RACK / "pod.yml"))) == lines


@pytest.mark.parametrize("keep", [True, False])
def test_a_message_names_the_log_only_if_it_is_kept(tmp_path: Path, monkeypatch, keep: bool) -> None:
    log = tmp_path / "check.log"
    log.write_text("[ERROR]: no play\n")
    monkeypatch.setattr(playbook, "run", lambda *_arguments: playbook.Run(True, 0.0, False, log, []))
    twin = Twin(tmp_path / "twin")
    try:
        with pytest.raises(RehearsalError) as error:
            rehearse(load(str(RACK / "pod.yml")), Options(twin.folder, keep=keep), Progress(print))
    finally:
        twin.down(False, lambda _text: None)
    end = f"Log: {log}" if keep else "To keep the whole log, repeat with --keep."
    assert str(error.value) == f"Cannot run openipu.pod.site: [ERROR]: no play {end}"
