# SPDX-License-Identifier: GPL-3.0-or-later
"""The last error of a playbook names the mistake in the inventory, also with the default settings of Ansible."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

from tests import ROOT
from tests.unit.collection.pod.inventories import run

PLAYBOOK = ROOT / "playbooks/preflight.yml"


def failure(*inventories: Path) -> str:
    """Return the message of the only failed task of the preflight checks, with the default settings of Ansible."""
    settings = inventories[0].parent / "empty.cfg"
    settings.touch()
    sources = [word for path in inventories for word in ("-i", path)]
    done = run("ansible-playbook", PLAYBOOK, *sources, ANSIBLE_CONFIG=str(settings))
    assert done.returncode == 2, done.stdout + done.stderr
    [message] = re.findall(r'^fatal: .*"msg": "(.*)"}$', done.stdout, re.MULTILINE)
    return message.replace("\\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "inventory/pod64", tmp_path / "rack"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: pod64", "nam: pod64"),
        ("name: pod64", 'name: "pod64'),
        ("plugin: openipu.pod.pod", "plugin: openipu.pod"),
    ],
    ids=["key", "YAML", "plugin"],
)
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_the_last_error_has_the_mistakes(folder: Path, old: str, new: str, whole: bool) -> None:
    pod = folder / "pod.yml"
    text = pod.read_text()
    assert old in text
    pod.write_text(text.replace(old, new))
    with pytest.raises(PodError) as caught:
        load(str(pod))
    assert failure(folder if whole else pod) == f"Cannot continue: the inventory is invalid. {caught.value} (OPU300)"


def test_several_invalid_pods_are_named(pod, tmp_path: Path) -> None:
    pod.write(tail="users: 1\n")
    other = tmp_path / "north.pod.yml"
    other.write_text("name: north\n")
    message = failure(pod.pod_yml, other)
    assert message.count("(OPU300)") == 2
    assert f"{pod.pod_yml}, line 9: pod 'test': 'users' must be a list" in message
    assert f"{other}, line 1: " in message


def test_lines_of_the_table_are_no_hosts(folder: Path) -> None:
    assert failure(folder) == (
        "Cannot continue: Ansible reads the lines of machines.csv as hosts, such as "
        "'name,rack,unit,bmc_mac,gw_mac,rnic_mac,rack_unit,serial,agent'. Pass pod.yml, not its folder: "
        f"-i {folder}/pod.yml"
    )


def test_an_inventory_without_pod_has_the_general_message(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {a: {}}}\n")
    message = failure(hosts)
    assert message.startswith("Cannot continue: the inventory has no POD with a controller. Pass an inventory")
