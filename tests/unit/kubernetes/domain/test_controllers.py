# SPDX-License-Identifier: GPL-3.0-or-later
"""List of V-IPU controllers."""

from __future__ import annotations

import pytest

from openipu.kubernetes.domain.controllers import Controller, may_suit, parse, suits


@pytest.mark.parametrize(
    "text",
    [
        "pod001:8090:ipunode=node1,pod002:8091:ipunode=node2",
        "pod001:8090:ipunode=node1\npod002:8091:ipunode=node2\n",
        '- "pod001:8090:ipunode=node1"  # the first one\n- pod002:8091:ipunode=node2\n\n',
    ],
)
def test_the_published_forms(text: str) -> None:
    assert parse(text) == [
        Controller("pod001", 8090, ("ipunode", "node1")),
        Controller("pod002", 8091, ("ipunode", "node2")),
    ]


def test_addresses() -> None:
    assert [each.address for each in parse("vipu-server:8090, [2001:db8::1]:8090:a=")] == [
        "vipu-server:8090",
        "[2001:db8::1]:8090",
    ]
    assert parse("") == []


@pytest.mark.parametrize("text", ["pod001", "pod001:0", "pod001:70000", "pod001:8090:label", ":8090", "a:1:b=c:d"])
def test_invalid_entries_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no V-IPU controller"):
        parse(text)


def test_a_controller_is_listed_once() -> None:
    with pytest.raises(ValueError, match="a:1 is listed twice"):
        parse("a:1:x=1,a:1:x=2")


@pytest.mark.parametrize(
    ("label", "labels", "expected"),
    [
        (("ipunode", "node1"), {"ipunode": "node1", "a": "b"}, True),
        (("ipunode", "node1"), {"ipunode": "node2"}, False),
        (("ipunode", "node1"), {}, False),
        (("ipunode", ""), {}, False),
        (None, {}, True),
    ],
)
def test_nodes_of_a_controller(label: tuple[str, str] | None, labels: dict[str, str], expected: bool) -> None:
    assert suits(label, labels) == expected


@pytest.mark.parametrize(
    ("label", "selector", "expected"),
    [
        (None, {"ipunode": "node1"}, True),
        (("ipunode", "node1"), {}, True),
        (("ipunode", "node1"), {"pool": "a"}, True),
        (("ipunode", "node1"), {"ipunode": "node1", "pool": "a"}, True),
        (("ipunode", "node1"), {"ipunode": "node2"}, False),
    ],
)
def test_a_selector_restricts_the_controllers(
    label: tuple[str, str] | None, selector: dict[str, str], expected: bool
) -> None:
    assert may_suit(label, selector) is expected


def test_a_controller_on_several_hosts() -> None:
    (found,) = parse("10.1.1.1|10.1.1.2:8090:rack=r1")
    assert (found.hosts, found.port, found.node_label) == ("10.1.1.1,10.1.1.2", 8090, ("rack", "r1"))
    assert found.address == "10.1.1.1:8090", "further hosts leave the identity unchanged"
