# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin that records the Configure calls of former leaders, whose agents can execute them.

Arguments: the file of the records, ``reject`` or ``accept``, and those of ``openipu.twin.rack.main``. With ``accept``,
the agents do not compare epochs, to prove that the checker notices the absence of that defence.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import grpc

from openipu.twin.rack.main import main
from openipu.vipu.agent import ownership
from openipu.vipu.agent.guard import AgentGuard
from openipu.vipu.agent_api.identity import Controller


def record(file: Path) -> None:
    """Add a line with the epoch to a file, for each finished Configure call with an earlier epoch than the owner's."""
    service = AgentGuard.service

    def recorded(self: AgentGuard, details: Any) -> Any:
        handler = service(self, details)
        if not details.method.endswith("/Configure"):
            return handler

        async def configure(requests: Any, context: Any) -> Any:
            caller, owner = ownership.caller(context), self._ownership.owner
            try:
                return await handler.stream_unary(requests, context)
            finally:
                if caller and owner and caller.epoch < owner.epoch:
                    with file.open("a") as late:
                        late.write(f"{caller.epoch}\n")

        return grpc.stream_unary_rpc_method_handler(configure, response_serializer=handler.response_serializer)

    AgentGuard.service = recorded  # type: ignore[method-assign]


def accept() -> None:
    """Make agents accept all epochs."""
    rejection = ownership.rejection

    def of_others(owner: Controller | None, caller: Controller | None) -> str:
        if owner and caller:
            caller = caller._replace(epoch=max(owner.epoch, caller.epoch))
        return rejection(owner, caller)

    ownership.rejection = of_others


if __name__ == "__main__":
    record(Path(sys.argv.pop(1)))
    if sys.argv.pop(1) == "accept":
        accept()
    main()
