# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of agents: checks, limits and clean texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.fleet import agent_messages
from openipu.vipu.fleet.agent_messages import InvalidMessageError, clean
from tests.integration.faults.hostile import variants

PARSERS: dict[str, Callable[[Any], Any]] = {
    "AgentEvent": agent_messages.event,
    "ReadCablesReply": agent_messages.cables,
    "ReadSyncReply": agent_messages.pulses,
    "TrainLinksReply": agent_messages.links,
    "RunTrafficReply": agent_messages.links,
    "ConfigureReply": lambda reply: agent_messages.share_results(reply.results, {"a1": (0,), "": (0,), "p2": ()}),
    "ReleaseReply": lambda reply: agent_messages.share_results(reply.results, {"a1": (), "p2": ()}),
}


@pytest.mark.parametrize("name", PARSERS)
def test_hostile_values_are_rejected_or_harmless(name: str) -> None:
    for description, message in variants(getattr(contract, name)):
        try:
            value = PARSERS[name](message)
        except InvalidMessageError as error:
            assert str(error).isprintable() and len(str(error)) < 200, description
        else:
            text = repr(value)
            assert text.isprintable() and len(text) < 5_000, f"{description}: {text[:200]}"


@pytest.mark.parametrize(
    ("ports", "reason"),
    [
        ([{"port": 4_000_000_000, "count": 1}], "it reports port 4000000000, which no machine has"),
        ([{"port": 1, "kind": 1}, {"port": 1, "kind": 1}], "it reports port 1 of kind 1 twice"),
    ],
)
def test_impossible_ports_are_rejected(ports: list[dict[str, int]], reason: str) -> None:
    message = contract.ReadSyncReply()
    for port in ports:
        message.ports.add(**port)
    with pytest.raises(InvalidMessageError, match=reason):
        agent_messages.pulses(message)


def test_hostile_maps() -> None:
    text = "\x1b\u202e" + "x" * 5_000
    info = contract.MachineInfo(facts=[contract.Fact(name=text, value=text)], versions={text: text})
    assert repr(agent_messages.machine_info(info)).isprintable()
    reply = contract.ListIpuAttributesReply()
    reply.ipus[3].attributes[text] = text
    reported = agent_messages.attributes(reply)
    assert repr(reported).isprintable() and len(repr(reported)) < 500
    reply.ipus[4].attributes["a"] = "b"
    with pytest.raises(InvalidMessageError, match="it reports IPUs other than 0 to 3"):
        agent_messages.attributes(reply)
    pfc = contract.ReadPfcReply()
    pfc.interfaces[text].classes.extend(range(8))
    assert len(repr(agent_messages.pfc_classes(pfc))) < 300
    for classes in ([16], [0, 0]):
        pfc.interfaces["b"].classes[:] = classes
        with pytest.raises(InvalidMessageError, match="it reports PFC classes other than 0 to 15"):
            agent_messages.pfc_classes(pfc)


@given(st.text(max_size=2_000), st.integers(1, 400))
def test_clean_texts_are_short_lines(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert cleaned.isprintable()
    assert clean(cleaned, limit) == cleaned


def test_ordinary_texts_are_unchanged() -> None:
    text = "the IPUs do not come up (fault of the twin); naïve 温度 39 °C"
    assert clean(text) == text
    assert clean("x" * 301) == "x" * 299 + "…"


def results(*messages: Mapping[str, Any], ipus: tuple[int, ...] = ()) -> Any:
    found = agent_messages.share_results([contract.ShareResult(**each) for each in messages], {"p": ipus, "q": ()})
    return {id: result.error for id, result in found.items()}


def test_results_are_matched_by_partition() -> None:
    assert results({"partition_id": "q"}, {"partition_id": "p", "error": "no\npower"}) == {"p": "no power", "q": ""}
    none, two = "its reply has no results for this partition", "its reply has 2 results for this partition"
    assert results({"partition_id": "p"}, {"partition_id": "p"}) == {"p": two, "q": none}
    assert results({"partition_id": "p", "error": "\n\0"}, {"partition_id": "q"})["p"] == "it gives no reason"


def test_devices_are_those_of_the_share() -> None:
    def device(ipu: int, **fields: Any) -> Any:
        given = {"ip": "10.5.1.1", "server_port": 1, "rdma_port": 65535, "ipu_id": ipu, **fields}
        return contract.ShareResult.DESCRIPTOR.fields_by_name["devices"].message_type._concrete_class(**given)

    def error(*devices: Any) -> str:
        return str(results({"partition_id": "p", "devices": devices}, {"partition_id": "q"}, ipus=(0, 2))["p"])

    assert error(device(0), device(2)) == ""
    assert error(device(0, ip="fd00::1"), device(2)) == ""
    for wrong in ([device(0)], [device(0), device(1)], [device(2), device(0)], [device(0), device(2), device(3)]):
        assert error(*wrong) == "its devices are not those of its IPUs, one for each in order"
    for ip in (
        "",
        "host",
        "10.5.1.1 ",
        "010.5.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "FD00::1",
        "fe80::1%\x1b[2J",
        "1" * 100_000,
    ):
        assert error(device(0, ip=ip), device(2)).endswith("of a device is no unicast IP address"), ip[:40]
    for port in (0, 65536):
        assert error(device(0, rdma_port=port), device(2)) == f"the port {port} of a device is not 1 to 65535"
