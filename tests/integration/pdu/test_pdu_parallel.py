# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of two plays that configure the same PDU at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK
from ansible_collections.openipu.pod.plugins.module_utils.pdu.writer import Writer

from tests.integration.pdu.pdu_perform import perform
from tests.integration.pdu_agents import Agents

CONFIG: dict[str, Any] = {
    "name": "left",
    "overload": 7,
    "trap_receivers": [{"address": "10.1.3.101", "community": "tr4p-for-tests"}],
    "outlets": [{"number": 3, "state": "off", "name": "server3"}],
}


def test_both_make_the_same_changes(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are set and not created, so nothing is rejected: both tasks write, and both report it."""
    write, barrier = Writer.__call__, threading.Barrier(2)

    def write_together(writer: Writer, *arguments: Any) -> Any:
        barrier.wait(30)
        return write(writer, *arguments)

    monkeypatch.setattr(Writer, "__call__", write_together)
    served = agents.pdu(model="AP8953")
    options = served.options(config=CONFIG)
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(perform, PDU_TASK, **options) for _ in range(2)]
        results = [future.result(60) for future in futures]
    assert [(result.get("msg"), result["changed"]) for result in results] == [(None, True)] * 2
    kept = served.pdu.settings
    assert (kept.name, kept.device.over, kept.outlets[2].name) == ("left", 70, "server3")
    assert [receiver.address for receiver in kept.receivers].count("10.1.3.101") == 1
    assert not served.pdu.record.on[2]
    monkeypatch.undo()
    assert not perform(PDU_TASK, **options)["changed"]
