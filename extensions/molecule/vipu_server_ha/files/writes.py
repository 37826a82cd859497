# SPDX-License-Identifier: GPL-3.0-or-later
"""Client that changes a record until SIGTERM, and prints what it measured.

Arguments: the configuration file of an administrator with all controllers, and a file for the process id, which exists
after the first acknowledged change.

The JSON on standard output has ``acknowledged``, the number of acknowledged changes, and ``failures``, the messages of
the others. ``longest`` is the time between two acknowledged changes in seconds. ``kept``: no acknowledged one is lost.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from openipu.shared.vipu.client import Client, VipuError
from openipu.shared.vipu.contract import admin
from openipu.vipu.cli.settings import read_connection

AGENT = "written"
PAUSE = 0.1  # seconds between two changes
LIMIT = 1200.0  # seconds until it ends by itself


def main(configuration: Path, started: Path) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    acknowledged, failures, times = 0, [], [time.monotonic()]
    number, limit = 0, time.monotonic() + LIMIT
    with Client(read_connection(configuration)) as client:
        while not ended.wait(PAUSE) and time.monotonic() < limit:
            number += 1
            agent = admin.AgentSpec(
                id=AGENT,
                host="192.0.2.1",
                service=admin.SERVICE_STATE_OUT_OF_SERVICE,
                service_reason=str(number),
            )
            try:
                client.call(client.admin.Apply, admin.ApplyRequest(agents=[agent]))
            except VipuError as error:
                failures.append(str(error))
                continue
            acknowledged = number
            times.append(time.monotonic())
            if not started.exists():
                started.write_text(str(os.getpid()))
        agents = client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents
        (found,) = (int(each.spec.service_reason) for each in agents if each.spec.id == AGENT)
        removal = admin.ObjectRef(kind=admin.KIND_AGENT, id=AGENT)
        client.call(client.admin.Apply, admin.ApplyRequest(removals=[removal]))
    pauses = [end - begin for begin, end in itertools.pairwise(times)]
    result = {
        "acknowledged": len(pauses),
        "failures": failures,
        "longest": round(max(pauses), 2),
        # Changes without a response may have been made.
        "kept": acknowledged <= found <= number,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
