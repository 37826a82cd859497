# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the messages for mistakes in pod.yml, as Ansible prints them with the settings of a checkout."""

from __future__ import annotations

import configparser
import re
import subprocess

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

from openipu.pod_files import ansible_settings
from openipu.pod_files.rehearsal import playbook
from tests import ROOT
from tests.unit.collection.pod.conftest import NETWORKS
from tests.unit.collection.pod.inventories import parse, run

OVERLAP = NETWORKS.replace("10.2.0.0/16", "10.1.128.0/17").replace("gw: {", "gw: {vlan: 14, ")


def overlap(text: str) -> bytes:
    return text.replace(NETWORKS, OVERLAP).encode()


def latin_1(text: str) -> bytes:
    return (text + "# Zürich\n").encode("latin-1")


def indentation(text: str) -> bytes:
    return text.replace("  - {id: cl,", "  - {id: other, racks: [rack1]}\n - {id: cl,").encode()


def several(text: str) -> bytes:
    return (
        text + "allocations: [{id: a, cluster: none, size: 1}]\npartitions: [{id: p, allocation: b, size: 3}]\n"
    ).encode()


def nested_aliases(text: str) -> bytes:
    merged = (f"v{n + 1}: &v{n + 1} {{<<: [{', '.join(9 * [f'*v{n}'])}]}}\n" for n in range(6))
    return f"v0: &v0 {{x: 1}}\n{''.join(merged)}{text}".encode()


def control_character(text: str) -> bytes:
    return f"{text}# \0\n".encode()


MISTAKES = [overlap, latin_1, indentation, several, nested_aliases, control_character]


def message(done: subprocess.CompletedProcess[str]) -> str:
    """Return the only message of a failed program. Its prefix depends on the release of Ansible."""
    assert done.returncode == 4
    assert not done.stdout
    return re.sub(r"^(ERROR! |\[ERROR\]: )", "", done.stderr).rstrip("\n")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.__name__)
def test_mistake_is_one_message(pod, mistake):
    path = pod.write()
    path.write_bytes(mistake(path.read_text()))
    with pytest.raises(PodError) as expected:
        load(str(path))
    play = path.with_name("play.yml")
    play.write_text("- {hosts: all, gather_facts: false, tasks: [{debug: }]}\n")
    for command in (["ansible-inventory", "--list"], ["ansible-playbook", play]):
        done = run(*command, "-i", path)
        assert message(done) == f"{expected.value} (OPU300)"


def test_missing_plugin_and_wrong_options_are_one_message(pod):
    path = pod.write(drop="plugin")
    missing = f"{path}, line 1: pod 'test': 'plugin: openipu.pod.pod' is missing: add it (OPU300)"
    assert message(run("ansible-inventory", "--list", "-i", path)) == missing
    path = pod.write(tail="cache_timeout: soon\n")
    assert "cache_timeout" in message(run("ansible-inventory", "--list", "-i", path))


def test_file_of_another_plugin_is_left_to_it(pod):
    path = pod.write()
    path.write_text("plugin: ansible.builtin.constructed\n")
    done = run("ansible-inventory", "--list", "-i", path)
    assert (done.returncode, done.stderr) == (0, "")


def test_other_sources_are_used_when_unparsed_is_allowed(pod, tmp_path):
    path = pod.write()
    path.write_bytes(overlap(path.read_text()))
    (tmp_path / "more.yml").write_text("all: {hosts: {other: }}\n")
    lenient = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "false"}
    done = run("ansible-inventory", "-i", path, "-i", tmp_path / "more.yml", "--list", **lenient)
    assert done.returncode == 0
    assert '"other"' in done.stdout
    assert "use separate subnets (OPU300)" in done.stderr


def test_other_yaml_inventories_are_read(pod, tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {other: }}\n")
    assert parse(pod.write(), tmp_path / "hosts.yml").hosts("ungrouped") == ["other"]


def inventory_settings(text: str) -> dict[str, str]:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(text)
    return dict(settings["inventory"])


def test_settings_for_users_are_those_of_a_checkout():
    own = inventory_settings((ROOT / "ansible.cfg").read_text())
    page = (ROOT / "docs/how-to/real-rack.md").read_text()
    (published,) = re.findall(r"```ini\n(\[inventory\]\n.*?)```", page, re.DOTALL)
    assert inventory_settings(published) == own
    assert inventory_settings(ansible_settings.INVENTORY) == own
    assert inventory_settings(playbook._CONFIG) == own
    assert own["enable_plugins"].startswith("openipu.pod.pod, ")
