# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepted and rejected credentials of the agent of a PDU."""

from __future__ import annotations

from typing import Any

import pytest
from pysnmp.proto.rfc1902 import OctetString

from openipu.shared.pdu import mib
from openipu.twin.devices.snmp.errors import Status
from tests.integration.pdu_agents import AUTH_KEY, PRIV_KEY, READER, READS, WITH_V2C, WRITER, WRITES, Agents
from tests.integration.twin_pdu.snmp_manager import AES256, SHA256, Manager, community, user

NAME = mib.DEVICE_CONFIG["Name"].at(1)
READER_KEYS = {"authProtocol": SHA256, "privProtocol": AES256}


def test_a_user_with_both_keys_reads_and_writes(agents: Agents) -> None:
    with Manager(agents.pdu().port, user()) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
        assert manager.set((NAME, OctetString("left"))).status == 0
        assert bytes(manager.get(NAME).values[0][1]) == b"left"


def test_a_read_only_user_cannot_write(agents: Agents) -> None:
    with Manager(agents.pdu().port, user(READER, **READER_KEYS)) as manager:
        response = manager.set((NAME, OctetString("left")))
        assert (response.status, response.index) == (Status.NO_ACCESS, 1)
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"


@pytest.mark.parametrize("keys", [{"priv_key": None}, {"auth_key": None, "priv_key": None}], ids=["auth", "none"])
def test_a_lower_security_level_is_rejected(agents: Agents, keys: dict[str, None]) -> None:
    served = agents.pdu()
    with Manager(served.port, user(**keys)) as manager:
        for response in (manager.get(NAME), manager.get_next(NAME), manager.set((NAME, OctetString("left")))):
            assert (response.error, response.values) == ("Unsupported SNMP security level", [])
    assert not served.requests
    assert served.pdu.settings.name == "pdu1"


@pytest.mark.parametrize(
    ("credentials", "error"),
    [
        (user("unknown"), "Unknown USM user"),
        (user(auth_key=AUTH_KEY + "x"), "Wrong SNMP PDU digest"),
        (user(authProtocol=SHA256), "Wrong SNMP PDU digest"),
    ],
    ids=["user", "auth-key", "auth-protocol"],
)
def test_invalid_credentials_are_reported(agents: Agents, credentials: Any, error: str) -> None:
    with Manager(agents.pdu().port, credentials) as manager:
        assert manager.get(NAME).error == error


def test_a_request_that_cannot_be_decrypted_is_reported(agents: Agents) -> None:
    served = agents.pdu()
    with Manager(served.port, user(priv_key=PRIV_KEY + "x")) as manager:
        assert manager.get(NAME).error == "Ciphering services not available or ciphertext is broken"
    assert not served.requests


def test_only_the_default_context_exists(agents: Agents) -> None:
    with Manager(agents.pdu().port, user(), context="bridge1") as manager:
        assert manager.get(NAME).status == Status.NO_ACCESS


def test_communities_are_rejected_unless_configured(agents: Agents) -> None:
    served = agents.pdu()
    for version in (0, 1):
        with Manager(served.port, community(READS, version), timeout=0.3) as manager:
            assert "before timeout" in manager.get(NAME).error
    assert not served.requests


@pytest.mark.parametrize("version", [0, 1], ids=["v1", "v2c"])
def test_communities_read_and_write(agents: Agents, version: int) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    with Manager(served.port, community(READS, version)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
        # RFC 3584, 4.4: SNMPv1 can only report noSuchName.
        assert manager.set((NAME, OctetString("left"))).status == (2 if version == 0 else Status.NO_ACCESS)
    with Manager(served.port, community(WRITES, version)) as manager:
        assert manager.set((NAME, OctetString("left"))).status == 0
        assert bytes(manager.get(NAME).values[0][1]) == b"left"
    with Manager(served.port, community("public", version), timeout=0.3) as manager:
        assert "before timeout" in manager.get(NAME).error


def test_the_credential_fault_and_its_end(agents: Agents) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    served.fault(wrong_credentials=True)
    with Manager(served.port, user()) as manager:
        assert manager.get(NAME).error == "Wrong SNMP PDU digest"
    with Manager(served.port, community(READS), timeout=0.3) as manager:
        assert "before timeout" in manager.get(NAME).error
    served.fault()
    with Manager(served.port, user(WRITER)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
    with Manager(served.port, community(READS)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
