# SPDX-License-Identifier: GPL-3.0-or-later
"""``virm-agent`` as a process: its end-point, its secrets, its presence."""

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
from agents_support import Start, free_port
from waiting import until

from openipu.vipu import tls
from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agent.presence import interface_index, membership
from openipu.vipu.controller import Controller
from openipu.vipu.lifecycle import Lifecycle
from openipu.vipu.model import Agent, Put
from openipu.vipu.ports import AgentState, AgentTls, LifecycleOptions
from openipu.vipu.store import Store

GROUP = "239.192.73.82"


@pytest.fixture
def make_lifecycle(tmp_path: Path) -> Iterator[Callable[..., tuple[Controller, Lifecycle]]]:
    made: list[tuple[Controller, Lifecycle]] = []

    def make(**options: Any) -> tuple[Controller, Lifecycle]:
        controller = Controller(Store(tmp_path / "vipu.db", create=True))
        controller.start()
        lifecycle = Lifecycle(controller, LifecycleOptions(heartbeat=0.3, **options))
        made.append((controller, lifecycle))
        lifecycle.start()
        return controller, lifecycle

    yield make
    for controller, lifecycle in made:
        lifecycle.stop()
        controller.stop()


def add(controller: Controller, *agents: Agent) -> None:
    controller.submit(lambda state: ([Put(agent) for agent in agents], None)).result(5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--host", "192.0.2.1"), "Without TLS an agent listens on loopback addresses only, and 192.0.2.1 is none"),
        (("--host", "192.0.2.1", "--insecure-network"), "this machine has no such address"),
        (("--tls-key", "k"), "belong together"),
        (("--tls-key", "k", "--tls-ca", "c", "--tls-certificate", "x"), "Cannot read 'c': No such file or directory."),
        (("--hardware", "abacus"), "There is no hardware 'abacus' installed"),
        (("-o", "colour"), "A hardware option is NAME=VALUE, not 'colour'."),
        (("-o", "colour=red"), "The hardware 'twin' has no option 'colour'"),
        (("--announce-interface", "nothing0"), "There is no network interface 'nothing0'"),
        (("--host", "::1", "--announce-interface", "lo"), "Presence is multicast over IPv4"),
    ],
)
def test_a_mistake_is_one_sentence(start: Start, arguments: tuple[str, ...], sentence: str) -> None:
    process = start("--port", "0", *arguments)
    output = process.communicate(timeout=20)[0]
    assert process.returncode == 1
    assert sentence in output
    assert "Traceback" not in output
    assert len(output.splitlines()) == 1


def test_two_agents_on_one_end_point(start: Start) -> None:
    with socket.create_server(("127.84.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = start("--host", "127.84.0.1", "--port", str(port)).communicate(timeout=20)[0]
    assert f"Cannot listen on 127.84.0.1:{port}: another program has that port" in output


def test_it_stops_when_it_is_told(start: Start, make_lifecycle: Any) -> None:
    port = free_port("127.84.0.2")
    process = start("--host", "127.84.0.2", "--port", str(port), "-o", "serial=77-0001")
    controller, lifecycle = make_lifecycle()
    add(controller, Agent("ag", "127.84.0.2", port))
    until(lambda: lifecycle.agent_status("ag").state is AgentState.UP, 10)
    facts = {fact.name: fact.value for fact in lifecycle.agent_status("ag").info.facts}
    assert facts["Board serial number"] == "77-0001"
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    until(lambda: lifecycle.agent_status("ag").state is AgentState.DOWN, 5)
    until(lambda: "Connection refused" in lifecycle.agent_status("ag").reason, 5)


def test_mutual_tls(start: Start, make_lifecycle: Any, tmp_path: Path) -> None:
    pki, stranger = tmp_path / "pki", tmp_path / "stranger"
    tls.create(pki, ["127.84.0.3"])
    tls.create(stranger, ["127.84.0.3"])
    port = free_port("127.84.0.3")
    files = ("--tls-certificate", "server.crt"), ("--tls-key", "server.key"), ("--tls-ca", "ca.crt")
    start(
        *("--host", "127.84.0.3", "--port", str(port)),
        *(part for option, name in files for part in (option, str(pki / "server" / name))),
    )

    def status(folder: Path | None, number: int) -> Any:
        names = ("ca.crt", "client.crt", "client.key")
        secrets = folder and AgentTls(*((folder / "client" / name).read_bytes() for name in names))
        agent = Agent("ag", "127.84.0.3", port)
        controller = Controller(Store(tmp_path / f"vipu{number}.db", create=True))
        controller.start()
        lifecycle = Lifecycle(controller, LifecycleOptions(heartbeat=0.3, agent_tls=secrets))
        lifecycle.start()
        try:
            add(controller, agent)
            until(lambda: lifecycle.agent_status("ag").state is not AgentState.UNKNOWN, 10)
            if folder is pki:
                until(lambda: lifecycle.agent_status("ag").state is AgentState.UP, 10)
            return lifecycle.agent_status("ag")
        finally:
            lifecycle.stop()
            controller.stop()

    assert status(pki, 1).state is AgentState.UP
    for number, folder in ((2, None), (3, stranger)):
        refused = status(folder, number)
        assert refused.state is AgentState.DOWN
        assert refused.reason


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
    until(lifecycle.discovered, 10)
    (found,) = lifecycle.discovered()
    assert (found.host, found.port, found.interface) == ("127.84.0.4", port, "lo")
    assert found.auto_id == f"127.84.0.4-{port}"
    until(lambda: lifecycle.discovered()[0].age < 0.05, 15, "heard again")
    process.kill()
    process.wait(5)
    until(lambda: lifecycle.discovered()[0].age > 0.6, 15, "not heard any more")


def test_an_oversized_message_is_ignored(make_lifecycle: Any) -> None:
    group_port = free_port("127.0.0.1", socket.SOCK_DGRAM)
    _, lifecycle = make_lifecycle(discovery_interfaces=("lo",), discovery_group=GROUP, discovery_port=group_port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.84.0.5", 0))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership("0.0.0.0", interface_index("lo")))
        for port, boot_id in ((1, "b" * 600), (2, "b" * 60_000), (3, "b")):
            message = contract.Presence(host="127.84.0.5", port=port, boot_id=boot_id).SerializeToString()
            sender.sendto(message, (GROUP, group_port))
    until(lifecycle.discovered, 5)
    assert [found.port for found in lifecycle.discovered()] == [3], "they were sent in this order"


LISTEN = """
import asyncio, sys
from openipu.vipu.discovery import Discovery
async def main():
    heard = Discovery([sys.argv[1]], sys.argv[2], int(sys.argv[3]))
    heard.listen()
    print("listening", flush=True)
    async with asyncio.timeout(20):
        while not heard.discovered():
            await asyncio.sleep(0.02)
    for found in heard.discovered():
        print(found.host, found.port, found.interface, flush=True)
asyncio.run(main())
"""


def _ip(*arguments: str) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def two_machines() -> Iterator[tuple[str, str]]:
    """Two network namespaces with one cable between them: 10.99.0.1 on eth0 of the first, .2 of the second."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and the command 'ip'")
    names = (f"openipu-{os.getpid()}-a", f"openipu-{os.getpid()}-b")
    try:
        if not _ip("netns", "add", names[0]):
            pytest.skip("network namespaces cannot be made here")
        assert _ip("netns", "add", names[1])
        veth = ("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        if not _ip(*veth):
            pytest.skip("virtual Ethernet pairs cannot be made here")
        for number, name in enumerate(names, start=1):
            assert _ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "eth0")
            assert _ip("-n", name, "link", "set", "eth0", "up")
            assert _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            _ip("netns", "del", name)


def test_agents_are_discovered_over_a_network(start: Start, two_machines: tuple[str, str]) -> None:
    here, there = two_machines
    listener = subprocess.Popen(
        ["ip", "netns", "exec", here, sys.executable, "-c", LISTEN, "eth0", GROUP, "18091"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert listener.stdout
        assert listener.stdout.readline() == "listening\n"
        inside = ("ip", "netns", "exec", there)
        everywhere = announced(8080, 18091, "eth0", "0.0.0.0")
        start(*everywhere, "--insecure-network", before=inside)
        assert listener.communicate(timeout=25)[0] == "10.99.0.2 8080 eth0\n"
    finally:
        listener.kill()
        listener.wait()
