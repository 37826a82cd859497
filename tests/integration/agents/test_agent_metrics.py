# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the metrics of a ``virm-agent`` process."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.metrics.catalog import MACHINE
from tests.agent_owner import OWNER, controller_stub
from tests.integration.agents.agents_support import Start
from tests.integration.scraping import Scrape, check, get
from tests.ports import free_port
from tests.waiting import until

HOST = f"127.84.{os.getpid() % 250 + 1}.2"
SERVICE = "openipu.vipu.agent.v1.AgentService"


@pytest.fixture
def agent(start: Start) -> Any:
    """Return the process, the port of its API and the URL of its metrics."""
    ports = free_port(HOST), free_port(HOST)
    place = ("--host", HOST, "--port", str(ports[0]))
    process = start(*place, "--metrics-host", HOST, "--metrics-port", str(ports[1]))
    until(lambda: process.poll() is not None or responds(ports[1]), what="the agent serves metrics")
    return process, ports[0], f"http://{HOST}:{ports[1]}/metrics"


def responds(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def test_metrics_count_calls_and_partitions(agent: Any) -> None:
    process, port, url = agent
    check(url, MACHINE)
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        stub = controller_stub(channel)
        info = stub.GetInfo(contract.GetInfoRequest(), timeout=10)
        assert (info.facts[0].name, info.facts[0].value) == ("Exporter", url)
        watch = stub.Watch(contract.WatchRequest())
        next(watch)
        share = contract.PartitionShare(partition_id="p", ipus=[contract.ShareIpu(ipu=1)], sync_type=1)
        reply = stub.Configure(contract.ConfigureRequest(shares=[share]), timeout=10)
        assert not reply.results[0].error
        garbage = channel.unary_unary(f"/{SERVICE}/Configure")
        with pytest.raises(grpc.RpcError) as rejected:
            garbage(b"\xff\xff", metadata=identity.metadata(OWNER), timeout=10)
        assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        calls = {"service": SERVICE, "method": "Configure"}
        until_value(url, "ipum_rpc_duration_seconds_count", 2, **calls)  # counted after the reply
        scrape = check(url, MACHINE)
        assert scrape.get("ipum_controllers") == 1
        assert scrape.get("ipum_partitions") == 1
        assert scrape.get("ipum_ipu_in_use", ipu="1") == 1
        assert scrape.get("ipum_rpc_handled_total", **calls, code="OK") == 1
        assert scrape.get("ipum_rpc_handled_total", **calls, code="INVALID_ARGUMENT") == 1
        watch.cancel()
        scrape = until_value(url, "ipum_controllers", 0)
    scrape = until_value(url, "ipum_rpc_handled_total", 1, service=SERVICE, method="Watch", code="CANCELLED")
    assert scrape.get("ipum_rpc_duration_seconds_count", service=SERVICE, method="Watch") is None
    process.terminate()
    assert process.wait(20) == 0


def until_value(url: str, name: str, value: float, **labels: str) -> Scrape:
    """Return the first scrape in which a metric has a value."""
    scrapes = []
    until(lambda: scrapes.append(Scrape(url)) or scrapes[-1].get(name, **labels) == value, what=f"{name} is {value}")
    return scrapes[-1]


def test_silent_clients_do_not_block_others(agent: Any) -> None:
    process, port, url = agent
    place = (HOST, int(url.split(":")[2].split("/")[0]))
    silent = [socket.create_connection(place) for _ in range(5)]
    assert get(url)[0] == 200
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        contract.stub(channel, "AgentService").GetInfo(contract.GetInfoRequest(), timeout=10)
    process.terminate()
    assert process.wait(20) == 0
    for connection in silent:
        connection.close()


def test_without_metrics_there_is_no_exporter(start: Start) -> None:
    port = free_port(HOST)
    process = start("--host", HOST, "--port", str(port))
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        info = contract.stub(channel, "AgentService").GetInfo(
            contract.GetInfoRequest(), timeout=20, wait_for_ready=True
        )
    assert (info.facts[0].name, info.facts[0].value) == ("Exporter", "off")
    process.terminate()
    assert "serving metrics" not in process.communicate(timeout=20)[0]


def test_errors_are_one_line(start: Start, tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ("--host", HOST, "--port", "0", "--metrics-host", HOST, "--metrics-port", port)
        process = start(*options)
        output = process.communicate(timeout=20)[0]
    assert process.returncode == 1
    assert output == (
        f"Error OPU615: Cannot serve metrics on {HOST}:{port}: the port is in use, or this machine does not have the "
        "address. Change --metrics-host or --metrics-port.\n"
    )
    none = tmp_path / "none.crt"
    for more, expected in (
        (
            ("--metrics-tls-ca", str(none)),
            "Error OPU619: Cannot serve metrics: the TLS options are incomplete. Give --metrics-tls-certificate and",
        ),
        (("--metrics-tls-certificate", str(none), "--metrics-tls-key", str(none)), "No such file or directory.\n"),
    ):
        process = start(*options, *more)
        output = process.communicate(timeout=20)[0]
        assert process.returncode == 1
        assert expected in output
        assert len(output.splitlines()) == 1
