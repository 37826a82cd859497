# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers on etcd: one leads, the others reject calls and take over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.failover import LEADER_METADATA
from openipu.vipu.metrics.catalog import PROCESS
from tests.ha.controllers import Controllers, listed
from tests.ha.etcd_nodes import EtcdCluster
from tests.integration.vipu_servers import environment, run
from tests.waiting import until

OF_ALL = (
    "vipu_build_info",
    "vipu_controller_leads",
    "vipu_controller_leader_info",
    "vipu_controller_leader_changes_total",
)
OF_FOLLOWERS = "vipu_follower_revision", "vipu_follower_silence_seconds"


def add(address: str, id: str) -> None:
    """Register an agent that nothing listens for. Raises grpc.RpcError."""
    with grpc.insecure_channel(address) as channel:
        agent = admin.AgentSpec(id=id, host=f"{id}.invalid")
        reply = admin.stub(channel, "AdminService").Apply(admin.ApplyRequest(agents=[agent]), timeout=20)
    assert reply.applied, reply.results


def agents(address: str) -> set[str]:
    with grpc.insecure_channel(address) as channel:
        reply = admin.stub(channel, "AdminService").ListAgents(admin.ListAgentsRequest(), timeout=20)
    return {agent.spec.id for agent in reply.agents}


@pytest.fixture
def controllers(url: str, tmp_path: Path) -> Iterator[Controllers]:
    made = Controllers(tmp_path, url)
    yield made
    made.close()


def test_followers_name_the_leader(controllers: Controllers) -> None:
    leader = controllers.wait_leader()
    followers = [each for each in controllers.all if each is not leader]
    assert all(each.follows() for each in followers)
    with pytest.raises(grpc.RpcError) as error:
        listed(followers[0].address)
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert error.value.details().endswith(f"Call {leader.address}.")
    assert dict(error.value.trailing_metadata())[LEADER_METADATA] == leader.address
    assert listed(leader.address) == {}
    follower = run("health", "--port", str(followers[0].port))
    assert follower.returncode == 1
    assert f"its health is NOT_SERVING, because it follows {leader.address}. Use the leader" in follower.stderr
    standby = run("health", "--port", str(followers[0].port), "--standby")
    assert standby.stdout == f"vipu-server follows {leader.address}, on {followers[0].address}\n"
    assert f"serves on {leader.address}" in run("health", "--port", str(leader.port), "--standby").stdout


def test_followers_export_the_leader_and_their_lag(controllers: Controllers) -> None:
    leader = controllers.wait_leader()
    follower, other = (each for each in controllers.all if each is not leader)
    add(leader.address, "a1")
    of_leader, known = leader.metrics(), f'vipu_controller_leader_info{{address="{leader.address}"}}'
    assert (of_leader["vipu_controller_leads"], of_leader[known], of_leader['vipu_records{kind="agent"}']) == (1, 1, 1)
    assert "vipu_follower_revision" not in of_leader
    until(lambda: follower.metrics()["vipu_follower_revision"] == of_leader["vipu_store_revision"], 20)
    found = follower.metrics()
    assert (found["vipu_controller_leads"], found[known]) == (0, 1)
    # No records: sums over all controllers count those of the leader once.
    assert {name.partition("{")[0] for name in found} - set(PROCESS) == {*OF_ALL, *OF_FOLLOWERS}
    assert {name.partition("{")[0] for name in of_leader} >= {*OF_ALL, "vipu_agents", "vipu_rpc_handled_total"}
    assert found["vipu_follower_silence_seconds"] < 10
    leader.kill()
    until(controllers.leader, 60, controllers.logs)
    assert sorted(each.metrics()["vipu_controller_leads"] for each in (follower, other)) == [0, 1]
    changes = "vipu_controller_leader_changes_total"
    until(lambda: follower.metrics()[changes] == found[changes] + 1, 20, "the follower counts the change")


@pytest.mark.parametrize("end", ["kill", "stop", "pause", "cut"])
def test_another_controller_takes_over(controllers: Controllers, end: str) -> None:
    former = controllers.wait_leader()
    add(former.address, "before")
    ends: dict[str, Callable[[], object]] = {
        "kill": former.kill,
        "stop": former.stop,
        "pause": former.pause,
        "cut": former.relay.cut,
    }
    ends[end]()
    leader = until(lambda: (each := controllers.leader()) and each is not former and each, 60, controllers.logs)
    assert agents(leader.address) == {"before"}
    add(leader.address, "after")
    if end == "pause":
        former.resume()
    if end == "cut":
        former.relay.heal()
    if end in ("pause", "cut"):
        until(former.follows, 90, "the former leader follows")
        with pytest.raises(grpc.RpcError):
            add(former.address, "late")
    assert agents(leader.address) == {"before", "after"}


def test_a_controller_with_the_address_of_the_leader_ends(url: str, tmp_path: Path) -> None:
    made = Controllers(tmp_path, url, hosts=["127.0.0.1"], options=["--advertise", "127.0.0.1"])
    try:
        leader = made.wait_leader()
        options = ("--host", "127.0.0.2", "--port", str(leader.port), "--store", url)
        ended = run(*options, "--advertise", "127.0.0.1")
        assert ended.returncode == 1
        assert f"another controller leads with the address {leader.address}" in ended.stderr
        assert "--advertise" in ended.stderr
        leader.kill()  # its key remains until the lease ends
        leader.start()
        made.wait_leader()
    finally:
        made.close()


def test_the_key_of_an_earlier_run_may_outlive_its_time_to_live(tmp_path: Path) -> None:
    slow = ("--heartbeat-interval", "800", "--election-timeout", "8000")  # etcd grants no lease below 12 s then
    etcd = EtcdCluster(tmp_path / "etcd", 1, *slow)
    try:
        made = Controllers(tmp_path, etcd.url, count=1)
        try:
            (controller,) = made.all
            controller.kill()
            controller.start()
            assert made.wait_leader() is controller
        finally:
            made.close()
    finally:
        etcd.stop()


def added(controllers: Controllers, id: str) -> bool:
    """Return whether the leader has registered an agent. Repeated calls are possible."""
    try:
        add(controllers.wait_leader().address, id)
    except grpc.RpcError:  # it has lost its lease during the election of etcd
        return False
    return True


def test_five_nodes_of_etcd_tolerate_the_loss_of_two(tmp_path: Path) -> None:
    etcd = EtcdCluster(tmp_path / "etcd", 5)
    try:
        made = Controllers(tmp_path, etcd.url, 2)
        try:
            add(made.wait_leader().address, "before")
            lost = sorted(etcd.nodes, key=etcd.leads)[-2:]  # with the leader of etcd
            for node in lost:
                node.kill()
            until(lambda: added(made, "during"), 90, made.logs)
            made.wait_leader().kill()
            until(lambda: added(made, "after"), 90, made.logs)
            assert agents(made.wait_leader().address) == {"before", "during", "after"}
            assert sum(node.responds() for node in etcd.nodes) == 3
        finally:
            made.close()
    finally:
        etcd.stop()


def test_a_store_without_records_is_rejected(url: str) -> None:
    ended = run("--store", url, "--port", "0")
    assert ended.returncode == 1
    assert "Create them with 'vipu-server --init --store" in ended.stderr


def test_a_store_without_etcd_is_rejected() -> None:
    ended = run("--init", "--store", "etcd://127.0.0.1:9")
    assert ended.returncode == 1
    assert "no node responds" in ended.stderr


def test_clients_with_several_addresses_follow_the_leader(controllers: Controllers) -> None:
    leader = controllers.wait_leader()
    others = [each.address for each in controllers.all if each is not leader]
    connection = Connection(host=",".join([*others, leader.address]), timeout=60)
    with Client(connection) as client:
        assert client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents == []
        leader.kill()
        # A change is not repeated when the connection ends without a response. A read is, and finds the new leader.
        assert client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents == []
        agent = admin.AgentSpec(id="new", host="new.invalid")
        assert client.call(client.admin.Apply, admin.ApplyRequest(agents=[agent])).applied
    listed = subprocess.run(
        [sys.executable, "-m", "openipu.vipu.cli.admin", "list", "agents", "-H", connection.host],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )
    assert "new.invalid" in listed.stdout, listed.stderr
