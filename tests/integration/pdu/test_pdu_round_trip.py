# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a PDU can be, `pdu` makes it in few requests, reads it back so, and has nothing to do the second time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.pdu.client import Agent, Connection
from ansible_collections.openipu.pod.plugins.module_utils.pdu.options import Run
from ansible_collections.openipu.pod.plugins.module_utils.pdu.tasks import PDU_TASK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pdu_agents import ServedPdu, agents_of_pdus

Object = dict[str, Any]
TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=30)
NAMES = ("low_load", "near_overload", "overload")


def thresholds(most: int, unit: float = 1) -> st.SearchStrategy[Object]:
    """Three that rise."""
    numbers = st.lists(st.integers(0, most), min_size=3, max_size=3).map(sorted)
    return numbers.map(
        lambda three: {name: number / unit if unit > 1 else number for name, number in zip(NAMES, three, strict=True)}
    )


def rows(numbers: int, row: st.SearchStrategy[Object]) -> st.SearchStrategy[list[Object]]:
    """Some rows of so many."""
    items = st.dictionaries(st.integers(1, numbers), row, max_size=6)
    return items.map(lambda found: [{"number": number, **item} for number, item in found.items()])


RECEIVERS = st.dictionaries(
    st.integers(1, 4), st.tuples(TEXT.filter(lambda text: text.strip("* ")), st.booleans()), max_size=4
).map(
    lambda found: [
        {"address": f"10.1.3.{number}", "community": community, "enabled": enabled}
        for number, (community, enabled) in found.items()
    ]
)
IDENTITY = st.fixed_dictionaries({}, optional={"name": TEXT, "location": TEXT, "contact": TEXT})
OUTLET = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXT,
        "on_delay": st.integers(-1, 300),
        "off_delay": st.integers(-1, 360),
        "reboot_duration": st.integers(5, 60),
        "state": st.sampled_from(["on", "off"]),
    },
)


def config(watts: int, phases: int, banks: int, outlets: int) -> st.SearchStrategy[Object]:
    """All that a PDU of 32 A and with banks of 16 A can be."""
    circuits = {"phases": rows(phases, thresholds(32)), "banks": rows(banks, thresholds(16))}
    more = {"trap_receivers": RECEIVERS, **({"outlets": rows(outlets, OUTLET)} if outlets else {})}
    parts = st.tuples(IDENTITY, thresholds(watts // 100, 10), st.fixed_dictionaries({**circuits, **more}))
    return parts.map(lambda found: {key: value for part in found for key, value in part.items()})


class Asked:
    """A PDU that goes from one configuration to the next, and one way to it for all tasks."""

    def __init__(self, served: ServedPdu) -> None:
        self.served = served
        self.agent = Agent(Connection(**served.options()))

    def perform(self, **options: Any) -> Object:
        """The result of a task; a failure is raised."""
        given = self.served.options(**options)
        params = ArgumentSpecValidator(PDU_TASK.argument_spec).validate(given).validated_parameters
        return PDU_TASK.run(Run(params, check_mode=False, diff=False, transport=self.agent))

    def gathered(self) -> Object:
        """What it is, in the words of the option config."""
        found: Object = self.perform(state="gathered")["gathered"]
        return found


@pytest.fixture(scope="module")
def pdus() -> Iterator[dict[str, Asked]]:
    """One of each kind."""
    with agents_of_pdus() as agents:
        found = {model: Asked(agents.pdu(model=model)) for model in ("AP8886", "AP8953")}
        yield found
        for asked in found.values():
            asked.agent.close()


def in_place(asked: Object, gathered: Object) -> bool:
    """Whether what was gathered has all that was asked for."""
    for key, value in asked.items():
        if isinstance(value, list):
            there = {item.get("number", item.get("address")): item for item in gathered.get(key, [])}
            for item in value:
                shown = {name: each for name, each in item.items() if name != "community"}
                if not shown.items() <= there[item.get("number", item.get("address"))].items():
                    return False
        elif gathered[key] != value:
            return False
    return True


def go_round(pdu: Asked, asked: Object) -> None:
    before, count = pdu.gathered(), pdu.served.requests
    first = pdu.perform(config=asked)
    # Settings are one request, or several when they are long, and commands one.
    assert (pdu.served.requests - count)["set"] <= 4
    after = pdu.gathered()
    assert in_place(asked, after)
    communities = {receiver.address: receiver.community for receiver in pdu.served.pdu.settings.receivers}
    assert all(communities[item["address"]] == item["community"] for item in asked["trap_receivers"])
    assert first["changed"] or before == after
    count = pdu.served.requests
    assert not pdu.perform(config=asked)["changed"]
    assert not (pdu.served.requests - count)["set"]


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(asked=config(22000, 3, 6, 0))
def test_a_metered_pdu(pdus: dict[str, Asked], asked: Object) -> None:
    go_round(pdus["AP8886"], asked)


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(asked=config(7400, 1, 2, 24))
def test_a_switched_pdu(pdus: dict[str, Asked], asked: Object) -> None:
    go_round(pdus["AP8953"], asked)
