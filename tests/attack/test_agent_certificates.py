# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients with a certificate of the agents' authority that are not controllers."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path

import grpc
import pytest

from openipu.vipu.agent import hardware
from openipu.vipu.agent.server import AgentServer
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.tls import issue, load

HOST = "127.0.0.1"


@pytest.mark.defence("openipu.vipu.agent.guard.is_controller", operator.is_not)
def test_certificates_of_tenants_do_not_reach_agents(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    issue.create(certs, [HOST])

    async def call(role: str, address: str) -> grpc.StatusCode:
        files = [certs / role / name for name in (load.CA, f"{role}.crt", f"{role}.key")]
        credentials = load.ClientCredentials(load.PemFiles(*files)).current()
        async with grpc.aio.secure_channel(address, credentials) as channel:
            stub = agent.stub(channel, "AgentService")
            watch = stub.Watch(agent.WatchRequest(), timeout=10)
            try:
                await stub.GetInfo(agent.GetInfoRequest(), timeout=10)
                await watch.read()
            except grpc.aio.AioRpcError as error:
                return error.code()
            finally:
                watch.cancel()
        return grpc.StatusCode.OK

    async def attack() -> list[grpc.StatusCode]:
        machine = hardware.load("twin")(hardware.Options(HOST, 0, {}))
        files = [certs / "server" / name for name in (load.CA, "server.crt", "server.key")]
        server = AgentServer(machine, HOST, 0, load.mutual(*files))
        await server.start()
        try:
            return [await call(role, f"{HOST}:{server.port}") for role in ("controller", "client")]
        finally:
            await server.stop()

    assert asyncio.run(attack()) == [grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED]
