# SPDX-License-Identifier: GPL-3.0-or-later
"""Run-time control of a rack twin (``openipu.twin.v1.TwinService``) on a socket file of its owner."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from openipu.twin.contract import twin
from openipu.twin.faults import FaultError

if TYPE_CHECKING:
    from openipu.twin.rack import Machine, Rack


class TwinService:
    """Stops, starts and breaks machines of a running rack."""

    def __init__(self, rack: Rack) -> None:
        """See the class."""
        self._machines = rack.machines
        self._faults = rack.faults

    async def ListMachines(self, request: Any, context: Any) -> Any:  # noqa: N802
        """All machines, in the order of the cluster."""
        return twin.ListMachinesReply(
            machines=[
                twin.Machine(
                    agent_id=machine.id,
                    host=machine.server.host,
                    port=machine.server.port,
                    running=machine.server.running,
                    partition_ids=machine.hardware.partition_ids if machine.server.running else [],
                )
                for machine in self._machines.values()
            ]
        )

    async def StopMachines(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Let machines lose their power."""
        for machine in await self._chosen(request.agent_ids, context):
            await machine.stop()
        return twin.MachineReply()

    async def StartMachines(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Start machines that were stopped."""
        for machine in await self._chosen(request.agent_ids, context):
            try:
                await machine.start()
            except OSError as error:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return twin.MachineReply()

    async def MakeFaults(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Break or heal something."""
        for line in request.faults:
            try:
                await self._faults.do(line)
            except (FaultError, OSError) as error:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return twin.MakeFaultsReply()

    async def ListFaults(self, request: Any, context: Any) -> Any:  # noqa: N802
        """All that is wrong."""
        return twin.ListFaultsReply(wrong=[twin.Wrong(**asdict(item)) for item in self._faults.wrong()])

    async def _chosen(self, ids: Iterable[str], context: Any) -> list[Machine]:
        chosen = []
        for id in ids or self._machines:
            if id not in self._machines:
                await context.abort(grpc.StatusCode.NOT_FOUND, f"There is no machine {id!r} in this rack.")
            chosen.append(self._machines[id])
        return chosen


class ControlServer:
    """TwinService on a socket file, which is there as long as the service is."""

    def __init__(self, rack: Rack, path: Path) -> None:
        """See the class."""
        self._path = path
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([twin.handler("TwinService", TwinService(rack))])

    async def start(self) -> None:
        """Listen; raises OSError with a sentence when the socket cannot be had or somebody else uses it."""
        await self._remove_stale()
        before = os.umask(0o177)  # the socket is made with the mode 0600
        try:
            self._server.add_insecure_port(f"unix:{self._path.absolute()}")
        except RuntimeError:
            raise OSError(f"Cannot make the socket {self._path}: see whether its folder can be written.") from None
        finally:
            os.umask(before)
        await self._server.start()

    async def stop(self) -> None:
        """Stop listening; the socket file goes away."""
        await self._server.stop(None)

    async def _remove_stale(self) -> None:
        """Remove the socket of a rack that was killed."""
        if not self._path.is_socket():
            return
        async with grpc.aio.insecure_channel(f"unix:{self._path.absolute()}") as channel:
            try:
                await twin.stub(channel, "TwinService").ListMachines(twin.ListMachinesRequest(), timeout=2)
            except grpc.aio.AioRpcError:
                self._path.unlink(missing_ok=True)
                return
        raise OSError(f"Another rack is controlled by {self._path}; stop that one first.")
