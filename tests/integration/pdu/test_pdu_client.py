# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP client of the modules: number of requests, and lost responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.client import PduClient, RequestRejected
from ansible_collections.openipu.pod.plugins.module_utils.pdu.info_task import PDU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.pdu.session import Connection, PduError
from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK
from pyasn1.codec.ber import decoder
from pysnmp.proto.api import v2c

from tests.integration.pdu.pdu_perform import perform
from tests.integration.pdu_agents import HOST, WITH_V2C, WRITES, Agents, ServedPdu

NAME = mib.DEVICE_CONFIG["Name"].at(1)
LINKS = mib.OUTLET_CONFIG["ExternalLink"]


class LossyProxy:
    """Proxy to a PDU that drops responses.

    ``drops`` returns whether to drop a response, from the kinds of the requests so far: get or set.
    """

    def __init__(self, port: int) -> None:
        self.drops: Callable[[list[str]], bool] = lambda kinds: False
        self.kinds: list[str] = []
        self._agent = (HOST, port)
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind((HOST, 0))
        self.port = self._front.getsockname()[1]
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def _forward(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
            back.settimeout(10)
            while True:
                request, manager = self._front.recvfrom(2000)
                if not request:
                    return
                back.sendto(request, self._agent)
                response = back.recv(2000)
                self.kinds.append(_kind(request))
                if not self.drops(self.kinds):
                    self._front.sendto(response, manager)

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
def lossy(switched: ServedPdu) -> Iterator[LossyProxy]:
    with closing(LossyProxy(switched.port)) as lossy:
        yield lossy


def options(port: int, **more: Any) -> dict[str, Any]:
    """Return connection options with one datagram per request."""
    return {"host": HOST, "port": port, "version": "v2c", "community": WRITES, "timeout": 0.3, "retries": 2, **more}


def test_many_variables_share_a_request(switched: ServedPdu) -> None:
    with closing(PduClient(Connection(**switched.options()))) as client:
        oids = [column.at(row) for column in mib.OUTLET_STATUS.values() for row in range(1, 25)]
        found = client.get(oids)
        assert list(found) == oids
        assert switched.requests == {"get": -(-len(oids) // 40)}
        client.set([(LINKS.at(row), f"https://rack1/{row}") for row in range(1, 25)])
    assert switched.requests["set"] == 1
    assert [outlet.link for outlet in switched.pdu.settings.outlets] == [f"https://rack1/{row}" for row in range(1, 25)]


def test_the_number_of_requests(agents: Agents) -> None:
    metered = agents.pdu()
    assert not perform(PDU_TASK, **metered.options(state="gathered")).get("failed")
    assert metered.requests == {"get": 3}
    assert not perform(PDU_INFO, **metered.options()).get("failed")
    assert metered.requests == {"get": 6}
    config = {"name": "left", "phases": [{"near_overload": 20}], "banks": [{"near_overload": 12}]}
    assert perform(PDU_TASK, **metered.options(config=config))["changed"]
    assert metered.requests == {"get": 10, "set": 1}  # the last one reads back


def test_a_response_that_is_too_big_is_split(switched: ServedPdu) -> None:
    for outlet in switched.pdu.settings.outlets:
        outlet.link = "x" * 200
    with closing(PduClient(Connection(**switched.options()))) as client:
        found = client.get([LINKS.at(row) for row in range(1, 25)])
    assert found == {LINKS.at(row): "x" * 200 for row in range(1, 25)}
    assert switched.requests["get"] > 4


def test_split_writes_stop_at_the_first_error(switched: ServedPdu) -> None:
    values = [(LINKS.at(row), "x" * 200) for row in range(1, 13)]
    with closing(PduClient(Connection(**switched.options()))) as client, pytest.raises(RequestRejected) as rejected:
        client.set([*values[:6], (mib.OUTLET_CONFIG["RebootDuration"].at(1), 61), *values[6:]])
    assert rejected.value.oid == mib.OUTLET_CONFIG["RebootDuration"].at(1)
    written = [
        outlet.number for outlet in switched.pdu.model.outlets if switched.pdu.settings.outlets[outlet.number - 1].link
    ]
    assert written == [1, 2, 3, 4, 5]  # the requests before the rejected one


def test_a_lost_response_is_retried(lossy: LossyProxy) -> None:
    lossy.drops = lambda kinds: len(kinds) <= 2
    with closing(PduClient(Connection(**options(lossy.port)))) as client:
        assert client.get([NAME]) == {NAME: "pdu1"}
    assert lossy.kinds == ["get"] * 3


def test_a_request_with_once_is_not_retried(switched: ServedPdu, lossy: LossyProxy) -> None:
    lossy.drops = lambda kinds: True
    with closing(PduClient(Connection(**options(lossy.port)))) as client, pytest.raises(PduError) as error:
        client.set([(mib.OUTLET_CONTROL["Command"].at(1), 2)], once=True)
    assert error.value.lost
    assert "no response within 0.3 s" in error.value.message
    assert switched.requests["set"] == 1
    assert not switched.pdu.outlets.is_on(1)


def turn_off(port: int) -> dict[str, Any]:
    """Turn off outlet 1 with the module."""
    config = {"outlets": [{"number": 1, "state": "off"}]}
    return perform(PDU_TASK, **options(port), config=config, wait_timeout=5.0)


def test_a_command_with_a_lost_response_is_verified_at_the_outlet(switched: ServedPdu, lossy: LossyProxy) -> None:
    lossy.drops = lambda kinds: kinds[-1] == "set"
    result = turn_off(lossy.port)
    assert (result.get("failed"), result["changed"]) == (None, True), result
    assert switched.requests["set"] == 1


def test_a_pdu_that_stops_responding_after_a_command(switched: ServedPdu, lossy: LossyProxy) -> None:
    lossy.drops = lambda kinds: "set" in kinds
    result = turn_off(lossy.port)
    assert result["failed"]
    assert result["msg"] == (
        f"Cannot verify state off of outlet 1 on pdu1 (AP8953 at {HOST}:{lossy.port}). Cannot reach {HOST}:"
        f"{lossy.port}: no response within 0.9 s. Check that it is up, host and port, and the community. Then check "
        "the PDU with state gathered."
    )
