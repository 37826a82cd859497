# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of racks and devices that Ansible or the inventory plugin use for groups or hosts."""

from __future__ import annotations

import re

import pytest
from ansible.inventory.group import to_safe_group_name
from ansible_collections.openipu.pod.plugins.module_utils.pod.inventory_names import (
    BUILT_IN,
    GROUPS,
    LOCALHOST,
    group_name,
)
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load

from tests import ROOT

from .test_pod_mistakes import mistakes


def renamed(pod, name: str, **content):
    """Return a POD whose rack has another name."""
    path = pod.write(cluster=None, **content)
    for file in (path, pod.machines_csv):
        file.write_text(file.read_text().replace("rack1", name))
    return path


@pytest.mark.parametrize("name", ["switches", "machines", "all", "ungrouped", "pod_test", "pod-test", "deploy_common"])
def test_a_rack_with_a_reserved_name_is_rejected(pod, name):
    group = name.replace("-", "_")
    message = f"Cannot create the group of rack '{name}': the name '{group}' is reserved. Rename the rack."
    assert mistakes(renamed(pod, name)) == [(6, message)]


@pytest.mark.parametrize("name", ["all", "ungrouped", "localhost", "machines", "unmanaged_switches"])
@pytest.mark.parametrize(("kind", "key"), [("server", "servers"), ("PDU", "pdus")])
def test_a_device_with_a_reserved_name_is_rejected(pod, name, kind, key):
    message = f"Cannot create the host of {kind} '{name}': the name '{name}' is reserved. Rename the {kind}."
    assert mistakes(pod.write(rack_tail=f", {key}: [{{name: {name}}}]")) == [(6, message)]


@pytest.mark.parametrize(("name", "reason"), [("all", "is reserved"), ("rack1", "is the group of rack 'rack1'")])
def test_a_machine_has_the_line_of_its_row(pod, name, reason):
    path = pod.write(cluster=None)
    pod.machines_csv.write_text(pod.machines_csv.read_text().replace("m1.3", name))
    message = f"Cannot create the host of machine '{name}': the name '{name}' {reason}. Rename the machine."
    assert mistakes(path) == [(4, message)]


def test_names_in_a_shared_inventory_have_the_name_of_the_pod(pod):
    path = renamed(pod, "switches", rack_tail=", servers: [{name: all}]", tail="shared_inventory: true\n")
    assert [rack.name for rack in load(str(path)).racks] == ["switches"]


@pytest.mark.parametrize("name", ["rack1", "rack-1", "1rack", "a.b-c"])
def test_names_of_groups_are_those_of_ansible(name):
    assert group_name(name) == to_safe_group_name(name, force=True, silent=True)


def test_the_page_of_the_model_lists_the_reserved_names():
    page = (ROOT / "docs/reference/pod-model.md").read_text()
    section = page.partition("### Reserved names\n")[2].partition("\n### ")[0]
    names = [
        name
        for line in section.splitlines()
        for name in re.findall(r"`(\w+)`", line.partition(" | ")[0])
        if line.startswith("|")
    ]
    assert sorted(names) == sorted([*GROUPS, *BUILT_IN, LOCALHOST, "unmanaged_", "unmanaged_pdus", "pod_"])
