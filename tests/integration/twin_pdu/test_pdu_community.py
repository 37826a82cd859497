# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs of a rack twin with and without a community of SNMPv1 and v2c."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pysnmp.proto.rfc1902 import OctetString

from openipu.shared.pdu import mib
from openipu.twin.devices.rack_pdu import PduDevice
from openipu.twin.devices.snmp.errors import Status
from tests.event_loop import LoopThread
from tests.integration.pdu_agents import HOST, READS
from tests.integration.twin_pdu.snmp_manager import Manager, community
from tests.ports import free_port

NAME = mib.DEVICE_CONFIG["Name"].at(1)


class NoLoads:
    """Outlets without devices."""

    def watts(self, pdu: str, outlet: int) -> float:
        return 0.0

    def outlet_switched(self, pdu: str, outlet: int, on: bool) -> None:
        """Ignore a switched outlet."""


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[int]:
    """Run the PDU of a rack, and yield its port."""
    port = free_port(kind=socket.SOCK_DGRAM)
    loop = LoopThread()
    try:
        device = PduDevice("pdu1", "AP8886", HOST, port, folder, NoLoads(), **settings)
        loop.run(device.start())
        try:
            yield port
        finally:
            loop.run(device.stop())
    finally:
        loop.stop()


@pytest.mark.parametrize("version", [0, 1], ids=["v1", "v2c"])
def test_a_configured_community_reads_only(tmp_path: Path, version: int) -> None:
    with running(tmp_path, community=READS) as port, Manager(port, community(READS, version)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
        # RFC 3584, 4.4: SNMPv1 can only report noSuchName.
        assert manager.set((NAME, OctetString("left"))).status == (2 if version == 0 else Status.NO_ACCESS)
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"


def test_a_pdu_without_a_community_accepts_snmpv3_only(tmp_path: Path) -> None:
    with running(tmp_path) as port, Manager(port, community(READS), timeout=0.3) as manager:
        assert "before timeout" in manager.get(NAME).error
