# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules say of an agent that is no PDU, or answers what no agent would: sentences, and never a traceback."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.infos import PDU_INFO
from pdu_agents import HOST
from pdu_perform import perform
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto.api import v2c

Answer = Callable[[bytes], bytes]
V2C = {"version": "v2c", "community": "of-nobody"}
V3 = {"username": "nobody", "auth_key": "12345678", "priv_key": "12345678"}
SILENT = "did not answer within 0.2 seconds"
NO_PDU = "has no rPDU2 tables, so it is no rack PDU of APC's second generation or hides them: check host and username."


@contextmanager
def stranger(answer: Answer) -> Iterator[int]:
    """A port that answers every datagram so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((HOST, 0))

        def work() -> None:
            while (received := listener.recvfrom(4000))[0]:
                listener.sendto(answer(received[0]), received[1])

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", listener.getsockname())
            thread.join(10)


def values(value: Callable[[tuple[int, ...]], Any], **more: Any) -> Answer:
    """Answers a request with a value for each name that it has, and maybe a wrong request id or an error."""

    def answer(request: bytes) -> bytes:
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

    return answer


def counts(oid: tuple[int, ...]) -> Any:
    """One PDU, with more phases than a computer has memory for."""
    return v2c.Integer32(1 if oid == mib.TABLE_SIZES["IdentTableSize"].at() else 2**31 - 1)


def ask(port: int, **options: Any) -> dict[str, Any]:
    """Run `pdu_info`."""
    given = {"host": HOST, "port": port, "timeout": 0.2, "retries": 0, **options}
    return perform(PDU_INFO, **given)


@pytest.mark.parametrize(
    ("answer", "options", "sentence"),
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
        (values(counts), V2C, "says that it has 2147483647 phases, which no rack PDU has: check host."),
        (values(lambda oid: v2c.Null(""), status=5, index=99), V2C, "it gives no reason."),
    ],
)
def test_a_stranger(answer: Answer, options: dict[str, str], sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "asyncio"), stranger(answer) as port:
        result = ask(port, **options)
    assert result["failed"]
    assert result["msg"].startswith(f"{HOST}:{port} ")
    assert sentence in result["msg"]
    assert not [record for record in caplog.records if record.exc_info]


def test_texts_that_are_numbers_are_left_out() -> None:
    with stranger(values(lambda oid: v2c.Integer32(1))) as port:
        result = ask(port, **V2C)
    assert "failed" not in result
    assert (result["pdu"]["name"], result["device"]["power"]) == ("", 0.01)
    assert "model" not in result["pdu"]
