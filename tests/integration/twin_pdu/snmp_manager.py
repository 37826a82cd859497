# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP manager on pysnmp, without our own client code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pysnmp.hlapi.v3arch import asyncio as snmp
from pysnmp.proto.rfc1905 import EndOfMibView

from openipu.shared.pdu.smi import Oid
from tests.integration.pdu_agents import AUTH_KEY, HOST, PRIV_KEY, WRITER

SHA, SHA256 = snmp.USM_AUTH_HMAC96_SHA, snmp.USM_AUTH_HMAC192_SHA256
AES, AES256 = snmp.USM_PRIV_CFB128_AES, snmp.USM_PRIV_CFB256_AES_BLUMENTHAL


@dataclass(frozen=True)
class Response:
    """Response to a request. ``error`` is pysnmp's error for a report or a timeout; ``status`` is the agent's."""

    error: str
    status: int
    index: int
    values: list[tuple[Oid, Any]]


def user(name: str = WRITER, auth_key: str | None = AUTH_KEY, priv_key: str | None = PRIV_KEY, **more: Any) -> Any:
    """Return an SNMPv3 user; each missing key lowers the security level."""
    if auth_key is not None:
        more = {"authKey": auth_key, "authProtocol": SHA, **more}
    if priv_key is not None:
        more = {"privKey": priv_key, "privProtocol": AES, **more}
    return snmp.UsmUserData(name, **more)


def community(name: str, version: int = 1) -> Any:
    """Return a community of SNMPv2c, or of SNMPv1 with version 0."""
    return snmp.CommunityData(name, mpModel=version)


class Manager:
    """Manager of one agent with its own engine. It waits ``timeout`` s for a response and does not retry."""

    def __init__(self, port: int, credentials: Any, timeout: float = 5.0, context: str = "", host: str = HOST) -> None:
        self._host = host
        self._port = port
        self._credentials = credentials
        self._timeout = timeout
        self._context = snmp.ContextData(contextName=context.encode())
        self._runner = asyncio.Runner()
        self._engine = snmp.SnmpEngine()

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_error: object) -> None:
        async def close() -> None:
            self._engine.close_dispatcher()

        self._runner.run(close())
        self._runner.close()

    def get(self, *oids: Oid) -> Response:
        return self._request(snmp.get_cmd, [], [(oid, snmp.Null("")) for oid in oids])

    def get_next(self, *oids: Oid) -> Response:
        return self._request(snmp.next_cmd, [], [(oid, snmp.Null("")) for oid in oids])

    def get_bulk(self, non_repeaters: int, repetitions: int, *oids: Oid) -> Response:
        return self._request(snmp.bulk_cmd, [non_repeaters, repetitions], [(oid, snmp.Null("")) for oid in oids])

    def set(self, *values: tuple[Oid, Any]) -> Response:
        return self._request(snmp.set_cmd, [], values)

    def walk(self, start: Oid = (1, 3), repetitions: int = 25) -> list[tuple[Oid, Any]]:
        """Return all objects after ``start``, by GETBULK."""
        found: list[tuple[Oid, Any]] = []
        while True:
            response = self.get_bulk(0, repetitions, found[-1][0] if found else start)
            assert (response.error, response.status) == ("", 0), response
            for oid, value in response.values:
                if isinstance(value, EndOfMibView):
                    return found
                found.append((oid, value))

    def _request(self, command: Any, options: list[int], values: Iterable[tuple[Oid, Any]]) -> Response:
        async def send() -> Any:
            target = await snmp.UdpTransportTarget.create((self._host, self._port), timeout=self._timeout, retries=0)
            variables = [(snmp.ObjectIdentifier(oid), value) for oid, value in values]
            return await command(
                self._engine, self._credentials, target, self._context, *options, *variables, lookupMib=False
            )

        error, status, index, values = self._runner.run(send())
        return Response(str(error or ""), int(status), int(index), [(tuple(oid), value) for oid, value in values])
