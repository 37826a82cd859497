# SPDX-License-Identifier: GPL-3.0-or-later
"""Process ``vipu-server``: options, start, stop, kill, and errors of users."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.server.initialise import initialise
from tests.integration.vipu_servers import Client, Machines, Process, command, listed, partition, pod, run, wait_active

Start = Callable[..., Process]


def test_init(tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    made = run("--init", "--database", str(database))
    assert (made.returncode, made.stdout, made.stderr) == (0, f"Initialised storage: {database}\n", "")
    again = run("--init", "--database", str(database))
    assert (again.returncode, again.stdout) == (0, f"Storage is initialised already: {database}\n")


def test_the_file_of_an_administrator_is_not_overwritten(tmp_path: Path) -> None:
    """Write nothing, neither certificates nor a database: it may be the only copy of an access key."""
    database, file, certs = tmp_path / "vipu-server.db", tmp_path / "admin.vipu-cli.hcl", tmp_path / "vipu-certs"
    command = ("--tls-init", str(certs), "--init", "--secure", "--database", str(database))
    file.write_text("first\n")
    refused = run(*command)
    assert refused.returncode == 1
    assert f"'{file}' exists, and may be the only copy of an access key. Move it away" in refused.stderr
    assert sorted(tmp_path.iterdir()) == [file]
    # An existing database without an administrator is not changed either, one with an administrator needs no file.
    run("--init", "--database", str(database))
    assert run(*command).returncode == 1
    assert (file.read_text(), certs.exists()) == ("first\n", False)
    file.unlink()
    assert run(*command).returncode == 0
    made = file.read_text()
    again = run("--init", "--secure", "--certs", str(certs), "--database", str(database))
    assert (again.returncode, again.stdout) == (0, f"Storage is initialised already: {database}\n")
    assert file.read_text() == made


def test_init_and_serve_secure(vipu_process: Start, tmp_path: Path) -> None:
    database, certs = tmp_path / "vipu-server.db", tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(database))
    assert made.returncode == 0, made.stderr
    assert made.stdout == (
        f"Certificates written: {certs}/server and {certs}/client\n"
        f"Initialised storage: {database}\n"
        f"vipu configuration file for the user 'admin' written: {tmp_path}/admin.vipu-cli.hcl\n"
    )
    settings = dict(line.split("=") for line in (tmp_path / "admin.vipu-cli.hcl").read_text().split())
    key = json.loads(settings["api-access-key"])
    files = [certs / "client" / name for name in ("ca.crt", "client.key", "client.crt")]
    credentials = grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))
    server = vipu_process("--secure", "--certs", str(certs), "--log-level", "debug", channel=credentials)
    metadata = ((USER_ID_METADATA, "admin"), (ACCESS_KEY_METADATA, key))
    created = server.admin.CreateUser(
        admin.CreateUserRequest(spec=admin.UserSpec(id="alice")), metadata=metadata, timeout=10
    )
    with pytest.raises(grpc.RpcError) as caught:
        server.admin.ListUsers(admin.ListUsersRequest(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert server.stop() == 0
    log = "".join(server.errors)
    assert "AdminService/CreateUser" in log
    assert "UNAUTHENTICATED" in log
    assert "connections to agents have no TLS" in log
    for secret in (key, created.access_key):
        assert secret not in log


def test_ready_line_environment_and_version(
    vipu_process: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = vipu_process("--log-format", "json")
    assert re.fullmatch(r"vipu-server 0\.1\.0 listening on 127\.0\.0\.1:\d+\n", server.ready)
    server.admin.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="ag1", host="127.0.0.9", port=1)))
    assert server.stop() == 0
    events = [json.loads(line) for line in server.errors if line]
    assert events[0]["level"] == "warning"
    assert "not secure" in events[0]["event"]
    done = next(event for event in events if event["event"] == "request completed")
    assert done["method"].endswith("AdminService/CreateAgent")
    assert (done["object"], done["peer"][:15]) == ("ag1", "ipv4:127.0.0.1:")
    start = next(event for event in events if event["event"] == "database verified")
    assert (start["deployment"], start["epoch"]) == sqlite3.connect(tmp_path / "vipu-server.db").execute(
        "SELECT id, epoch FROM deployment"
    ).fetchone()
    assert run("--version").stdout == "vipu-server 0.1.0\n"


def test_a_closed_log_does_not_stop_the_server(tmp_path: Path, machines: Machines) -> None:
    database = tmp_path / "vipu-server.db"
    initialise(database)
    process = subprocess.Popen(
        command("--database", str(database), "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stderr
    address = process.stdout.readline().split()[-1]
    process.stderr.close()
    client = Client(address)
    pod(client, machines)
    client.user.CreatePartition(partition("p1"), timeout=10)
    client.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p1", force=True), timeout=10)
    client.close()
    process.terminate()
    assert process.wait(10) == 0
    process.stdout.close()


def test_health_and_reflection(vipu_process: Start) -> None:
    server = vipu_process("--no-admin")
    health = health_pb2_grpc.HealthStub(server.channel)
    for service in ("", "virmgrpc.UserService"):
        reply = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    database = ProtoReflectionDescriptorDatabase(server.channel)
    assert set(database.get_services()) == {
        "virmgrpc.UserService",
        "virmgrpc.VersionService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    service = DescriptorPool(database).FindServiceByName("virmgrpc.UserService")
    assert "CreatePartition" in service.methods_by_name
    assert service.file.name == "vipuuser.proto"
    request = service.methods_by_name["GetPartitionIpuofConfig"].input_type
    assert request.fields_by_name["gcd_id"].message_type is request.nested_types_by_name["GcdID"]


def test_start_errors_are_one_line(vipu_process: Start, tmp_path: Path) -> None:
    server = vipu_process()
    port = server.address.rpartition(":")[2]
    in_use, other, newer = (str(tmp_path / name) for name in ("vipu-server.db", "other.db", "newer.db"))
    for path in (other, newer):
        initialise(Path(path))
    connection = sqlite3.connect(newer)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    missing, missing_folder, certs = (str(tmp_path / name) for name in ("missing.db", "no/where.db", "none"))
    nocerts = str(tmp_path / "nocerts")
    agent_tls = [part for name in ("ca", "certificate", "key") for part in (f"--agent-tls-{name}", certs)]
    cases = (
        (["--database", missing], [f"Cannot open database '{missing}': it does not exist.", "--init"]),
        (["--init", "--database", missing_folder], ["does not exist. Create the folder"]),
        (["--database", in_use], ["another vipu-server uses it"]),
        (["--database", newer, "--port", "0"], ["written by a newer release (version 9999"]),
        (["--database", other, "--port", port], [f"Cannot listen on 127.0.0.1:{port}", "another program"]),
        (["--tls-init", nocerts, "--host", "0.0.0.0"], ["0.0.0.0", "--tls-san"]),
        (["--tls-init", nocerts, "--host", "::"], ["::", "--tls-san"]),
        (["--host", "0.0.0.0"], ["0.0.0.0", "--secure", "--insecure-network"]),
        (["--admin-host", "192.0.2.1"], ["192.0.2.1", "--insecure-network"]),
        (["--secure", "--certs", certs], ["Cannot read", "No such file", "--tls-init"]),
        (agent_tls, [f"'{certs}'", "No such file"]),
    )
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: run(*case[0]), cases))
    for result, (_, message) in zip(results, cases, strict=True):
        assert result.returncode == 1, result
        assert result.stdout == ""
        assert re.fullmatch(r"Error OPU\d{3}: [^\n]+\n", result.stderr), result.stderr
        for part in message:
            assert part in result.stderr
    assert not Path(nocerts).exists()
    assert server.stop() == 0


def test_a_certificate_for_a_wildcard_address(tmp_path: Path) -> None:
    made = run("--tls-init", str(tmp_path / "certs"), "--host", "0.0.0.0", "--tls-san", "pod.example")
    assert made.returncode == 0, made.stderr
    certificate = x509.load_pem_x509_certificate((tmp_path / "certs" / "server" / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "pod.example"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_usage_errors(tmp_path: Path) -> None:
    cases = (
        (["--no-admin", "--admin-port", "1"], "--no-admin excludes --admin-host and --admin-port"),
        (["--admin-on-both"], "--admin-on-both requires --admin-port or --admin-host"),
        (["--default-user-id", "x"], "--default-user-id requires --secure"),
        (["--agent-tls-ca", "x"], "belong together"),
        (["--port", "70000"], "70000"),
        (["--database", str(tmp_path)], "is a directory"),
        (["--tls-init", str(tmp_path / "c"), "--tls-days", "3000000"], "is not in the range 1<=x<=36500"),
        (["renew", "--within", "99999999999999999999"], "is not in the range 0<=x<=36500"),
        (
            ["--database", str(tmp_path / "x"), "backup", str(tmp_path)],
            "Option --database before 'backup' does not apply to this command. Set it after the command: "
            "'vipu-server backup --database …'.",
        ),
        (["--admin-port", "1", "check"], "Option --admin-port before 'check' does not apply to this command. Omit it."),
    )
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: run(*case[0]), cases))
    for result, (_, message) in zip(results, cases, strict=True):
        assert result.returncode == 2, result
        assert message in result.stderr
        assert "Traceback" not in result.stderr


def test_a_partition_on_machines(vipu_process: Start, machines: Machines) -> None:
    server = vipu_process()
    pod(server, machines)
    server.user.CreatePartition(partition("p1", 16, num_gcds=4))
    wait_active(server, "p1")
    request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id="p1")
    gcds = server.user.GetPartitionIpuofConfig(request).ipuof_config.gcd_configs
    devices = [device for gcd in gcds for device in gcd.devices]
    assert [len(gcd.devices) for gcd in gcds] == [4, 4, 4, 4]
    assert len({(device.ip, device.ipu_id) for device in devices}) == 16
    assert {device.ip for device in devices} <= {agent.host for agent in machines.agents}
    agent = server.admin.GetAgent(admin.GetAgentRequest(id="ag01")).agent
    assert (agent.state, agent.num_ipus, agent.allocation_id) == (admin.AGENT_STATE_UP, 4, "a1")
    assert {"Platform", "Manufacturer"} <= {fact.name for fact in agent.facts}
    attributes = server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest(agents=["ag02"])).entries[0]
    assert attributes.ipu_attributes[0].attributes["board type"] == "M2000"
    server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id="p1"))
    wait_active(server, "p1")
    server.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p1"))
    assert listed(server) == set()


HOSTILE = ["", ".", "..", "../../etc/passwd", "a/b", "a\x00b", "x" * 10_000, "ü", "-x", "a b", "'; DROP TABLE agents"]


def test_hostile_requests_get_a_status_code(vipu_process: Start) -> None:
    server = vipu_process()
    pod(server, 4)
    calls: list[Callable[[], object]] = []
    for id in HOSTILE:
        calls += [
            lambda id=id: server.user.CreatePartition(partition(id), timeout=10),
            # Without an allocation, the controller chooses one.
            lambda id=id: server.user.CreatePartition(partition("ok", 1, id or "/"), timeout=10),
            lambda id=id: server.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id), timeout=10),
            lambda id=id: server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id=id), timeout=10),
            lambda id=id: server.user.GetPartitionStatus(
                virmgrpc.GetPartitionStatusRequest(partition_id=id), timeout=10
            ),
            lambda id=id: server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest(agents=[id]), timeout=10),
            lambda id=id: server.admin.CreateAgent(
                admin.CreateAgentRequest(spec=admin.AgentSpec(id=id, host="127.0.0.9")), timeout=10
            ),
            lambda id=id: server.admin.CreateAgent(
                admin.CreateAgentRequest(spec=admin.AgentSpec(id="ok", host=f"{id}/")), timeout=10
            ),
            lambda id=id: server.admin.CreateUser(admin.CreateUserRequest(spec=admin.UserSpec(id=id)), timeout=10),
            lambda id=id: server.admin.RemoveCluster(admin.RemoveRequest(id=id, force=True), timeout=10),
        ]
    for size in (0, 3, 2**31, 2**32 - 1):
        calls.append(lambda size=size: server.user.CreatePartition(partition("ok", size), timeout=10))
        calls.append(lambda size=size: server.user.CreatePartition(partition("ok", 4, num_gcds=size or 3), timeout=10))
    for call in calls:
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() in (
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.NOT_FOUND,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
        ), caught.value
        assert caught.value.details().isprintable()
        assert len(caught.value.details()) < 500
    assert server.stop() == 0
    assert not re.search("internal error|Traceback", "".join(server.errors))


def test_garbage_and_oversized_messages_get_a_status_code(vipu_process: Start) -> None:
    server = vipu_process()
    for data, code in (
        (b"\xff" * 100, grpc.StatusCode.INVALID_ARGUMENT),
        (b"\x12\x05\x0a\x03\xff\xfe\xfd", grpc.StatusCode.INVALID_ARGUMENT),  # an id that is not UTF-8
        (b"\x00" * (17 << 20), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ):
        call = server.channel.unary_unary("/virmgrpc.UserService/CreatePartition")
        with pytest.raises(grpc.RpcError) as caught:
            call(data, timeout=10)
        assert caught.value.code() is code, caught.value
    with pytest.raises(grpc.RpcError) as caught:
        server.channel.unary_unary("/virmgrpc.UserService/Nothing")(b"", timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    host, port = server.address.rsplit(":", 1)
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"x" * 1000, b"\x00" * 100_000):
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            plain.sendall(data)
            while plain.recv(4096):
                pass
    assert server.version.GetVersion(virmgrpc.VersionRequest(), timeout=10).version
    assert server.stop() == 0
    assert "Traceback" not in "".join(server.errors)


def test_cancelled_calls(vipu_process: Start, machines: Machines) -> None:
    server = vipu_process()
    pod(server, machines)
    other = Client(server.address)
    calls = [other.user.CreatePartition.future(partition(f"p{n}")) for n in range(60)]
    other.close()
    for call in calls:
        with contextlib.suppress(grpc.RpcError, grpc.FutureCancelledError):  # some calls may have completed
            call.result(timeout=10)
    timeouts = 0
    for n in range(40):
        try:
            server.user.CreatePartition(partition(f"q{n}"), timeout=0.0005)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            timeouts += 1
    assert timeouts
    server.user.CreatePartition(partition("last"), timeout=10)
    assert server.stop() == 0
    assert "Traceback" not in "".join(server.errors)
