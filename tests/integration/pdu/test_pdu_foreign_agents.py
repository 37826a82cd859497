# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for agents that are no PDUs or send invalid responses: never a traceback."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.info_task import PDU_INFO
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto.api import v2c

from tests.integration.pdu.pdu_perform import perform
from tests.integration.pdu_agents import HOST

Respond = Callable[[bytes], bytes]
V2C = {"version": "v2c", "community": "for-tests"}
V3 = {"username": "unknown", "auth_key": "12345678", "priv_key": "12345678"}
SILENT = "no response within 0.2 s"
NO_PDU = (
    "as a PDU: it has no rPDU2 tables. It is not an APC rack PDU of the second generation, or the user has no access "
    "to them. Check host and username."
)


@contextmanager
def foreign_agent(respond: Respond) -> Iterator[int]:
    """Run an agent that responds to every datagram with a function; yield its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((HOST, 0))

        def work() -> None:
            while (received := listener.recvfrom(4000))[0]:
                listener.sendto(respond(received[0]), received[1])

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", listener.getsockname())
            thread.join(10)


def values(value: Callable[[tuple[int, ...]], Any], **more: Any) -> Respond:
    """Return a function that responds with a value for each name, and optionally a wrong request id or an error."""

    def respond(request: bytes) -> bytes:
        message, _rest = decoder.decode(request, asn1Spec=v2c.Message())
        pdu = v2c.apiMessage.get_pdu(message)
        response = v2c.apiPDU.get_response(pdu)
        pairs = [(oid, value(tuple(oid))) for oid, _null in v2c.apiPDU.get_varbinds(pdu)]
        v2c.apiPDU.set_varbinds(response, pairs[: more.get("count")])
        v2c.apiPDU.set_error_status(response, more.get("status", 0))
        v2c.apiPDU.set_error_index(response, more.get("index", 0))
        v2c.apiPDU.set_request_id(response, v2c.apiPDU.get_request_id(pdu) + more.get("off", 0))
        v2c.apiMessage.set_pdu(message, response)
        return bytes(encoder.encode(message))

    return respond


def counts(oid: tuple[int, ...]) -> Any:
    """Return the sizes of one PDU with an impossible number of phases."""
    return v2c.Integer32(1 if oid == mib.TABLE_SIZES["IdentTableSize"].at() else 2**31 - 1)


def run_info(port: int, **options: Any) -> dict[str, Any]:
    """Run `pdu_info`."""
    given = {"host": HOST, "port": port, "timeout": 0.2, "retries": 0, **options}
    return perform(PDU_INFO, **given)


@pytest.mark.parametrize(
    ("respond", "options", "message"),
    [
        (lambda request: b"garbage", V2C, SILENT),
        (lambda request: b"garbage", V3, SILENT),
        (lambda request: b"\xff" * 1000, V3, SILENT),
        (lambda request: request[:-3], V2C, SILENT),
        (lambda request: request, V2C, SILENT),
        (values(lambda oid: v2c.Integer32(1), off=1), V2C, SILENT),
        (values(lambda oid: v2c.NoSuchObject("")), V2C, NO_PDU),
        (values(lambda oid: v2c.Null("")), V2C, NO_PDU),
        (values(lambda oid: v2c.Integer32(1), count=0), V2C, NO_PDU),
        (values(lambda oid: v2c.OctetString("one")), V2C, NO_PDU),
        (values(lambda oid: v2c.ObjectIdentifier((1, 3))), V2C, NO_PDU),
        (values(counts), V2C, "it reports 2147483647 phases, more than any rack PDU has. Check host."),
        (values(lambda oid: v2c.Null(""), status=5, index=99), V2C, "the PDU reports no reason."),
    ],
)
def test_a_foreign_agent(
    respond: Respond, options: dict[str, str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "asyncio"), foreign_agent(respond) as port:
        result = run_info(port, **options)
    assert result["failed"]
    assert f"{HOST}:{port}" in result["msg"]
    assert message in result["msg"]
    assert not [record for record in caplog.records if record.exc_info]


def test_texts_of_the_wrong_type_are_omitted() -> None:
    with foreign_agent(values(lambda oid: v2c.Integer32(1))) as port:
        result = run_info(port, **V2C)
    assert "failed" not in result
    assert (result["pdu"]["name"], result["device"]["power"]) == ("", 0.01)
    assert "model" not in result["pdu"]
