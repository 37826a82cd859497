# SPDX-License-Identifier: GPL-3.0-or-later
"""Run-time control of a rack twin (``openipu.twin.v1.TwinService``) on a socket file for its owner only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from openipu.process.failures import EndpointError
from openipu.twin.rack.contract import twin
from openipu.twin.rack.fault_lines import FaultError

if TYPE_CHECKING:
    from openipu.twin.rack.rack import Rack


class TwinService:
    """Service that stops and starts machines of a running rack and applies faults."""

    def __init__(self, rack: Rack) -> None:
        self._machines = rack.machines
        self._faults = rack.faults

    async def ListMachines(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return all machines, in the order of the cluster."""
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
        """Cut the power of machines."""
        await self._faults.stop(*await self._selected(request.agent_ids, context))
        return twin.MachineReply()

    async def StartMachines(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Start stopped machines."""
        selected = await self._selected(request.agent_ids, context)
        try:
            await self._faults.start(*selected)
        except OSError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return twin.MachineReply()

    async def MakeFaults(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Apply faults, in order, up to the first that fails."""
        for line in request.faults:
            try:
                await self._faults.apply(line)
            except FaultError as error:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            except OSError as error:
                await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return twin.MakeFaultsReply()

    async def ListDefects(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return all defects of the rack."""
        return twin.ListDefectsReply(defects=[twin.Defect(**asdict(item)) for item in self._faults.defects()])

    async def _selected(self, ids: Iterable[str], context: Any) -> list[str]:
        """Return the agent ids of machines by their names, those of all without a name."""
        selected = []
        for name in ids or self._machines:
            id = self._faults.agent(name)
            try:
                self._faults.check_name(name)
                self._faults.machine(id)
            except FaultError as error:
                await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
            selected.append(id)
        return selected


class ControlServer:
    """TwinService on a socket file, which exists only while the service runs."""

    def __init__(self, rack: Rack, path: Path) -> None:
        self._path = path
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([twin.handler("TwinService", TwinService(rack))])

    async def start(self) -> None:
        """Listen. Raises EndpointError with a one-line message if the socket cannot be created or is in use."""
        await self._remove_stale()
        before = os.umask(0o177)  # creates the socket with mode 0600
        try:
            self._server.add_insecure_port(f"unix:{self._path.absolute()}")
        except RuntimeError:
            raise EndpointError(f"Cannot create the socket {self._path}: check that its folder is writable.") from None
        finally:
            os.umask(before)
        await self._server.start()

    async def stop(self) -> None:
        """Stop listening, and remove the socket file."""
        await self._server.stop(None)

    async def _remove_stale(self) -> None:
        """Remove the socket that a killed rack left. Raises EndpointError if a rack still uses it."""
        if not self._path.is_socket():
            return
        async with grpc.aio.insecure_channel(f"unix:{self._path.absolute()}") as channel:
            try:
                await twin.stub(channel, "TwinService").ListMachines(twin.ListMachinesRequest(), timeout=2)
            except grpc.aio.AioRpcError:
                self._path.unlink(missing_ok=True)
                return
        raise EndpointError(f"Cannot use the socket {self._path}: it controls another rack. Stop that rack first.")
