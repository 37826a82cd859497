# SPDX-License-Identifier: GPL-3.0-or-later
"""``openipu-pod validate``: all mistakes with their places, exit status, JSON."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version

import pytest
from click.testing import CliRunner, Result

from openipu.pod_files.cli.main import main
from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles


def program(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def pod(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PodFiles(tmp_path)


def test_the_version_is_printed():
    assert program("--version").output == f"openipu-pod {version('openipu')}\n"


@pytest.mark.parametrize("name", ["twin", "pod64"])
def test_an_example_is_valid(name):
    done = program("validate", ROOT / "inventory" / name)
    assert done.exit_code == 0
    assert "pod.yml is valid: 1 rack, 16 IPU-Machines, " in done.output


def test_all_mistakes_are_printed_with_their_places(pod):
    pod.write(rack_tail=", pdus: [{nam: p}]")
    rows = pod.machines_csv.read_text().replace("m1.2,rack1,2", "m1.2,rack1,44").splitlines()
    pod.write(rack_tail=", pdus: [{nam: p}]", rows=rows)
    done = program("validate", ".")
    assert done.exit_code == 1
    machines, pdu, summary = done.output.splitlines()
    assert machines.startswith("machines.csv:3: machine 'm1.2': invalid unit 44: use 1 to 32")
    assert pdu.startswith("pod.yml:6:38: PDU: unknown key 'nam': did you mean 'name'?")
    assert pod.pod_yml.read_text().splitlines()[5][37:].startswith("nam:")
    assert summary == "2 mistakes."


def test_mistakes_in_variables_are_printed_beside_those_in_the_pod(pod):
    pod.write(rack_tail=", pdus: [{nam: p}]")
    (pod.folder / "group_vars").mkdir()
    (pod.folder / "group_vars/all.yml").write_text("eos_connection: {hots: tor1}\n")
    done = program("validate", ".")
    assert done.exit_code == 1
    mistake, warning, summary = done.output.splitlines()
    assert mistake.startswith("pod.yml:")
    assert warning.startswith("group_vars/all.yml:1:18: warning: variable 'eos_connection': unknown key 'hots'")
    assert summary == "1 mistake. 1 warning."
    found = json.loads(program("validate", ".", "-o", "json").output)
    assert (found["valid"], len(found["mistakes"]), len(found["warnings"])) == (False, 1, 1)


def test_json_has_the_same_mistakes(pod):
    pod.write(tail="users: [{id: 'a b'}]\n")
    done = program("validate", ".", "-o", "json")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert found["valid"] is False
    [mistake] = found["mistakes"]
    assert (mistake["file"], mistake["line"], mistake["column"]) == ("pod.yml", 9, 10)
    assert mistake["message"].startswith("user: invalid id 'a b'")
    pod.write()
    assert json.loads(program("validate", ".", "-o", "json").output) == {"valid": True, "mistakes": [], "warnings": []}


def test_unknown_models_are_warnings(pod):
    switches = "switches: [{name: tor, kind: data}, {name: mgmt, kind: management, model: DCS-7010T-48}]"
    pdus = "pdus: [{name: p1}, {name: p2, model: other}, {name: p3, model: other, managed: false}]"
    path = pod.write(rack_tail=f", {switches}, {pdus}")
    done = program("validate", ".")
    assert done.exit_code == 0
    switch, pdu, summary = done.output.splitlines()
    column = path.read_text().splitlines()[5].index("model: DCS") + 1
    assert switch == (
        f"pod.yml:6:{column}: warning: switch 'mgmt': unknown model 'DCS-7010T-48': did you mean 'DCS-7010T-48-F'? "
        "Known are DCS-7060CX-32S-F, DCS-7010T-48-F. With another model, its ports are not checked, and rehearsals "
        "omit it."
    )
    assert pdu.endswith(
        "warning: PDU 'p2': unknown model 'other'. Known are AP8886, AP8953, AP8981. With another model, rehearsals "
        "omit it."
    )
    assert summary.endswith("is valid: 1 rack, 4 IPU-Machines, 2 switches, 3 PDUs. 2 warnings.")
    found = json.loads(program("validate", ".", "-o", "json").output)
    assert [each["line"] for each in found["warnings"]] == [6, 6]
    assert found["valid"] is True


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_model_may_be_a_number(pod, output):
    switches = "switches: [{name: 7, kind: data, model: 7060}, {name: mgmt, kind: management}]"
    path = pod.write(rack_tail=f", {switches}, pdus: [{{name: p1, model: 8886}}]")
    done = program("validate", ".", "-o", output)
    assert done.exit_code == 0, done.output
    for text in ("switch '7': unknown model '7060'", "PDU 'p1': unknown model '8886'"):
        assert text in done.output
    if output == "json":
        line = path.read_text().splitlines()[5]
        columns = [line.index(model) + 1 for model in ("model: 7060", "model: 8886")]
        assert [each["column"] for each in json.loads(done.output)["warnings"]] == columns


@pytest.mark.parametrize("managed", ['"no"', "0", "off"])
def test_models_of_unmanaged_devices_are_not_checked(pod, managed):
    pod.write(
        rack_tail=", switches: [{name: mgmt, kind: management}, "
        f"{{name: tor, kind: data, model: x, managed: {managed}}}], "
        f"pdus: [{{name: p1, model: x, managed: {managed}}}]"
    )
    done = program("validate", ".")
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output


BOND = (
    ", servers: [{name: s1}], switches: [{name: tor1, kind: data%s}, {name: tor2, kind: data%s}, "
    "{name: mgmt, kind: management}], cables: [{device: s1, connector: data2, switch: %s, port: Ethernet31/1}]"
)


@pytest.mark.parametrize("managed", [("", ""), ("", ", managed: false")])
def test_a_bond_with_links_to_two_switches_is_a_warning(pod, managed):
    path = pod.write(rack_tail=BOND % (*managed, "tor2"))
    done = program("validate", ".")
    assert done.exit_code == 0, done.output
    warning, summary = done.output.splitlines()
    column = path.read_text().splitlines()[5].index("switch: tor2") + 1
    assert warning == (
        f"pod.yml:6:{column}: warning: server 's1': its bond has links to several switches, data1 to 'tor1' and data2 "
        "to 'tor2'. The playbooks configure no MLAG, so only one link carries traffic. Use ports of one switch, or "
        "configure MLAG yourself and set 'managed: false' for these switches."
    )
    assert summary.endswith(" 1 warning.")


@pytest.mark.parametrize(
    ("managed", "switch"), [(("", ""), "tor1"), ((", managed: false", ", managed: false"), "tor2")]
)
def test_bonds_of_one_switch_or_of_the_site_are_no_warnings(pod, managed, switch):
    pod.write(rack_tail=BOND % (*managed, switch))
    done = program("validate", ".")
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output


@pytest.mark.parametrize("source", ["init", "pod64"])
def test_mac_addresses_of_an_example_are_a_warning(tmp_path, source):
    if source == "init":
        program("init", tmp_path / "rack", "--machines", 6, "--servers", 1)
    else:
        shutil.copytree(ROOT / "inventory/pod64", tmp_path / "rack")
    table = tmp_path / "rack/machines.csv"
    lines = table.read_text().splitlines(keepends=True)
    real = ",".join(f"50:6b:4b:00:00:{number:02x}" for number in range(3))
    cells = lines[4].split(",")  # the third machine
    lines[4] = ",".join([*cells[:3], real, *cells[6:7]]) + ("," * (len(cells) - 7)).rstrip() + "\n"
    table.write_text("".join(lines).replace("\n\n", "\n"))
    done = program("validate", tmp_path / "rack")
    assert done.exit_code == 0, done.output
    number, last = (5, 8) if source == "init" else (15, 18)
    more = "" if source == "init" else ", serial"
    warning, summary = done.output.splitlines()
    assert warning.endswith(
        f"machines.csv:3: warning: {number} machines in lines 3 to 4, 6 to {last} with example values in bmc_mac, "
        f"gw_mac, rnic_mac{more}: replace them with those on the labels. Otherwise, DHCP and the check of the cabling "
        "do not find these machines."
    )
    assert summary.endswith(" 1 warning.")


def test_a_serial_number_of_an_example_is_a_warning(pod):
    rows = [
        "name,unit,bmc_mac,gw_mac,rnic_mac,serial",
        "m1,1,50:6b:4b:00:00:01,50:6b:4b:00:00:02,50:6b:4b:00:00:03,8203921-0101",
    ]
    pod.write(rows=rows, cluster=None)
    done = program("validate", ".")
    warning = "machines.csv:2: warning: 1 machine in line 2 with example values in serial: replace them with those on "
    assert f"{warning}the labels.\n" in done.output


@pytest.mark.parametrize("name", ["twin", "bare-hosts"])
def test_machines_of_the_twin_are_no_examples(name):
    assert "warning" not in program("validate", ROOT / "inventory" / name).output


def test_errors_of_yaml_have_a_column(pod):
    pod.write(tail="users:\n  - id: a\n     role: user\n")
    done = program("validate", pod.pod_yml)
    assert done.exit_code == 1
    assert done.output.startswith("pod.yml:11:10: is not YAML: ")


def test_the_file_of_a_folder_is_found(tmp_path):
    north = PodFiles(tmp_path)
    north.pod_yml = tmp_path / "north.pod.yml"
    north.write()
    assert program("validate", tmp_path).exit_code == 0
    (tmp_path / "south.pod.yml").write_text("")
    done = program("validate", tmp_path)
    assert done.exit_code == 1
    assert "it holds north.pod.yml, south.pod.yml. Name one of these files." in done.output
    (tmp_path / "empty").mkdir()
    assert "it has no pod.yml. Create one with 'openipu-pod init" in program("validate", tmp_path / "empty").output


@pytest.mark.parametrize("command", ["validate", "rehearse"])
@pytest.mark.parametrize("name", ["machines.csv", "rack1.CSV"])
def test_a_table_is_no_pod(pod, command, name):
    pod.write()
    (pod.folder / name).write_text(pod.machines_csv.read_text())
    done = program(command, name)
    assert done.exit_code == 1
    assert done.output == (
        f"Error OPU300: Cannot read a POD from {name}: it is a table. Name its pod.yml, or the folder of both.\n"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("name: no", "pod: 'name' is a truth value in YAML: quote it"),
        ("name:", "pod: 'name' has no value: set one"),
    ],
)
def test_values_that_yaml_changes_are_rejected(pod, value, message):
    path = pod.write()
    path.write_text(path.read_text().replace("name: test", value))
    assert message in program("validate", ".").output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "pod.yml:1:1: pod 'test': 'plugin: openipu.pod.pod' is missing: add it"),
        (
            "plugin: openipu.pod.pods\n",
            "pod.yml:1:1: pod 'test': unknown value of plugin 'openipu.pod.pods': did you mean 'openipu.pod.pod'?",
        ),
    ],
)
def test_files_that_ansible_does_not_read_as_a_pod_are_rejected(pod, line, message):
    path = pod.write(tail="users: [{id: 'a b'}]\n")
    path.write_text(path.read_text().replace("plugin: openipu.pod.pod\n", line))
    done = program("validate", ".")
    assert done.exit_code == 1
    first, second, summary = done.output.splitlines()
    assert first.startswith(message)
    assert "user: invalid id 'a b'" in second
    assert summary == "2 mistakes."


def test_completion_lists_the_commands():
    done = CliRunner().invoke(
        main,
        prog_name="openipu-pod",
        env={"_OPENIPU_POD_COMPLETE": "bash_complete", "COMP_WORDS": "openipu-pod v", "COMP_CWORD": "1"},
    )
    assert done.output.strip() == "plain,validate"
