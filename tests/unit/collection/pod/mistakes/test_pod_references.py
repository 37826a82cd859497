# SPDX-License-Identifier: GPL-3.0-or-later
"""References to unknown objects: the message names the object that contains the reference."""

from __future__ import annotations

import pytest

from .test_pod_mistakes import SWITCHES, mistakes

ALLOCATION = "allocations: [{id: nlp, cluster: cl, size: 2}]\n"
CABLE = SWITCHES + ", cables: [{device: %s, connector: rnic, switch: %s, port: %s}]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"cluster": "racks: [rak1]"}, "cluster 'cl': unknown rack 'rak1': did you mean 'rack1'?"),
        ({"cluster": "machines: [m14]"}, "cluster 'cl': unknown machine 'm14': did you mean 'm1.4'?"),
        (
            {"tail": "allocations: [{id: nlp, cluster: c, size: 2}]\n"},
            "allocation 'nlp': unknown cluster 'c': did you mean 'cl'?",
        ),
        (
            {"tail": ALLOCATION + "partitions: [{id: p, allocation: npl, size: 4}]\n"},
            "partition 'p': unknown allocation 'npl': did you mean 'nlp'?",
        ),
        (
            {"tail": ALLOCATION + "users: [{id: ann, allocations: [npl]}]\n"},
            "user 'ann': unknown allocation 'npl': did you mean 'nlp'?",
        ),
        (
            {"rack_tail": CABLE % ("m14", "tor", "Ethernet1/1")},
            "cable of rack 'rack1': unknown device 'm14': did you mean 'm1.4'?",
        ),
        (
            {"rack_tail": CABLE % ("m1.4", "torr", "Ethernet1/1")},
            "cable of 'm1.4': unknown switch 'torr': did you mean 'tor'?",
        ),
        (
            {"rack_tail": CABLE % ("m1.4", "tor", "Ether1/1")},
            "cable of 'm1.4': switch 'tor': unknown port of a DCS-7060CX-32S-F 'Ether1/1': did you mean 'Ethernet1/1'?",
        ),
        (
            {"rack_tail": ", switches: [{name: tor, kind: data, uplinks: [Ether1/1]}, {name: m, kind: management}]"},
            "switch 'tor': unknown port of a DCS-7060CX-32S-F 'Ether1/1': did you mean 'Ethernet1/1'?",
        ),
    ],
    ids=["rack", "machine", "cluster", "allocation", "user", "device", "switch", "port", "uplink"],
)
def test_the_object_with_the_reference_is_named(pod, content, message):
    assert message in [found for _line, found in mistakes(pod.write(**content))]


def test_objects_with_mistakes_are_known(pod):
    """The allocation refers to an unknown cluster, and the partition to an unknown allocation."""
    tail = "allocations: [{id: nlp, cluster: c, size: 2}]\npartitions: [{id: p, allocation: npl, size: 4}]\n"
    assert [found for _line, found in mistakes(pod.write(tail=tail))] == [
        "allocation 'nlp': unknown cluster 'c': did you mean 'cl'?",
        "partition 'p': unknown allocation 'npl': did you mean 'nlp'?",
    ]


def test_the_controller_is_named(pod):
    path = pod.write(rack_tail=", servers: [{name: s1, roles: [controller]}]")
    path.write_text(path.read_text().replace("{host: 10.3.1.101}", "{server: s2}"))
    assert mistakes(path) == [(4, "controller: unknown server 's2': known are s1")]
