# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that are for Open vSwitch with hardware offload say so when they are made."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack import bodies
from ansible_collections.openipu.pod.plugins.module_utils.openstack.client import CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.looking import check_offload
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError
from answers import Answers
from neutron_raw import network, port, seen, steps, told

MAC = "0c:42:a1:00:00:01"
TYPE = "hardware_offload_type"


def step(offload: bool | None, **there: Any) -> Any:
    asked = {"name": "vm-data", "network": "data", "vnic_type": "direct", "hardware_offload": offload}
    ports = [port("vm-data", MAC, **{"binding:vnic_type": "direct", **there})] if there else []
    (found,) = steps({"ports": [asked]}, seen(network=[network("data")], port=ports))
    return found


def test_a_new_port_says_so_and_no_other_says_anything() -> None:
    assert bodies.new(step(True), lambda family, name: name)[TYPE] == "switchdev"
    for offload in (False, None):
        assert TYPE not in bodies.new(step(offload), lambda family, name: name)


def test_what_is_so_stays_and_what_was_not_asked_about() -> None:
    for offload, said in ((True, "switchdev"), (False, None), (None, "switchdev"), (None, None)):
        assert told([step(offload, **{TYPE: said})]) == []
    assert told([step(True, description="")]) == []  # a Neutron that knows of none cannot be compared


def test_a_port_that_nobody_has_is_made_anew_and_one_in_use_is_not() -> None:
    assert told([step(True, **{TYPE: None})]) == [("port", "vm-data", "recreate")]
    with pytest.raises(SentenceError, match="'vm-data' is in use by compute:nova, so its hardware_offload cannot be"):
        step(True, **{TYPE: None, "device_owner": "compute:nova"})


def test_a_neutron_that_knows_of_none_is_not_asked_for_it() -> None:
    asked = "GET /extensions/port-hardware-offload-type"
    check_offload(Answers({asked: {"extension": {}}}), [step(True)])
    lacking = Answers({asked: CloudError("no such extension", 404)})
    with pytest.raises(SentenceError, match="Port 'vm-data' is to be for hardware offload, which this Neutron"):
        check_offload(lacking, [step(True)])
    with pytest.raises(CloudError, match="nobody there"):
        check_offload(Answers({asked: CloudError("nobody there", 503)}), [step(True)])
    # Who asks for none, or has it, asks nobody.
    check_offload(Answers({}), [step(False), step(None), step(True, **{TYPE: "switchdev"})])
