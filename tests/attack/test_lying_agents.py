# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents whose messages are false, too large or too many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import RunState
from openipu.vipu.domain.model import Device, Operation
from openipu.vipu.fleet import agent_messages, connection
from openipu.vipu.fleet.agent_messages import ShareResult
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.reported import ReportedShares
from tests.attack.lying_agent import Lie, LyingRack, plane, rack
from tests.integration.agents.agents_support import Plane
from tests.waiting import until

__all__ = ["plane", "rack"]

ANY_TEXT = re.compile(".*", re.DOTALL)
MAX_REVISION = 2**64 - 1
HOSTILE = "\x1b[2J\0\u202e\n" + "x" * 5_000


def on_liar(plane: Plane, id: str = "p", size: int = 4) -> None:
    plane.create(id, size, disable_auto_reset=True)
    assert plane.agents_of(id) == ["ag01"]


def first_is_short(names: Iterable[str]) -> list[Any]:
    """Return parameters of a test: all but the first run in ``make attack`` only."""
    return [pytest.param(name, marks=[pytest.mark.long] if index else []) for index, name in enumerate(names)]


def harmless(text: str, limit: int = 600) -> bool:
    return text.isprintable() and len(text) <= limit


def held(id: str, *ipus: int, **fields: Any) -> Any:
    return contract.HeldShare(partition_id=id, ipus=ipus, **fields)


def strangers(number: int) -> list[Any]:
    return [held(f"x{n}", 0) for n in range(number)]


def replace(field: str, value: Any, of: str = "") -> Lie:
    """Return a lie that sets a field of a message, or of each item of its list ``of``."""

    def lie(message: Any) -> None:
        for each in getattr(message, of) if of else [message]:
            old = getattr(each, field)
            if hasattr(old, "extend"):
                del old[:]
                old.extend(value)
            else:
                setattr(each, field, value)

    return lie


def add(field: str, count: int) -> Lie:
    """Return a lie that repeats the first item of a list."""
    return lambda message: getattr(message, field).extend(getattr(message, field)[:1] * count)


def trust(value: Any, *_: Any, **__: Any) -> Any:
    return value


def trust_positions(results: Any, ipus: Mapping[str, Sequence[int]]) -> dict[str, ShareResult]:
    return {id: agent_messages._share_result([result], ipus[id]) for id, result in zip(ipus, results, strict=True)}


# One lie about the machine or its partitions, and what the reason of the agent being Down must contain.
LIES: dict[str, tuple[str, Lie, str]] = {
    "five strangers": ("AgentEvent", replace("shares", strangers(5)), "reports 5 partitions"),
    "strangers": ("AgentEvent", replace("shares", strangers(20_000)), "partitions|larger than"),
    "no IPUs": ("AgentEvent", replace("shares", [held("x")]), "without IPUs"),
    "IPU 4": ("AgentEvent", replace("shares", [held("x", 4)]), "IPUs other than"),
    "one IPU twice": ("AgentEvent", replace("shares", [held("x", 0), held("y", 0)]), "IPUs other than"),
    "a partition twice": ("AgentEvent", replace("shares", [held("x", 0), held("x", 1)]), "twice"),
    "deployment": ("AgentEvent", replace("shares", [held("x", 0, deployment=HOSTILE)]), "invalid deployment"),
    "epoch": ("AgentEvent", replace("shares", [held("x", 0, epoch=2**63)]), "higher than"),
    "id": ("AgentEvent", replace("shares", [held("../\x1b[2J", 0)]), "invalid id"),
    "revision": ("AgentEvent", replace("revision", MAX_REVISION), "its revision 18446744073709551615"),
    "boot id": ("AgentEvent", replace("boot_id", "b\n" * 500), "its boot id"),
    "too many IPUs": ("MachineInfo", replace("num_ipus", 1000), "1000 IPUs, more than 4"),
    "too many facts": ("MachineInfo", add("facts", 1000), "1001 facts"),
    "fault": ("AgentEvent", lambda message: message.faults.add(partition_id="p", ipu=9), "IPUs other than"),
    "faults": (
        "AgentEvent",
        lambda message: [message.faults.add(partition_id="p", ipu=1) for _ in range(1000)],
        "1000 faults at once",
    ),
}


@pytest.mark.defence("openipu.vipu.fleet.agent_messages.event", trust)
@pytest.mark.defence("openipu.vipu.fleet.agent_messages.machine_info", trust)
@pytest.mark.long
@pytest.mark.parametrize("lie", LIES)
def test_an_invalid_message_makes_the_agent_down(request: pytest.FixtureRequest, rack: LyingRack, lie: str) -> None:
    message, change, reason = LIES[lie]
    rack.liar.lies[message] = change  # before the controller connects and reads the machine
    plane: Plane = request.getfixturevalue("plane")
    plane.wait_up("ag02")
    status = plane.lifecycle.agent_status
    until(lambda: status("ag01").state is not AgentState.UNKNOWN)
    until(lambda: status("ag01").state is AgentState.DOWN or rack.liar.calls.count("AgentEvent") > 3)
    assert status("ag01").state is AgentState.DOWN
    assert harmless(status("ag01").reason)
    assert any(part in status("ag01").reason for part in reason.split("|")), status("ag01").reason
    assert status("ag02").state is AgentState.UP
    rack.liar.lies.clear()


@pytest.mark.defence("openipu.vipu.fleet.agent_messages.clean", trust)
def test_long_error_texts(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    rack.liar.lies["ConfigureReply"] = replace("error", HOSTILE, "results")
    on_liar(plane)
    (error,) = plane.wait_error("p").errors
    assert harmless(error), error[:1000]
    assert error.startswith("Agent 'ag01' rejected its share: [2J xxx")


@pytest.mark.defence("openipu.vipu.fleet.connection.MAX_MESSAGE", 64 << 20)
@pytest.mark.defence("openipu.vipu.fleet.agent_messages.clean", trust)
@pytest.mark.long
def test_large_messages(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    rack.liar.lies["ConfigureReply"] = replace("error", "x" * (3 << 20), "results")
    on_liar(plane)
    (error,) = plane.wait_error("p").errors
    assert harmless(error), error[:1000]
    assert plane.status("ag02") is AgentState.UP


@pytest.mark.defence("openipu.vipu.fleet.agent_messages.share_results", trust_positions)
def test_results_for_another_partition(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    rack.liar.lies["ConfigureReply"] = replace("partition_id", "other", "results")
    on_liar(plane)
    until(lambda: plane.partition("p").operation is not Operation.CREATING)
    assert plane.partition("p").errors == (
        "Agent 'ag01' rejected its share: its reply has no results for this partition.",
    )


@pytest.mark.defence("openipu.vipu.fleet.agent_messages.share_results", trust_positions)
def test_a_release_that_another_partition_confirms(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    on_liar(plane)
    plane.wait_active("p")
    rack.liar.lies["ReleaseReply"] = replace("partition_id", "other", "results")
    error = plane.lifecycle.remove_partition("p", force=False).exception(10)
    assert error is not None
    assert "its reply has no results for this partition" in str(error)
    assert plane.partition("p").operation is Operation.REMOVING
    rack.liar.lies.clear()


DEVICES: dict[str, Lie] = {
    "long address": replace("ip", "1" * 10_000, "devices"),
    "control characters": replace("ip", "127.84.0.1\x1b[2J", "devices"),
    "multicast": replace("ip", "239.1.2.3", "devices"),
    "port 0": replace("server_port", 0, "devices"),
    "high port": replace("rdma_port", 65536, "devices"),
    "device id": replace("device_id", 2**31, "devices"),
    "missing device": lambda result: result.devices.pop(),
    "another IPU": replace("ipu_id", 0, "devices"),
}


def trust_devices(found: Any, ipus: Sequence[int]) -> ShareResult:
    device = found[0].devices[0]
    return ShareResult("", (Device(device.ip, device.server_port, 1, 1, 1, "", "", "", ""),) * len(ipus))


@pytest.mark.defence("openipu.vipu.fleet.agent_messages._share_result", trust_devices)
@pytest.mark.parametrize("lie", first_is_short(DEVICES))
def test_invalid_devices(plane: Plane, rack: LyingRack, lie: str) -> None:
    plane.wait_up()

    def change(reply: Any) -> None:
        for result in reply.results:
            DEVICES[lie](result)

    rack.liar.lies["ConfigureReply"] = change
    on_liar(plane)
    until(lambda: plane.partition("p").operation is not Operation.CREATING)
    partition = plane.partition("p")
    assert partition.operation is Operation.FAILED
    assert all(map(harmless, partition.errors))
    assert partition.devices == ()
    rack.liar.lies.clear()


@pytest.mark.defence("openipu.vipu.fleet.connection.LONGEST_REORDERING", float("inf"))
def test_a_high_revision_does_not_hide_later_events(
    plane: Plane, rack: LyingRack, monkeypatch: pytest.MonkeyPatch, defence: bool
) -> None:
    if defence:
        monkeypatch.setattr(connection, "LONGEST_REORDERING", 0.3)
    plane.wait_up()
    rack.liar.lies["ConfigureReply"] = replace("revision", 2**47)
    on_liar(plane)
    plane.wait_active("p")
    rack.liar.held.clear()  # the machine lost the partition
    calls = len(rack.liar.calls)
    until(lambda: plane.status("ag01") is AgentState.DOWN or len(rack.liar.calls) > calls + 5)
    assert plane.status("ag01") is AgentState.DOWN


def no_delay(bucket: Any, now: float) -> float:
    return 0.0


@pytest.mark.defence("openipu.vipu.fleet.token_bucket.TokenBucket.delay", no_delay)
def test_a_flood_of_events(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    rack.liar.lies["flood"] = trust
    before = plane.events["ag01"]
    plane.wait_events("ag02", 5)
    assert plane.events["ag01"] - before < connection.EVENTS_AT_ONCE + 150
    assert plane.status("ag01") is AgentState.UP


READINGS: dict[str, tuple[Test, str, Lie, str]] = {
    "serials": (Test.CABLING, "ReadCablesReply", replace("serial", HOSTILE, "ports"), "the other end of the cable"),
    "ports": (
        Test.CABLING,
        "ReadCablesReply",
        add("ports", 10_000),
        "10001 ports",
    ),
    "links": (Test.IPU_LINK, "TrainLinksReply", replace("link", HOSTILE, "links"), "invalid name"),
    "many links": (
        Test.IPU_LINK,
        "TrainLinksReply",
        add("links", 10_000),
        "10016 links",
    ),
    "versions": (Test.VERSION, "MachineInfo", lambda info: info.versions.update({HOSTILE: HOSTILE}), "2 versions"),
    "PFC classes": (
        Test.PFC_SETTINGS,
        "ReadPfcReply",
        lambda reply: reply.interfaces["a"].classes.extend([99]),
        "PFC classes other",
    ),
}


@pytest.mark.defence("openipu.vipu.fleet.agent_messages.clean", trust)
@pytest.mark.defence("openipu.vipu.fleet.agent_messages._LINK", ANY_TEXT)
@pytest.mark.defence("openipu.vipu.fleet.agent_messages.MAX_ENTRIES", 10**9)
@pytest.mark.defence("openipu.vipu.fleet.agent_messages.MAX_PFC_CLASS", 10**9)
@pytest.mark.parametrize("name", first_is_short(READINGS))
def test_readings_of_cluster_tests(plane: Plane, rack: LyingRack, name: str) -> None:
    test, message, lie, reason = READINGS[name]
    plane.wait_up()
    rack.liar.lies[message] = lie
    plane.lifecycle.start_cluster_test("cl0", (test,)).result(10)
    until(lambda: (run := plane.lifecycle.cluster_test()) and run.state is not RunState.RUNNING)
    run = plane.lifecycle.cluster_test()
    assert run is not None
    assert run.state is RunState.FINISHED, run.error
    (verdict,) = run.verdicts
    texts = [*verdict.lines, *(failure.reason for failure in verdict.failures)]
    assert all(map(harmless, texts)), [text[:300] for text in texts]
    assert any(reason in text for text in texts), texts
    assert len(texts) < 100


def always_free(self: ReportedShares, agent_id: str, id: str) -> bool:
    return True


@pytest.mark.defence("openipu.vipu.lifecycle.reported.ReportedShares.is_free", always_free)
def test_ipus_that_are_still_held_are_not_given_away(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    on_liar(plane)
    plane.wait_active("p")
    rack.liar.lies["ReleaseReply"] = lambda reply: rack.liar.held.update(p=held("p", 0, 1, 2, 3))
    removal = plane.lifecycle.remove_partition("p", force=False)
    assert "reports it as released, but still holds it" in str(removal.exception(10))
    assert "p" in plane.state.partitions  # its IPUs are not free
