# SPDX-License-Identifier: GPL-3.0-or-later
"""Encryption salts of SNMP engines in workers that Ansible forks from one process."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from ansible_collections.openipu.pod.plugins.module_utils.pdu import session
from pysnmp.proto.secmod.rfc3414.service import SnmpUSMSecurityModel


def salts(_number: int) -> dict[tuple[int, ...], int]:
    """Return the salts of a new engine in this process, by encryption protocol."""
    session._engine()
    services = SnmpUSMSecurityModel.PRIV_SERVICES
    return {kind: service.local_int for kind, service in services.items() if hasattr(service, "local_int")}


def test_every_worker_starts_with_a_different_salt() -> None:
    """Equal salts would encrypt different requests to one PDU with the same key stream."""
    found = []
    session.load_mibs()  # as in the process from which Ansible forks its workers
    for number in range(4):  # one pool each: a separate process, forked from this one
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            found.append(pool.submit(salts, number).result(30))
    assert session._prepared, "the workers used copies"
    assert found[0]
    for kind in found[0]:
        assert len({each[kind] for each in found}) == len(found), kind
