# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain SNMP requests by pysnmp, with nothing of ours between a test and an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Oid
from pdu_agents import AUTH_KEY, HOST, PRIV_KEY, WRITER
from pysnmp.hlapi.v3arch import asyncio as snmp
from pysnmp.proto.rfc1905 import EndOfMibView

SHA, SHA256 = snmp.USM_AUTH_HMAC96_SHA, snmp.USM_AUTH_HMAC192_SHA256
AES, AES256 = snmp.USM_PRIV_CFB128_AES, snmp.USM_PRIV_CFB256_AES_BLUMENTHAL


@dataclass(frozen=True)
class Answer:
    """``trouble`` is what pysnmp says of a request that had no answer or a report; ``status`` is the agent's."""

    trouble: str
    status: int
    index: int
    values: list[tuple[Oid, Any]]


def user(name: str = WRITER, auth_key: str | None = AUTH_KEY, priv_key: str | None = PRIV_KEY, **more: Any) -> Any:
    """An SNMPv3 user; without keys at a lower level."""
    if auth_key is not None:
        more = {"authKey": auth_key, "authProtocol": SHA, **more}
    if priv_key is not None:
        more = {"privKey": priv_key, "privProtocol": AES, **more}
    return snmp.UsmUserData(name, **more)


def community(name: str, version: int = 1) -> Any:
    """A community of SNMPv2c, or with 0 of SNMPv1."""
    return snmp.CommunityData(name, mpModel=version)


class Manager:
    """Asks one agent; each object has an engine of its own. Without an answer it waits ``timeout`` s, once."""

    def __init__(self, port: int, who: Any, timeout: float = 5.0, context: str = "") -> None:
        self._port = port
        self._who = who
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

    def get(self, *oids: Oid) -> Answer:
        return self._ask(snmp.get_cmd, [], [(oid, snmp.Null("")) for oid in oids])

    def get_next(self, *oids: Oid) -> Answer:
        return self._ask(snmp.next_cmd, [], [(oid, snmp.Null("")) for oid in oids])

    def get_bulk(self, non_repeaters: int, repetitions: int, *oids: Oid) -> Answer:
        return self._ask(snmp.bulk_cmd, [non_repeaters, repetitions], [(oid, snmp.Null("")) for oid in oids])

    def set(self, *values: tuple[Oid, Any]) -> Answer:
        return self._ask(snmp.set_cmd, [], values)

    def walk(self, start: Oid = (1, 3), repetitions: int = 25) -> list[tuple[Oid, Any]]:
        """All that there is from here on, by GETBULK."""
        found: list[tuple[Oid, Any]] = []
        while True:
            answer = self.get_bulk(0, repetitions, found[-1][0] if found else start)
            assert (answer.trouble, answer.status) == ("", 0), answer
            for oid, value in answer.values:
                if isinstance(value, EndOfMibView):
                    return found
                found.append((oid, value))

    def _ask(self, command: Any, options: list[int], values: Iterable[tuple[Oid, Any]]) -> Answer:
        async def ask() -> Any:
            target = await snmp.UdpTransportTarget.create((HOST, self._port), timeout=self._timeout, retries=0)
            variables = [(snmp.ObjectIdentifier(oid), value) for oid, value in values]
            return await command(self._engine, self._who, target, self._context, *options, *variables, lookupMib=False)

        trouble, status, index, answer = self._runner.run(ask())
        return Answer(str(trouble or ""), int(status), int(index), [(tuple(oid), value) for oid, value in answer])
