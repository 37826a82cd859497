# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped keys of networks: nothing follows from the default subnet or VLAN that replaces the given one."""

from __future__ import annotations

import pytest

from .test_pod_mistakes import mistakes

OUTSIDE = ", servers: [{name: head1, addresses: {p2: 10.22.7.1, idrac: 10.22.7.201}}]"


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ("managment: {subnet: 10.22.0.0/16}", "networks: unknown key 'managment': did you mean 'management'?"),
        ("management: {subnt: 10.22.0.0/16}", "network 'management': unknown key 'subnt': did you mean 'subnet'?"),
        ("oob: {subnet: 10.22.0.0/16}", "networks: unknown key 'oob': known are bmc, data, gw, management, storage"),
    ],
    ids=["network", "subnet", "another word"],
)
def test_a_mistyped_key_is_one_mistake(pod, networks, message):
    path = pod.write(networks=f"networks: {{{networks}}}", rack_tail=OUTSIDE)
    assert mistakes(path) == [(3, message)]


def test_other_networks_are_still_checked(pod):
    path = pod.write(networks="networks: {managment: {}, data: {vlan: 13}, gw: {subnet: 10.1.1.0/33}}")
    assert len(mistakes(path)) == 3
