# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that are for Open vSwitch with hardware offload say so in their binding profile."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack import bodies
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError
from neutron_raw import network, port, seen, steps, told

MAC = "0c:42:a1:00:00:01"
SAYS = {"capabilities": ["switchdev"]}


def step(offload: bool | None, **there: Any) -> Any:
    asked = {"name": "vm-data", "network": "data", "vnic_type": "direct", "hardware_offload": offload}
    ports = [port("vm-data", MAC, **{"binding:vnic_type": "direct", **there})] if there else []
    (found,) = steps({"ports": [asked]}, seen(network=[network("data")], port=ports))
    return found


def test_a_new_port_says_so_and_no_other_says_anything() -> None:
    assert bodies.new(step(True), lambda family, name: name)["binding:profile"] == SAYS
    for offload in (False, None):
        assert "binding:profile" not in bodies.new(step(offload), lambda family, name: name)


def test_what_nova_adds_is_no_change() -> None:
    bound = {"device_owner": "compute:nova", "binding:profile": {**SAYS, "pci_slot": "0000:41:00.2"}}
    assert told([step(True, **bound)]) == []
    assert told([step(None, **bound)]) == []


def test_a_port_that_nobody_has_is_changed_and_one_in_use_is_not() -> None:
    changing = step(True, **{"binding:profile": {}})
    assert bodies.changes(changing, lambda family, name: name) == {"binding:profile": SAYS}
    with pytest.raises(SentenceError, match="'vm-data' is in use by compute:nova, so its hardware_offload cannot be"):
        step(True, **{"binding:profile": {}, "device_owner": "compute:nova"})


def test_who_is_not_shown_the_profile_cannot_compare() -> None:
    assert told([step(True, description="")]) == []
