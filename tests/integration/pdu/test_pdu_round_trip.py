# SPDX-License-Identifier: GPL-3.0-or-later
"""Random configurations: `pdu` applies each with few requests, reads it back, and changes nothing the second time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.pdu.client import PduClient
from ansible_collections.openipu.pod.plugins.module_utils.pdu.options import Run
from ansible_collections.openipu.pod.plugins.module_utils.pdu.session import Connection
from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.pdu_agents import ServedPdu, agents_of_pdus

Object = dict[str, Any]
TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=30)
NAMES = ("low_load", "near_overload", "overload")


def thresholds(most: int, unit: float = 1) -> st.SearchStrategy[Object]:
    """Return three ascending thresholds."""
    numbers = st.lists(st.integers(0, most), min_size=3, max_size=3).map(sorted)
    return numbers.map(
        lambda three: {name: number / unit if unit > 1 else number for name, number in zip(NAMES, three, strict=True)}
    )


def rows(numbers: int, row: st.SearchStrategy[Object]) -> st.SearchStrategy[list[Object]]:
    """Return some rows, with numbers up to ``numbers``."""
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
    """Return configurations of a PDU of 32 A with banks of 16 A."""
    circuits = {"phases": rows(phases, thresholds(32)), "banks": rows(banks, thresholds(16))}
    more = {"trap_receivers": RECEIVERS, **({"outlets": rows(outlets, OUTLET)} if outlets else {})}
    parts = st.tuples(IDENTITY, thresholds(watts // 100, 10), st.fixed_dictionaries({**circuits, **more}))
    return parts.map(lambda found: {key: value for part in found for key, value in part.items()})


class ConfiguredPdu:
    """A PDU for consecutive configurations, with one client for all tasks."""

    def __init__(self, served: ServedPdu) -> None:
        self.served = served
        self.client = PduClient(Connection(**served.options()))

    def perform(self, **options: Any) -> Object:
        """Run a task and return its result; raise its errors."""
        given = self.served.options(**options)
        params = ArgumentSpecValidator(PDU_TASK.argument_spec).validate(given).validated_parameters
        return PDU_TASK.run(Run(params, check_mode=False, diff=False, transport=self.client))

    def gathered(self) -> Object:
        """Return the configuration in the format of the option config."""
        found: Object = self.perform(state="gathered")["gathered"]
        return found


@pytest.fixture(scope="module")
def pdus() -> Iterator[dict[str, ConfiguredPdu]]:
    """Yield one PDU of each kind."""
    with agents_of_pdus() as agents:
        found = {model: ConfiguredPdu(agents.pdu(model=model)) for model in ("AP8886", "AP8953")}
        yield found
        for each in found.values():
            each.client.close()


def in_place(desired: Object, gathered: Object) -> bool:
    """Return whether the gathered configuration contains all desired values."""
    for key, value in desired.items():
        if isinstance(value, list):
            actual = {item.get("number", item.get("address")): item for item in gathered.get(key, [])}
            for item in value:
                shown = {name: each for name, each in item.items() if name != "community"}
                if not shown.items() <= actual[item.get("number", item.get("address"))].items():
                    return False
        elif gathered[key] != value:
            return False
    return True


def round_trip(pdu: ConfiguredPdu, desired: Object) -> None:
    before, count = pdu.gathered(), pdu.served.requests
    first = pdu.perform(config=desired)
    # Settings need one request, or several if they are long; commands need one.
    assert (pdu.served.requests - count)["set"] <= 4
    after = pdu.gathered()
    assert in_place(desired, after)
    communities = {receiver.address: receiver.community for receiver in pdu.served.pdu.settings.receivers}
    assert all(communities[item["address"]] == item["community"] for item in desired["trap_receivers"])
    assert first["changed"] or before == after
    count = pdu.served.requests
    assert not pdu.perform(config=desired)["changed"]
    assert not (pdu.served.requests - count)["set"]


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(desired=config(22000, 3, 6, 0))
def test_a_metered_pdu(pdus: dict[str, ConfiguredPdu], desired: Object) -> None:
    round_trip(pdus["AP8886"], desired)


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(desired=config(7400, 1, 2, 24))
def test_a_switched_pdu(pdus: dict[str, ConfiguredPdu], desired: Object) -> None:
    round_trip(pdus["AP8953"], desired)
