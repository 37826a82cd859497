# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of ``virm-agent`` as a process: endpoint, TLS, discovery."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.agent_api.multicast import interface_index, membership
from openipu.vipu.domain.model import Agent, Put
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.service import LifecycleService
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from openipu.vipu.tls import issue
from openipu.vipu.tls.load import ClientCredentials, PemFiles
from tests.integration.agents.agents_support import Start
from tests.ports import free_port
from tests.waiting import until

GROUP = "239.192.73.82"


@pytest.fixture
def make_lifecycle(tmp_path: Path) -> Iterator[Callable[..., tuple[RecordWriter, LifecycleService]]]:
    made: list[tuple[RecordWriter, LifecycleService]] = []

    def make(**options: Any) -> tuple[RecordWriter, LifecycleService]:
        controller = RecordWriter(Store(tmp_path / "vipu.db", create=True))
        controller.start()
        lifecycle = LifecycleService(controller, LifecycleOptions(heartbeat=0.3, **options))
        made.append((controller, lifecycle))
        lifecycle.start()
        return controller, lifecycle

    yield make
    for controller, lifecycle in made:
        lifecycle.stop()
        controller.stop()


def add(controller: RecordWriter, *agents: Agent) -> None:
    controller.submit(lambda state: ([Put(agent) for agent in agents], None)).result(5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--host", "192.0.2.1"), "Cannot listen on 192.0.2.1: without TLS only loopback addresses are allowed"),
        (("--host", "192.0.2.1", "--insecure-network"), "this machine has no such address"),
        (("--tls-key", "k"), "belong together"),
        (("--tls-key", "k", "--tls-ca", "c", "--tls-certificate", "x"), "Cannot read 'c': No such file or directory."),
        (("--hardware", "abacus"), "Cannot load hardware 'abacus': it is not installed"),
        (("-o", "colour"), "Cannot read the hardware option 'colour': use the form NAME=VALUE."),
        (("-o", "colour=red"), "Cannot create hardware 'twin': option 'colour' is unknown."),
        (
            ("--announce-interface", "nothing0"),
            "Cannot find network interface 'nothing0': this machine does not have it",
        ),
        (("--host", "::1", "--announce-interface", "lo"), "Cannot announce the agent: '::1' is not an IPv4 address"),
    ],
)
def test_an_error_is_one_line(start: Start, arguments: tuple[str, ...], message: str) -> None:
    process = start("--port", "0", *arguments)
    output = process.communicate(timeout=20)[0]
    assert process.returncode == 1
    assert message in output
    assert "Traceback" not in output
    assert len(output.splitlines()) == 1


def test_two_agents_on_one_endpoint(start: Start) -> None:
    with socket.create_server(("127.84.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = start("--host", "127.84.0.1", "--port", str(port)).communicate(timeout=20)[0]
    assert f"Cannot listen on 127.84.0.1:{port}: another program has that port" in output


def test_the_agent_stops_after_sigterm(start: Start, make_lifecycle: Any) -> None:
    port = free_port("127.84.0.2")
    process = start("--host", "127.84.0.2", "--port", str(port), "-o", "serial=77-0001")
    controller, lifecycle = make_lifecycle()
    add(controller, Agent("ag", "127.84.0.2", port))
    until(lambda: lifecycle.agent_status("ag").state is AgentState.UP)
    facts = {fact.name: fact.value for fact in lifecycle.agent_status("ag").info.facts}
    assert facts["Board serial number"] == "77-0001"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    until(lambda: lifecycle.agent_status("ag").state is AgentState.DOWN)
    until(lambda: "Connection refused" in lifecycle.agent_status("ag").reason)


SERVER_FILES = (("certificate", "server.crt"), ("key", "server.key"), ("ca", "ca.crt"))


def controller_credentials(folder: Path, role: str = "controller") -> ClientCredentials:
    return ClientCredentials(PemFiles(*(folder / role / name for name in ("ca.crt", f"{role}.crt", f"{role}.key"))))


def test_mutual_tls(start: Start, make_lifecycle: Any, tmp_path: Path) -> None:
    pki, other_pki = tmp_path / "pki", tmp_path / "stranger"
    issue.create(pki, ["127.84.0.3"])
    issue.create(other_pki, ["127.84.0.3"])
    port = free_port("127.84.0.3")
    files = [f"--tls-{option}={pki / 'server' / name}" for option, name in SERVER_FILES]
    start("--host", "127.84.0.3", "--port", str(port), *files)

    def status(folder: Path | None, number: int, role: str = "controller") -> Any:
        secrets = folder and controller_credentials(folder, role)
        agent = Agent("ag", "127.84.0.3", port)
        controller = RecordWriter(Store(tmp_path / f"vipu{number}.db", create=True))
        controller.start()
        lifecycle = LifecycleService(controller, LifecycleOptions(heartbeat=0.3, agent_tls=secrets))
        lifecycle.start()
        try:
            add(controller, agent)
            until(lambda: lifecycle.agent_status("ag").state is not AgentState.UNKNOWN)
            if folder is pki and role == "controller":
                until(lambda: lifecycle.agent_status("ag").state is AgentState.UP)
            return lifecycle.agent_status("ag")
        finally:
            lifecycle.stop()
            controller.stop()

    assert status(pki, 1).state is AgentState.UP
    for number, folder in ((2, None), (3, other_pki)):
        rejected = status(folder, number)
        assert rejected.state is AgentState.DOWN
        assert rejected.reason
    tenant = status(pki, 4, "client")
    assert (tenant.state, "certificate is not that of a controller" in tenant.reason) == (AgentState.DOWN, True)


def test_replaced_certificates_reach_agents_without_a_restart(
    start: Start, make_lifecycle: Any, tmp_path: Path
) -> None:
    """A controller with the certificate of another authority reaches its agent as soon as the files are right."""
    pki, own = tmp_path / "pki", tmp_path / "own"
    issue.create(pki, ["127.84.0.3"])
    issue.create(own, ["127.84.0.3"])
    port = free_port("127.84.0.3")
    files = [f"--tls-{option}={pki / 'server' / name}" for option, name in SERVER_FILES]
    agent = ("--host", "127.84.0.3", "--port", str(port), *files)
    process = start(*agent)
    controller, lifecycle = make_lifecycle(agent_tls=controller_credentials(own))
    add(controller, Agent("ag", "127.84.0.3", port))
    until(lambda: lifecycle.agent_status("ag").state is AgentState.DOWN)
    for name in ("controller.key", "controller.crt", "ca.crt"):  # one at a time, as an administrator may do
        (pki / "controller" / name).replace(own / "controller" / name)
    until(lambda: lifecycle.agent_status("ag").state is AgentState.UP)
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    until(lambda: lifecycle.agent_status("ag").state is AgentState.DOWN)
    start(*agent)
    until(lambda: lifecycle.agent_status("ag").state is AgentState.UP)


def announced(port: int, group_port: int, interface: str = "lo", host: str = "127.84.0.4") -> tuple[str, ...]:
    return (
        *("--host", host, "--port", str(port), "--announce-interface", interface),
        *("--announce-interval", "0.2", "--announce-group", GROUP, "--announce-port", str(group_port)),
    )


def test_agents_are_discovered_between_processes_on_loopback(start: Start, make_lifecycle: Any) -> None:
    port, group_port = free_port("127.84.0.4"), free_port("127.0.0.1", socket.SOCK_DGRAM)
    _, lifecycle = make_lifecycle(discovery_interfaces=("lo",), discovery_group=GROUP, discovery_port=group_port)
    assert lifecycle.discovered() == []
    process = start(*announced(port, group_port))
    until(lifecycle.discovered)
    (found,) = lifecycle.discovered()
    assert (found.host, found.port, found.interface) == ("127.84.0.4", port, "lo")
    assert found.auto_id == f"127.84.0.4-{port}"
    # The age only decreases when another message arrives, however slow this machine is.
    ages = [found.age]
    until(lambda: ages.append(lifecycle.discovered()[0].age) or ages[-1] < ages[-2], what="a second message")
    process.kill()
    process.wait()
    until(lambda: lifecycle.discovered()[0].age > 0.6, what="three intervals without a message")


def test_an_oversized_message_is_ignored(make_lifecycle: Any) -> None:
    group_port = free_port("127.0.0.1", socket.SOCK_DGRAM)
    _, lifecycle = make_lifecycle(discovery_interfaces=("lo",), discovery_group=GROUP, discovery_port=group_port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.84.0.5", 0))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership("0.0.0.0", interface_index("lo")))
        for port, boot_id in ((1, "b" * 600), (2, "b" * 60_000), (3, "b")):
            message = contract.Presence(host="127.84.0.5", port=port, boot_id=boot_id).SerializeToString()
            sender.sendto(message, (GROUP, group_port))
    until(lifecycle.discovered)
    assert [found.port for found in lifecycle.discovered()] == [3], "the messages arrive in the order of sending"


LISTEN = """
import asyncio, sys
from openipu.vipu.fleet.discovery import Discovery
async def main():
    discovery = Discovery([sys.argv[1]], sys.argv[2], int(sys.argv[3]))
    discovery.listen()
    print("listening", flush=True)
    while not discovery.discovered():
        await asyncio.sleep(0.02)
    for found in discovery.discovered():
        print(found.host, found.port, found.interface, flush=True)
asyncio.run(main())
"""


def _ip(*arguments: str) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def two_machines() -> Iterator[tuple[str, str]]:
    """Yield two network namespaces with one cable: 10.99.0.1 on eth0 of the first, .2 of the second."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and the command 'ip'")
    names = (f"openipu-{os.getpid()}-a", f"openipu-{os.getpid()}-b")
    try:
        if not _ip("netns", "add", names[0]):
            pytest.skip("cannot create network namespaces on this machine")
        assert _ip("netns", "add", names[1])
        veth = ("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        if not _ip(*veth):
            pytest.skip("cannot create virtual Ethernet pairs on this machine")
        for number, name in enumerate(names, start=1):
            assert _ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "eth0")
            assert _ip("-n", name, "link", "set", "eth0", "up")
            assert _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            _ip("netns", "del", name)


def test_agents_are_discovered_over_a_network(start: Start, two_machines: tuple[str, str]) -> None:
    controller_side, agent_side = two_machines
    listener = subprocess.Popen(
        ["ip", "netns", "exec", controller_side, sys.executable, "-c", LISTEN, "eth0", GROUP, "18091"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert listener.stdout
        assert listener.stdout.readline() == "listening\n"
        inside = ("ip", "netns", "exec", agent_side)
        arguments = announced(8080, 18091, "eth0", "0.0.0.0")
        start(*arguments, "--insecure-network", before=inside)
        assert listener.communicate(timeout=60)[0] == "10.99.0.2 8080 eth0\n"
    finally:
        listener.kill()
        listener.wait()
