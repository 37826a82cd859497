# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of variables for groups and hosts that are not in the inventory, as ``openipu-pod validate`` reports them."""

from __future__ import annotations

import pytest

from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.pod_files.test_validate import pod, program  # noqa: F401  fixture
from tests.unit.pod_files.test_variables import write

RACK = ", switches: [{name: tor1, kind: data}, {name: mgmt1, kind: management}]"
IGNORED = "Ansible ignores these variables"


def validate() -> list[str]:
    done = program("validate", ".")
    assert done.exit_code == 0, done.output
    *warnings, summary = done.output.splitlines()
    assert len(warnings) == ("warning" in summary)
    return warnings


@pytest.mark.parametrize(
    ("file", "place", "message"),
    [
        ("group_vars/swiches.yml", "", "unknown group 'swiches': did you mean 'switches'?"),
        ("group_vars/Controllers.yaml", "", "unknown group 'Controllers': did you mean 'controllers'?"),
        ("group_vars/machine", "", "unknown group 'machine': did you mean 'machines'?"),
        ("group_vars/rack1s/main.yml", "group_vars/rack1s", "unknown group 'rack1s': did you mean 'rack1'?"),
        ("group_vars/pod-test.json", "", "unknown group 'pod-test': did you mean 'pod_test'?"),
        ("host_vars/tor-1.yml", "", "unknown host 'tor-1': did you mean 'tor1'?"),
        ("host_vars/x.yml", "", "unknown host 'x': known are localhost, m1.1, m1.2, m1.3, m1.4, mgmt1, tor1"),
        ("group_vars/tor1.yml", "", "'tor1' is a host: move it to host_vars"),
        ("host_vars/switches.yml", "", "'switches' is a group: move it to group_vars"),
    ],
)
def test_an_unknown_owner_is_a_warning(pod: PodFiles, file: str, place: str, message: str) -> None:  # noqa: F811
    pod.write(rack_tail=RACK)
    write(pod.folder, file, "{}")
    assert validate() == [f"{place or file}: warning: {IGNORED}: {message}"]


def test_several_files_of_one_owner_are_one_warning(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    for name in ("a.yml", "b.yml"):
        write(pod.folder, f"group_vars/swiches/{name}", "a: 1\n")
    write(pod.folder, "group_vars/swiches/c.yml", "$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    assert len(validate()) == 1


@pytest.mark.parametrize(
    "file",
    [
        *("group_vars/all.yml", "group_vars/ungrouped.yml", "group_vars/all/main.yml", "group_vars/rack1.yml"),
        *("group_vars/pod_test.yml", "group_vars/deploy_common.yml", "group_vars/unmanaged_pdus.yml"),
        *("group_vars/lower_half.yml", "host_vars/m1.1.yml", "host_vars/m1.1/main.yml", "host_vars/localhost.yml"),
        *("group_vars/.gitkeep", "group_vars/notes.txt"),
    ],
)
def test_a_known_owner_is_no_warning(pod: PodFiles, file: str) -> None:  # noqa: F811
    pod.write(tail="groups: {lower_half: true}\n")
    write(pod.folder, file, "{}")
    assert validate() == []


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
        ("more.yml", "swiches: {hosts: {tor9: }}\n", 0),
        ("south.pod.yml", "plugin: openipu.pod.pod\n", 0),
        ("site.yml", "---\n# All phases\n- import_playbook: openipu.pod.site\n", 1),
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
    assert len([each for each in program("validate", "pod.yml").output.splitlines() if IGNORED in each]) == count


def test_an_executable_may_be_an_inventory(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/swiches.yml", "a: 1\n")
    write(pod.folder, "hosts.sh", "#!/bin/sh\n")
    assert len(validate()) == 1
    (pod.folder / "hosts.sh").chmod(0o755)
    assert validate() == []


@pytest.mark.parametrize("name", ["twin", "pod64", "bare-hosts"])
def test_the_examples_have_no_unknown_owner(name: str) -> None:
    assert IGNORED not in program("validate", ROOT / "inventory" / name).output
