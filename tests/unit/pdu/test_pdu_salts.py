# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SNMP engine encrypts with, in workers that Ansible forks of one process."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from ansible_collections.openipu.pod.plugins.module_utils.pdu import client
from pysnmp.proto.secmod.rfc3414.service import SnmpUSMSecurityModel


def salts(_number: int) -> dict[tuple[int, ...], int]:
    """Of a new engine in this process, by what it encrypts with."""
    client._engine()
    services = SnmpUSMSecurityModel.PRIV_SERVICES
    return {kind: service.local_int for kind, service in services.items() if hasattr(service, "local_int")}


def test_no_two_workers_begin_with_the_same_salt() -> None:
    """Else they would encrypt different requests to one PDU with the same key stream."""
    found = []
    for number in range(4):  # a pool each, so that each is another process forked from this one
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            found.append(pool.submit(salts, number).result(30))
    assert found[0]
    for kind in found[0]:
        assert len({each[kind] for each in found}) == len(found), kind
