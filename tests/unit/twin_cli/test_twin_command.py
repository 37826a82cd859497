# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``twin`` command where no twin has to run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from click.testing import CliRunner, Result

from openipu.twin import script, summary
from openipu.twin.cli import main
from openipu.twin.generate import Shape

ROOT = Path(__file__).resolve().parents[3]


def twin(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    done = twin(*arguments)
    assert done.exit_code == 1
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.output.count("\n") <= 2, done.output
    return done.output


@pytest.mark.parametrize(
    "command", ["up", "down", "status", "stop-machine", "start-machine", "fault", "faults", "heal", "generate"]
)
def test_every_command_explains_itself(command):
    done = twin(command, "--help")
    assert done.exit_code == 0
    assert "--help" in done.output


def test_a_real_pod_is_no_twin(tmp_path):
    output = refused("up", "--inventory", ROOT / "inventory/pod64/pod.yml", "--state-dir", tmp_path / "state")
    assert "has the address 10.1.3.101: a twin lives on loopback" in output
    assert not (tmp_path / "state").exists()


def test_a_mistake_in_the_pod_is_told_with_its_line(tmp_path):
    assert twin("generate", tmp_path / "pod").exit_code == 0
    path = tmp_path / "pod" / "pod.yml"
    path.write_text(path.read_text().replace("size: 32", "size: 33"))
    output = refused("up", "--inventory", path, "--state-dir", tmp_path / "state")
    assert "pod.yml, line" in output
    assert "a size is a power of two" in output
    assert "nowhere.yml: there is no such file" in refused(
        "up", "--inventory", "nowhere.yml", "--state-dir", tmp_path / "state"
    )
    assert not (tmp_path / "state").exists()


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    pod = tmp_path.parent / f"{tmp_path.name}-pod"
    assert twin("generate", "--offset", 240, pod).exit_code == 0
    assert "holds files that are not a twin's" in refused("up", "--inventory", pod / "pod.yml", "--state-dir", tmp_path)
    done = twin("down", "--state-dir", tmp_path)
    assert done.exit_code == 0
    assert "nothing to stop" in done.output
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_path_too_long_for_a_socket_is_told(tmp_path):
    pod = tmp_path / "pod"
    assert twin("generate", "--offset", 240, pod).exit_code == 0
    output = refused("up", "--inventory", pod / "pod.yml", "--state-dir", tmp_path / ("x" * 100))
    assert "too long for a socket" in output


@pytest.mark.parametrize(
    "command",
    [["status"], ["stop-machine", "ag01"], ["start-machine"], ["fault", "hang", "ag01"], ["faults"], ["heal"]],
)
def test_without_a_twin_there_is_one_sentence(tmp_path, command):
    assert "No twin runs in" in refused(*command, "--state-dir", tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ipu", "ag01"), "'ipu ag01': write ipu AGENT IPU."),
        (("swap", "ag01:5"), "'swap ag01:5': write swap PORT PORT."),
        (("stop",), "'stop': write stop AGENT|DEVICE…."),
        (("unplug", "ag01:5", "ag01:6"), "'unplug ag01:5 ag01:6': write unplug PORT."),
    ],
)
def test_a_fault_without_its_words(tmp_path, words, sentence):
    done = twin("fault", *words, "--state-dir", tmp_path)
    assert (done.exit_code, done.output.strip()) == (1, f"Error: {sentence}")


def test_a_file_of_faults_is_read_before_anything_is_started(tmp_path):
    file = tmp_path / "faults.txt"
    file.write_text("# all is well but this\nunplug ag01:5  # loose\n\nunplugg ag01:6\n")
    state = tmp_path / "state"
    done = twin("up", "--machines", "2", "--faults", file, "--state-dir", state)
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {file} line 4: There is no fault 'unplugg': choose from unplug, plug,")
    assert not state.exists()
    missing = twin("up", "--faults", tmp_path / "none", "--state-dir", state)
    assert missing.output.strip() == f"Error: Cannot read the faults in {tmp_path / 'none'}: No such file or directory."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- unplug ag01:5\n\n- unplugg ag01:6\n", "line 3: There is no fault 'unplugg': choose from unplug, plug,"),
        ("- unplug ag01: 5\n", "line 1: Write a list with a fault in each item, like: - unplug ag03:7"),
        ("faults:\n  - unplug ag01:5\n", "line 1: Write a list with a fault in each item, like: - unplug ag03:7"),
        ("- hang ag01\n- [swap\n", "line 3: Cannot read this: "),
        ("- hang ag01\n- \x00\n", "line 1: Cannot read this: it is not YAML."),
    ],
)
def test_a_list_of_faults_in_yaml_is_read_before_anything_is_started(tmp_path, text, sentence):
    file = tmp_path / "faults.yml"
    file.write_text(text)
    state = tmp_path / "state"
    output = refused("up", "--machines", "2", "--faults", file, "--state-dir", state)
    assert output.startswith(f"Error: {file} {sentence}")
    assert not state.exists()


def test_a_file_of_faults_is_the_same_in_yaml_and_in_lines(tmp_path):
    lines = ["swap ag01:5 ag01:6", "version ag02 'IPU firmware' 2.4.3", "pfc ag02 eth1 0,2"]
    yaml, text = tmp_path / "faults.yaml", tmp_path / "faults"
    yaml.write_text("---\n# on purpose\n" + "".join(f"- {line}  # why\n" for line in lines))
    text.write_text("# on purpose\n\n" + "\n".join(lines))
    assert [entry.line for entry in script.read(yaml)] == [entry.line for entry in script.read(text)] == lines
    assert [entry.place for entry in script.read(yaml)] == [f"{yaml} line {number}" for number in (3, 4, 5)]
    yaml.write_text("")
    assert script.read(yaml) == []


@pytest.mark.parametrize("option", ["--machines", "--ilds", "--clusters", "--offset"])
def test_an_inventory_and_a_size_are_one_too_many(tmp_path, option):
    done = twin("up", "--inventory", "inventory/twin/pod.yml", option, "2", "--state-dir", tmp_path)
    assert done.exit_code == 2
    assert f"leave out {option}." in done.output


def test_the_largest_pod_that_can_be_made_up_loads(tmp_path):
    pod = load(str(Shape(racks=16, machines=32, ilds=16).write(tmp_path)))
    (cluster,) = pod.clusters
    assert (len(cluster.machines), cluster.num_ilds) == (512, 16)
    assert pod.allocations[0].size == 512


def test_a_pod_is_not_written_over(tmp_path):
    assert twin("generate", "--racks", 2, "--machines", 4, tmp_path).exit_code == 0
    assert len((tmp_path / "machines.csv").read_text().splitlines()) == 9
    assert "holds a POD already" in refused("generate", tmp_path)


SUMMARY = summary.Summary(
    controller="127.3.1.101:8090",
    version="1.0",
    agents=(
        summary.Agent("ag01", "127.2.1.1:8080", "Up", ""),
        summary.Agent("ag02", "127.2.1.2:8080", "Down", "it does not answer"),
    ),
    clusters=(summary.Cluster("cl0", 2, 1, "torus"),),
    allocations=(summary.Allocation("a", "cl0", 2, 4, (1,)),),
    partitions=(
        summary.Partition("p", "a", 4, 1, "DNC", True, "ACTIVE", "IDLE", ()),
        summary.Partition("q", "a", 4, 1, "", False, "ERROR", "FAILED", ("ag02 is down.",)),
    ),
)


def test_the_summary_says_what_a_reader_wants_to_know():
    text = SUMMARY.text()
    assert "1 of 2 up" in text
    assert "ag02 (127.2.1.2:8080) is Down: it does not answer" in text
    assert "ERROR (FAILED)" in text
    assert "ACTIVE (" not in text
    assert text.endswith("q: ag02 is down.")


def test_the_summary_as_data():
    data = json.loads(json.dumps(SUMMARY.as_json()))
    assert data["partitions"][1]["errors"] == ["ag02 is down."]
    assert data["allocations"][0]["free_ipus"] == 4


def test_an_empty_controller_has_words_too():
    empty = summary.Summary("127.3.1.101:8090", "1.0", (), (), (), ())
    assert "No partitions." in empty.text()
