# SPDX-License-Identifier: GPL-3.0-or-later
"""The SNMP client of the modules: how many requests it makes, and what it does when answers are lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.client import Agent, Connection, PduError, Refused
from ansible_collections.openipu.pod.plugins.module_utils.pdu.infos import PDU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.pdu.tasks import PDU_TASK
from pdu_agents import HOST, WITH_V2C, WRITES, Agents, ServedPdu
from pdu_perform import perform
from pyasn1.codec.ber import decoder
from pysnmp.proto.api import v2c

NAME = mib.DEVICE_CONFIG["Name"].at(1)
LINKS = mib.OUTLET_CONFIG["ExternalLink"]


class Lossy:
    """A way to a PDU that loses answers.

    ``loses`` says so of each, given what has been asked for so far: get or set.
    """

    def __init__(self, port: int) -> None:
        self.loses: Callable[[list[str]], bool] = lambda passed: False
        self.passed: list[str] = []
        self._agent = (HOST, port)
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind((HOST, 0))
        self.port = self._front.getsockname()[1]
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
            back.settimeout(10)
            while True:
                request, manager = self._front.recvfrom(2000)
                if not request:
                    return
                back.sendto(request, self._agent)
                answer = back.recv(2000)
                self.passed.append(_kind(request))
                if not self.loses(self.passed):
                    self._front.sendto(answer, manager)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (HOST, self.port))
        self._thread.join(10)
        self._front.close()


def _kind(request: bytes) -> str:
    message, _rest = decoder.decode(request, asn1Spec=v2c.Message())
    return "set" if isinstance(v2c.apiMessage.get_pdu(message), v2c.SetRequestPDU) else "get"


@pytest.fixture
def switched(agents: Agents) -> ServedPdu:
    return agents.pdu(model="AP8953", credentials=WITH_V2C)


@pytest.fixture
def lossy(switched: ServedPdu) -> Iterator[Lossy]:
    with closing(Lossy(switched.port)) as lossy:
        yield lossy


def options(port: int, **more: Any) -> dict[str, Any]:
    """Options of a connection that has one datagram for one request."""
    return {"host": HOST, "port": port, "version": "v2c", "community": WRITES, "timeout": 0.3, "retries": 2, **more}


def test_variables_go_together(switched: ServedPdu) -> None:
    with closing(Agent(Connection(**switched.options()))) as agent:
        oids = [column.at(row) for column in mib.OUTLET_STATUS.values() for row in range(1, 25)]
        found = agent.get(oids)
        assert list(found) == oids
        assert switched.requests == {"get": -(-len(oids) // 40)}
        agent.set([(LINKS.at(row), f"https://rack1/{row}") for row in range(1, 25)])
    assert switched.requests["set"] == 1
    assert [outlet.link for outlet in switched.pdu.settings.outlets] == [f"https://rack1/{row}" for row in range(1, 25)]


def test_what_it_costs(agents: Agents) -> None:
    metered = agents.pdu()
    assert not perform(PDU_TASK, **metered.options(state="gathered")).get("failed")
    assert metered.requests == {"get": 3}
    assert not perform(PDU_INFO, **metered.options()).get("failed")
    assert metered.requests == {"get": 6}
    config = {"name": "left", "phases": [{"near_overload": 20}], "banks": [{"near_overload": 12}]}
    assert perform(PDU_TASK, **metered.options(config=config))["changed"]
    assert metered.requests == {"get": 10, "set": 1}  # the last one reads back


def test_an_answer_that_is_too_big_comes_in_parts(switched: ServedPdu) -> None:
    for outlet in switched.pdu.settings.outlets:
        outlet.link = "x" * 200
    with closing(Agent(Connection(**switched.options()))) as agent:
        found = agent.get([LINKS.at(row) for row in range(1, 25)])
    assert found == {LINKS.at(row): "x" * 200 for row in range(1, 25)}
    assert switched.requests["get"] > 4


def test_what_is_written_in_parts_stops_where_it_is_refused(switched: ServedPdu) -> None:
    values = [(LINKS.at(row), "x" * 200) for row in range(1, 13)]
    with closing(Agent(Connection(**switched.options()))) as agent, pytest.raises(Refused) as refused:
        agent.set([*values[:6], (mib.OUTLET_CONFIG["RebootDuration"].at(1), 61), *values[6:]])
    assert refused.value.oid == mib.OUTLET_CONFIG["RebootDuration"].at(1)
    written = [
        outlet.number for outlet in switched.pdu.model.outlets if switched.pdu.settings.outlets[outlet.number - 1].link
    ]
    assert written == [1, 2, 3, 4, 5]  # what went into requests before the one that was refused


def test_a_lost_answer_is_asked_for_again(lossy: Lossy) -> None:
    lossy.loses = lambda passed: len(passed) <= 2
    with closing(Agent(Connection(**options(lossy.port)))) as agent:
        assert agent.get([NAME]) == {NAME: "pdu1"}
    assert lossy.passed == ["get"] * 3


def test_what_must_not_be_done_twice_is_not_sent_twice(switched: ServedPdu, lossy: Lossy) -> None:
    lossy.loses = lambda passed: True
    with closing(Agent(Connection(**options(lossy.port)))) as agent, pytest.raises(PduError) as error:
        agent.set([(mib.OUTLET_CONTROL["Command"].at(1), 2)], once=True)
    assert error.value.lost
    assert "did not answer within 0.3 seconds" in error.value.sentence
    assert switched.requests["set"] == 1
    assert not switched.pdu.is_on(1)


def turn_off(port: int) -> dict[str, Any]:
    """Have the module turn off outlet 1."""
    config = {"outlets": [{"number": 1, "state": "off"}]}
    return perform(PDU_TASK, **options(port), config=config, wait_timeout=5.0)


def test_a_command_whose_answer_was_lost_shows_in_the_outlet(switched: ServedPdu, lossy: Lossy) -> None:
    lossy.loses = lambda passed: passed[-1] == "set"
    result = turn_off(lossy.port)
    assert (result.get("failed"), result["changed"]) == (None, True), result
    assert switched.requests["set"] == 1


def test_a_pdu_that_falls_silent_after_a_command(switched: ServedPdu, lossy: Lossy) -> None:
    lossy.loses = lambda passed: "set" in passed
    result = turn_off(lossy.port)
    assert result["failed"]
    assert result["msg"] == (
        f"Whether pdu1 (AP8953 at {HOST}:{lossy.port}) has turning off of outlet 1 is not known: look at it with state "
        f"gathered. {HOST}:{lossy.port} did not answer within 0.9 seconds: check that it is up, host and port, and "
        "community."
    )
