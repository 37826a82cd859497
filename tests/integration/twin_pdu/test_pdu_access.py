# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is let in by the agent of a PDU, and who is not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from pdu_agents import AUTH_KEY, PRIV_KEY, READER, READS, WITH_V2C, WRITER, WRITES, Agents
from pysnmp.proto.rfc1902 import OctetString
from snmp_manager import AES256, SHA256, Manager, community, user

from openipu.twin.pdu.errors import Status

NAME = mib.DEVICE_CONFIG["Name"].at(1)
READER_KEYS = {"authProtocol": SHA256, "privProtocol": AES256}


def test_a_user_with_both_keys_reads_and_writes(agents: Agents) -> None:
    with Manager(agents.pdu().port, user()) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
        assert manager.set((NAME, OctetString("left"))).status == 0
        assert bytes(manager.get(NAME).values[0][1]) == b"left"


def test_a_user_who_may_not_write_reads(agents: Agents) -> None:
    with Manager(agents.pdu().port, user(READER, **READER_KEYS)) as manager:
        answer = manager.set((NAME, OctetString("left")))
        assert (answer.status, answer.index) == (Status.NO_ACCESS, 1)
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"


@pytest.mark.parametrize("keys", [{"priv_key": None}, {"auth_key": None, "priv_key": None}], ids=["auth", "none"])
def test_a_lower_level_than_both_keys_gets_nothing(agents: Agents, keys: dict[str, None]) -> None:
    served = agents.pdu()
    with Manager(served.port, user(**keys)) as manager:
        for answer in (manager.get(NAME), manager.get_next(NAME), manager.set((NAME, OctetString("left")))):
            assert (answer.trouble, answer.values) == ("Unsupported SNMP security level", [])
    assert not served.requests
    assert served.pdu.settings.name == "pdu1"


@pytest.mark.parametrize(
    ("who", "trouble"),
    [
        (user("nobody"), "Unknown USM user"),
        (user(auth_key=AUTH_KEY + "x"), "Wrong SNMP PDU digest"),
        (user(authProtocol=SHA256), "Wrong SNMP PDU digest"),
    ],
    ids=["user", "auth-key", "auth-protocol"],
)
def test_who_is_not_known_is_told_so(agents: Agents, who: Any, trouble: str) -> None:
    with Manager(agents.pdu().port, who) as manager:
        assert manager.get(NAME).trouble == trouble


def test_what_cannot_be_decrypted_is_told(agents: Agents) -> None:
    served = agents.pdu()
    with Manager(served.port, user(priv_key=PRIV_KEY + "x")) as manager:
        assert manager.get(NAME).trouble == "Ciphering services not available or ciphertext is broken"
    assert not served.requests


def test_there_is_no_context_but_the_one_without_a_name(agents: Agents) -> None:
    with Manager(agents.pdu().port, user(), context="bridge1") as manager:
        assert manager.get(NAME).status == Status.NO_ACCESS


def test_communities_count_only_where_there_are_any(agents: Agents) -> None:
    served = agents.pdu()
    for version in (0, 1):
        with Manager(served.port, community(READS, version), timeout=0.3) as manager:
            assert "before timeout" in manager.get(NAME).trouble
    assert not served.requests


@pytest.mark.parametrize("version", [0, 1], ids=["v1", "v2c"])
def test_communities_read_and_write(agents: Agents, version: int) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    with Manager(served.port, community(READS, version)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
        # RFC 3584, 4.4: SNMPv1 has no word for it but that there is no such name.
        assert manager.set((NAME, OctetString("left"))).status == (2 if version == 0 else Status.NO_ACCESS)
    with Manager(served.port, community(WRITES, version)) as manager:
        assert manager.set((NAME, OctetString("left"))).status == 0
        assert bytes(manager.get(NAME).values[0][1]) == b"left"
    with Manager(served.port, community("public", version), timeout=0.3) as manager:
        assert "before timeout" in manager.get(NAME).trouble


def test_keys_that_were_spoiled_and_mended(agents: Agents) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    served.fault(wrong_credentials=True)
    with Manager(served.port, user()) as manager:
        assert manager.get(NAME).trouble == "Wrong SNMP PDU digest"
    with Manager(served.port, community(READS), timeout=0.3) as manager:
        assert "before timeout" in manager.get(NAME).trouble
    served.fault()
    with Manager(served.port, user(WRITER)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
    with Manager(served.port, community(READS)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
