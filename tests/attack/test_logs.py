# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that are made to appear in the log, with secrets or too often."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.process.log_rate import MAX_LINES
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.tls import issue
from tests.agent_owner import controller_stub
from tests.attack import defences, http2
from tests.integration.vipu_servers import Machines, Process, partition, pod
from tests.ports import free_port
from tests.waiting import until

VERSION = "/virmgrpc.VersionService/GetVersion"
LIST = "/virmgrpc.UserService/ListPartitions"
AGENT = "127.84.0.7"


def every_record(record: object) -> bool:
    """Log all records."""
    return True


@pytest.mark.long
@pytest.mark.defence("openipu.process.log.without_metadata", every_record)
def test_access_keys_that_are_not_text(vipu_process: Callable[..., Process]) -> None:
    server = vipu_process("--log-level", "debug")
    connection = http2.Connection(server.address)
    connection.begin(VERSION, 0, 0, {ACCESS_KEY_METADATA: b"secret\xff"})
    until(lambda: any("VersionService" in line for line in server.errors))
    connection.close()
    server.version.GetVersion(virmgrpc.VersionRequest(), timeout=10)
    assert server.stop() == 0
    assert "secret" not in "".join(server.errors)


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    """Return the folder with the certificates of a controller and of its users."""
    folder = tmp_path / "certs"
    issue.create(folder, ["127.0.0.1"])
    return folder


def client_files(certs: Path) -> list[Path]:
    """Return CA, key and certificate of clients."""
    return [certs / "client" / name for name in ("ca.crt", "client.key", "client.crt")]


@pytest.fixture
def secure(vipu_process: Callable[..., Process], certs: Path) -> Process:
    """Return a secure controller."""
    channel = grpc.ssl_channel_credentials(*(file.read_bytes() for file in client_files(certs)))
    return vipu_process("--secure", "--certs", str(certs), channel=channel)


def unchanged(logger: object, name: str, event: Any) -> Any:
    """Return an event as it is, in place of ``printable``."""
    return event


@pytest.mark.long
@pytest.mark.defence("openipu.process.log.printable", unchanged)
def test_control_characters_of_a_user_id(secure: Process, certs: Path) -> None:
    """A library for gRPC does not send them. They would clear the terminal of a reader, and hide other lines."""
    ca, key, certificate = client_files(certs)
    tls = ssl.create_default_context(cafile=ca)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["h2"])
    connection = http2.Connection(secure.address, tls=tls)
    connection.begin(LIST, 0, 0, {USER_ID_METADATA: b"root\x1b[2J\x08\x7f", ACCESS_KEY_METADATA: b"wrong"})
    until(lambda: any("request rejected" in line for line in secure.errors))
    connection.close()
    assert secure.stop() == 0
    assert all(line.rstrip("\n").isprintable() for line in secure.errors), secure.errors


@pytest.mark.defence("openipu.process.log_rate.MAX_LINES", 1 << 40)
def test_rejected_calls_do_not_fill_the_log(secure: Process) -> None:
    for number in range(500):
        metadata = ((USER_ID_METADATA, f"user{number}"), (ACCESS_KEY_METADATA, "wrong"))
        with pytest.raises(grpc.RpcError):
            secure.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=metadata, timeout=10)
    assert secure.stop() == 0
    rejected = [line for line in secure.errors if "request rejected" in line]
    assert 0 < len(rejected) <= MAX_LINES
    assert "user0" in rejected[0] and "party" not in rejected[0]


@pytest.mark.defence("openipu.vipu.api.methods._EFFECTS", ())
def test_requests_without_an_effect_do_not_fill_the_log(vipu_process: Callable[..., Process]) -> None:
    machines = Machines(1)
    try:
        server = vipu_process()
        pod(server, machines)
        server.user.CreatePartition(partition("p"))
        request = admin.SetPartitionOptionsRequest(partition_id="p", disable_auto_reset=True)
        for _ in range(100):
            server.tenant.SetPartitionOptions(request, timeout=10)
        assert server.stop() == 0
    finally:
        machines.stop()
    assert sum("SetPartitionOptions" in line for line in server.errors) == 1


@pytest.mark.defence("openipu.process.log_rate.MAX_LINES", 1 << 40)
def test_rejected_shares_do_not_fill_the_log_of_an_agent() -> None:
    """Without TLS, every host of the network can send them."""
    port = free_port(AGENT)
    program = defences.command("openipu.vipu.agent.main", "--host", AGENT, "--port", str(port))
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    share = agent.PartitionShare(partition_id="p\x1b[2J", ipulink_routing_type=99)
    try:
        with grpc.insecure_channel(f"{AGENT}:{port}") as channel:
            grpc.channel_ready_future(channel).result(20)
            stub = controller_stub(channel)
            for _ in range(100):
                stub.TakeOver(agent.TakeOverRequest(), timeout=10)
                stub.Configure(agent.ConfigureRequest(shares=[share]), timeout=10)
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=20)
    for event in ("taken over", "share rejected"):
        assert 0 < errors.count(event) <= MAX_LINES
    assert all(line.isprintable() for line in errors.splitlines())
