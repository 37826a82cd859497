# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of variables for groups and hosts that are not in the inventory, as ``openipu-pod validate`` reports them."""

from __future__ import annotations

import pytest

from openipu.shared.pod import mistakes
from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.pod_files.test_validate import pod, program  # noqa: F401  fixture
from tests.unit.pod_files.test_variables import write

RACK = ", switches: [{name: tor1, kind: data}, {name: mgmt1, kind: management}]"
NO_OWNER = " of this pod.yml: "


def validate() -> list[str]:
    done = program("validate", ".")
    assert done.exit_code == 0, done.output
    *warnings, summary = done.output.splitlines()
    assert bool(warnings) == ("warning" in summary)
    return warnings


@pytest.mark.parametrize(
    ("file", "place", "message"),
    [
        ("group_vars/swiches.yml", "", "'swiches' is no group of this pod.yml: did you mean 'switches'?"),
        ("group_vars/Controllers.yaml", "", "'Controllers' is no group of this pod.yml: did you mean 'controllers'?"),
        ("group_vars/machine", "", "'machine' is no group of this pod.yml: did you mean 'machines'?"),
        (
            "group_vars/rack1s/main.yml",
            "group_vars/rack1s",
            "'rack1s' is no group of this pod.yml: did you mean 'rack1'?",
        ),
        ("group_vars/pod-test.json", "", "'pod-test' is no group of this pod.yml: did you mean 'pod_test'?"),
        ("host_vars/tor-1.yml", "", "'tor-1' is no host of this pod.yml: did you mean 'tor1'?"),
        (
            "host_vars/x.yml",
            "",
            "'x' is no host of this pod.yml: known are localhost, m1.1, m1.2, m1.3, m1.4, mgmt1, tor1",
        ),
        ("group_vars/tor1.yml", "", "'tor1' is a host: move it to host_vars"),
        ("host_vars/switches.yml", "", "'switches' is a group: move it to group_vars"),
    ],
)
def test_an_unknown_owner_is_a_warning(pod: PodFiles, file: str, place: str, message: str) -> None:  # noqa: F811
    pod.write(rack_tail=RACK)
    write(pod.folder, file, "{}")
    assert validate() == [f"{place or file}: warning: {message}"]


def test_several_files_of_one_owner_are_one_warning(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    for name in ("a.yml", "b.yml"):
        write(pod.folder, f"group_vars/swiches/{name}", "a: 1\n")
    write(pod.folder, "group_vars/swiches/c.yml", "$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    assert len(validate()) == 1


def test_an_encrypted_file_of_an_unknown_host_is_a_warning(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "host_vars/m1.9.yml", "$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    assert validate() == ["host_vars/m1.9.yml: warning: 'm1.9' is no host of this pod.yml: did you mean 'm1.4'?"]


def test_many_unknown_hosts_are_compared_up_to_a_limit(pod: PodFiles, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(mistakes, "_MAX_COMPARED", 10)  # of 5 hosts
    pod.write()
    for number in range(1, 4):
        write(pod.folder, f"host_vars/m1-{number}.yml", "a: 1\n")
    assert [each.partition("pod.yml: ")[2] for each in validate()] == [
        *("did you mean 'm1.1'?", "did you mean 'm1.2'?", "use one of the 5 known names")
    ]


@pytest.mark.parametrize(
    "file",
    [
        *("group_vars/all.yml", "group_vars/ungrouped.yml", "group_vars/all/main.yml", "group_vars/rack1.yml"),
        *("group_vars/pod_test.yml", "group_vars/deploy_common.yml", "group_vars/unmanaged_pdus.yml"),
        *("group_vars/lower_half.yml", "host_vars/m1.1.yml", "host_vars/m1.1/main.yml", "host_vars/localhost.yml"),
        *("group_vars/upper_half.yml", "group_vars/_st.yml"),
        *("group_vars/.gitkeep", "group_vars/notes.txt"),
    ],
)
def test_a_known_owner_is_no_warning(pod: PodFiles, file: str) -> None:  # noqa: F811
    pod.write(tail="groups: {lower_half: true, upper-half: true, 1st: true}\n")
    write(pod.folder, file, "{}")
    assert validate() == []


def test_the_group_of_a_rack_has_no_dash(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    for path in (pod.pod_yml, pod.machines_csv):
        path.write_text(path.read_text().replace("rack1", "rack-1"))
    for name in ("rack_1", "rack-1"):
        write(pod.folder, f"group_vars/{name}.yml", "a: 1\n")
    assert validate() == [
        "group_vars/rack-1.yml: warning: 'rack-1' is no group of this pod.yml: did you mean 'rack_1'?"
    ]


@pytest.mark.parametrize("tail", ["shared_inventory: true\n", "keyed_groups: [{key: pod_kind}]\n"])
def test_groups_that_are_unknown_here_are_no_warning(pod: PodFiles, tail: str) -> None:  # noqa: F811
    pod.write(tail=tail)
    write(pod.folder, "group_vars/swiches.yml", "a: 1\n")
    assert validate() == []


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("hosts", "[swiches]\ntor9\n", 0),
        ("hosts.ini", "[swiches]\ntor9\n", 0),
        ("inventory", "[swiches]\ntor9\n", 0),
        ("south-hosts", "[swiches]\ntor9\n", 0),
        ("more.yml", "swiches: {hosts: {tor9: }}\n", 0),
        ("more.yaml", "swiches: {hosts: {tor9: }}\n", 0),
        ("more.json", '{"swiches": {"hosts": {"tor9": {}}}}', 0),
        ("more.toml", "[swiches.hosts]\ntor9 = {}\n", 0),
        ("more.yml", "# Racks\n---\n\nplugin: ansible.builtin.constructed\nkeyed_groups:\n- key: place\n", 0),
        ("south.pod.yml", "plugin: openipu.pod.pod\n", 0),
        ("site.yml", "---\n# All phases\n- import_playbook: openipu.pod.site\n", 1),
        ("reboot.yml", "  # Machines\n\n---\n# All\n- hosts: machines\n", 1),
        ("requirements.yml", "collections: [openipu.pod]\n", 1),
        ("requirements.yaml", "collections: [openipu.pod]\n", 1),
        ("clouds.yaml", "clouds: {}\n", 1),
        ("clouds.yml", "clouds: {}\n", 1),
        ("Makefile", "site:\n", 1),
        ("LICENSE", "Apache\n", 1),
        ("Dockerfile", "FROM scratch\n", 1),
        ("vault.yml", "vault_pdu_password: x\n", 1),
        ("ansible.cfg", "[inventory]\n", 1),
        ("pod.schema.json", "{}", 1),
        ("README.md", "# POD\n", 1),
        (".lock", "", 1),
    ],
)
def test_another_inventory_may_have_the_group(pod: PodFiles, name: str, text: str, count: int) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/swiches.yml", "a: 1\n")
    write(pod.folder, name, text)
    assert len([each for each in program("validate", "pod.yml").output.splitlines() if NO_OWNER in each]) == count


def test_an_executable_may_be_an_inventory(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/swiches.yml", "a: 1\n")
    write(pod.folder, "hosts.sh", "#!/bin/sh\n")
    assert len(validate()) == 1
    (pod.folder / "hosts.sh").chmod(0o755)
    assert validate() == []


@pytest.mark.parametrize("name", ["twin", "pod64", "bare-hosts"])
def test_the_examples_have_no_unknown_owner(name: str) -> None:
    assert NO_OWNER not in program("validate", ROOT / "inventory" / name).output
