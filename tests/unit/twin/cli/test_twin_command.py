# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``twin`` command without a running twin."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from openipu.shared.pod.load import load
from openipu.twin.cli import summary
from openipu.twin.cli.main import main
from openipu.twin.launch.generate import PodSize
from openipu.twin.launch.hints import REHEARSAL_VARIABLES, playbook, program
from openipu.twin.rack import fault_script
from openipu.twin.rack.fault_lines import VERBS
from tests import ROOT


def twin(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def failed(*arguments: object) -> str:
    done = twin(*arguments)
    assert done.exit_code == 1
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.output.count("\n") <= 2, done.output
    return done.output


@pytest.mark.parametrize(
    "command", ["up", "down", "status", "stop-machine", "start-machine", "fault", "faults", "heal", "generate"]
)
def test_every_command_has_help(command):
    done = twin(command, "--help")
    assert done.exit_code == 0
    assert "--help" in done.output


def test_a_real_pod_is_rejected(tmp_path):
    output = failed("up", "--inventory", ROOT / "inventory/pod64/pod.yml", "--state-dir", tmp_path / "state")
    assert output.startswith("Error OPU800: Cannot start a twin")
    assert "the address 10.1.3.101 is not on loopback (127.x.y.z), so this is a real POD. Rehearse it" in output
    assert not (tmp_path / "state").exists()


def test_an_error_in_the_pod_is_reported_with_its_line(tmp_path):
    assert twin("generate", tmp_path / "pod").exit_code == 0
    path = tmp_path / "pod" / "pod.yml"
    path.write_text(path.read_text().replace("size: 32", "size: 33"))
    output = failed("up", "--inventory", path, "--state-dir", tmp_path / "state")
    assert output.startswith(f"Error OPU300: {path}, line ")
    assert "the size must be a power of two" in output
    assert "Error OPU300: nowhere.yml: the file does not exist" in failed(
        "up", "--inventory", "nowhere.yml", "--state-dir", tmp_path / "state"
    )
    assert not (tmp_path / "state").exists()


def test_a_pod_without_machines_is_an_invalid_pod(tmp_path):
    assert twin("generate", tmp_path / "pod").exit_code == 0
    path = tmp_path / "pod" / "pod.yml"
    top = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**top, "clusters": [], "allocations": [], "partitions": []}))
    table = path.with_name("machines.csv")
    table.write_text(table.read_text().splitlines()[0] + "\n")
    output = failed("up", "--inventory", path, "--state-dir", tmp_path / "state")
    assert output == f"Error OPU300: {table}: has no machines: add a line for each IPU-Machine\n"


def test_a_folder_with_other_files_is_not_changed(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    pod = tmp_path.parent / f"{tmp_path.name}-pod"
    assert twin("generate", "--offset", 240, pod).exit_code == 0
    assert "it contains files that do not belong to a twin." in failed(
        "up", "--inventory", pod / "pod.yml", "--state-dir", tmp_path
    )
    done = twin("down", "--state-dir", tmp_path)
    assert done.exit_code == 0
    assert "nothing to stop" in done.output
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_path_too_long_for_a_socket_is_rejected(tmp_path):
    pod = tmp_path / "pod"
    assert twin("generate", "--offset", 240, pod).exit_code == 0
    output = failed("up", "--inventory", pod / "pod.yml", "--state-dir", tmp_path / ("x" * 100))
    assert "its path is too long. Set a shorter --state-dir." in output


@pytest.mark.parametrize(
    "command",
    [["status"], ["stop-machine", "ag01"], ["start-machine"], ["fault", "hang", "ag01"], ["faults"], ["heal"]],
)
def test_commands_fail_without_a_twin(tmp_path, command):
    output = failed(*command, "--state-dir", tmp_path)
    start = f"'{program('twin')} up --state-dir {tmp_path}'"
    assert output == f"Error OPU800: Cannot use the twin in {tmp_path}: it does not run. Start it with {start}.\n"


def test_messages_contain_the_path_of_a_program(monkeypatch):
    path = Path(sys.executable).parent / "twin"
    monkeypatch.chdir("/")
    assert program("twin") == str(path.relative_to("/"))
    monkeypatch.chdir(path.parent)
    assert program("twin") == "./twin", "a name without a folder would be searched in PATH"
    monkeypatch.chdir(path.parents[1])
    assert program("twin") == "bin/twin"
    assert program("no-program") == "no-program"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ipu", "ag01"), "Cannot apply 'ipu ag01': its arguments do not fit. Write ipu AGENT IPU."),
        (("swap", "ag01:5"), "Cannot apply 'swap ag01:5': its arguments do not fit. Write swap PORT PORT."),
        (("stop",), "Cannot apply 'stop': its arguments do not fit. Write stop AGENT|DEVICE…."),
        (
            ("unplug", "ag01:5", "ag01:6"),
            "Cannot apply 'unplug ag01:5 ag01:6': its arguments do not fit. Write unplug PORT.",
        ),
        (("unplg", "ag01:5"), "Cannot apply fault 'unplg': it is unknown. Did you mean 'unplug'?"),
        (("UNPLUG", "ag01:5"), "Cannot apply fault 'UNPLUG': it is unknown. Did you mean 'unplug'?"),
        (("burn", "ag01"), f"Cannot apply fault 'burn': it is unknown. Choose from {', '.join(VERBS)}."),
    ],
)
def test_an_invalid_fault_has_a_remedy(tmp_path, words, message):
    done = twin("fault", *words, "--state-dir", tmp_path)
    assert (done.exit_code, done.output.strip()) == (1, f"Error OPU801: {message}")


def test_a_fault_without_verb_lists_the_verbs():
    done = twin("fault")
    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == f"Error: Missing argument 'VERB'. Choose from {', '.join(VERBS)}."


def test_the_verbs_of_faults_are_completed():
    command = main.commands["fault"]
    verb = next(each for each in command.params if each.name == "verb")
    context = click.Context(command)
    assert [each.value for each in verb.shell_complete(context, "ver")] == ["version", "versions"]


def test_a_fault_file_is_validated_before_the_start(tmp_path):
    file = tmp_path / "faults.txt"
    file.write_text("# all is well but this\nunplug ag01:5  # loose\n\nunplugg ag01:6\n")
    state = tmp_path / "state"
    done = twin("up", "--machines", "2", "--faults", file, "--state-dir", state)
    assert done.exit_code == 1
    assert done.output.startswith(
        f"Error OPU801: {file} line 4: Cannot apply fault 'unplugg': it is unknown. Did you mean 'unplug'?"
    )
    assert not state.exists()
    missing = twin("up", "--faults", tmp_path / "none", "--state-dir", state)
    assert (
        missing.output.strip()
        == f"Error OPU801: Cannot read the faults in {tmp_path / 'none'}: No such file or directory."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- unplug ag01:5\n\n- unplugg ag01:6\n",
            "{} line 3: Cannot apply fault 'unplugg': it is unknown. Did you mean 'unplug'?",
        ),
        (
            "- unplug ag01: 5\n",
            "Cannot read the faults in {} line 1: it is not a list of lines. Write one fault per item",
        ),
        (
            "faults:\n  - unplug ag01:5\n",
            "Cannot read the faults in {} line 1: it is not a list of lines. Write one fault per item",
        ),
        ("- hang ag01\n- [swap\n", "Cannot read the faults in {} line 3: invalid YAML: "),
        ("- hang ag01\n- \x00\n", "Cannot read the faults in {} line 1: invalid YAML: it is not YAML."),
    ],
)
def test_a_yaml_fault_file_is_validated_before_the_start(tmp_path, text, message):
    file = tmp_path / "faults.yml"
    file.write_text(text)
    state = tmp_path / "state"
    output = failed("up", "--machines", "2", "--faults", file, "--state-dir", state)
    assert output.startswith(f"Error OPU801: {message.format(file)}")
    assert not state.exists()


def test_yaml_and_text_fault_files_are_equivalent(tmp_path):
    lines = ["swap ag01:5 ag01:6", "version ag02 'IPU firmware' 2.4.3", "pfc ag02 eth1 0,2"]
    yaml, text = tmp_path / "faults.yaml", tmp_path / "faults"
    yaml.write_text("---\n# on purpose\n" + "".join(f"- {line}  # why\n" for line in lines))
    text.write_text("# on purpose\n\n" + "\n".join(lines))
    assert (
        [entry.line for entry in fault_script.read(yaml)] == [entry.line for entry in fault_script.read(text)] == lines
    )
    assert [entry.place for entry in fault_script.read(yaml)] == [f"{yaml} line {number}" for number in (3, 4, 5)]
    yaml.write_text("")
    assert fault_script.read(yaml) == []
    yaml.write_text("[" * 1000 + "]" * 1000)
    with pytest.raises(fault_script.FaultError, match="it is nested too deeply"):
        fault_script.read(yaml)


@pytest.mark.parametrize("option", ["--machines", "--ilds", "--clusters", "--offset"])
def test_an_inventory_excludes_options_of_a_generated_pod(tmp_path, option):
    done = twin("up", "--inventory", "inventory/twin/pod.yml", option, "2", "--state-dir", tmp_path)
    assert done.exit_code == 2
    assert f"--inventory already defines the POD: omit {option}." in done.output


def test_the_largest_generated_pod_loads(tmp_path):
    pod = load(str(PodSize(racks=16, machines=32, ilds=16).write(tmp_path)))
    (cluster,) = pod.clusters
    assert (len(cluster.machines), cluster.num_ilds) == (512, 16)
    assert pod.allocations[0].size == 512


def test_generate_does_not_overwrite_a_pod(tmp_path):
    assert twin("generate", "--racks", 2, "--machines", 4, tmp_path).exit_code == 0
    assert len((tmp_path / "machines.csv").read_text().splitlines()) == 9
    assert "it already holds one. Name another folder." in failed("generate", tmp_path)


SUMMARY = summary.Summary(
    controller="127.3.1.101:8090",
    version="1.0",
    agents=(
        summary.Agent("ag01", "127.2.1.1:8080", "Up", ""),
        summary.Agent("ag02", "127.2.1.2:8080", "Down", "it does not respond"),
    ),
    clusters=(summary.Cluster("cl0", 2, 1, "torus"),),
    allocations=(summary.Allocation("a", "cl0", 2, 4, (1,)),),
    partitions=(
        summary.Partition("p", "a", 4, 1, "DNC", True, "ACTIVE", "IDLE", ()),
        summary.Partition("q", "a", 4, 1, "", False, "ERROR", "FAILED", ("ag02 is down.",)),
    ),
)


def test_the_summary_as_text():
    text = SUMMARY.text()
    assert "1 of 2 up" in text
    assert "ag02 (127.2.1.2:8080) is Down: it does not respond" in text
    assert "ERROR (FAILED)" in text
    assert "ACTIVE (" not in text
    assert text.endswith("q: ag02 is down.")


def test_the_summary_as_data():
    data = json.loads(json.dumps(SUMMARY.as_json()))
    assert data["partitions"][1]["errors"] == ["ag02 is down."]
    assert data["allocations"][0]["free_ipus"] == 4


def test_the_summary_of_an_empty_controller():
    empty = summary.Summary("127.3.1.101:8090", "1.0", (), (), (), ())
    assert "No partitions." in empty.text()


def test_the_playbook_of_a_rehearsal_uses_the_credentials_of_the_twin(tmp_path):
    inventory = tmp_path / "pod/pod.yml"
    inventory.parent.mkdir()
    command = f"{program('ansible-playbook')} playbooks/cabling.yml -i {inventory}"
    assert playbook(tmp_path, str(inventory), "cabling") == command
    (inventory.parent / REHEARSAL_VARIABLES).write_text("{}")
    assert playbook(tmp_path, str(inventory), "cabling") == f"{command} -e @{inventory.parent}/rehearsal.json"
    outside = f"TWIN_STATE_DIR={tmp_path / 'state'} {command}"
    assert playbook(tmp_path / "state", str(inventory), "cabling") == outside
