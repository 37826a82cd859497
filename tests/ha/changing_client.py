# SPDX-License-Identifier: GPL-3.0-or-later
"""Load of changes, each of which must be listed once it was acknowledged."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from tests.waiting import until


class ChangingClient:
    """Client that creates agents and lists them until ``stop``, with the addresses of all controllers."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.created: list[str] = []  # acknowledged
        self.unknown: list[str] = []  # ended by a controller that stopped
        self.longest = 0.0  # seconds between two acknowledgements
        self._connection = Connection(host=",".join(addresses), timeout=60)
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._running = self._pool.submit(self._run)

    def wait(self, count: int) -> None:
        """Wait for further acknowledgements. Raises the error of a failed call."""
        enough = len(self.created) + count
        until(lambda: len(self.created) >= enough or self._running.done(), 60, "the client creates agents")

    def stop(self) -> None:
        """End the client. Raises the error of a failed call."""
        self._stopping.set()
        self._running.result(90)
        self._pool.shutdown()

    def _run(self) -> None:
        last = time.monotonic()
        with Client(self._connection) as client:
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                agent = admin.AgentSpec(id=f"a{number}", host=f"a{number}.invalid")
                try:
                    assert client.call(client.admin.Apply, admin.ApplyRequest(agents=[agent])).applied
                except VipuError as error:
                    if error.code not in ("UNAVAILABLE", "CANCELLED"):
                        raise
                    self.unknown.append(agent.id)
                    continue
                self.created.append(agent.id)
                self.longest = max(self.longest, time.monotonic() - last)
                last = time.monotonic()
                found = client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents
                assert set(self.created) <= {each.spec.id for each in found} <= {*self.created, *self.unknown}
