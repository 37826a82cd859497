# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes with the same effect when they are made twice: after a lost response, modules make them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.cli.settings import read_connection
from tests.ha.controllers import Controller, Controllers
from tests.ha.lost_replies import LostReply, disconnected_after, killed_after, killed_before, without_etcd
from tests.integration.collection.playbook import results
from tests.integration.vipu_servers import run

Task = dict[str, Any]
Fault = Callable[..., LostReply]

FAULTS = [killed_before, killed_after, without_etcd, disconnected_after]
REASON = "fan 2 fails"


def handled(controller: Controller, method: str) -> float:
    """Return the number of successful calls of a method."""
    samples = controller.metrics().items()
    return sum(value for name, value in samples if f'method="{method}"' in name and 'code="OK"' in name)


def play(
    controllers: Controllers,
    leader: Controller,
    fault: Fault,
    method: str,
    folder: Path,
    *tasks: Task,
    text: str = "",
    number: int = 1,
) -> list[dict[str, Any]]:
    """Run tasks with a fault at a request, and return their results. ``text``: in the request, if not the method."""
    (other,) = (each for each in controllers.all if each is not leader)

    def done() -> bool:
        return handled(leader, method) >= number

    (folder / "play").mkdir()
    with closing(fault(leader, text or f"/{method}", done, number)) as network:
        hosts = [network.address, leader.address, other.address]
        found = results(folder / "play", list(tasks), "--diff", controller={"api_host": ",".join(hosts), "timeout": 60})
        assert network.happened
    assert not [each for each in found if each["failed"]], found
    assert controllers.leader() is (leader if fault is disconnected_after else other)
    return found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [1, 2], ids=["plan", "change"])
def test_a_drain(controllers: Controllers, leader: Controller, tmp_path: Path, fault: Fault, number: int) -> None:
    with grpc.insecure_channel(leader.address) as channel:
        request = admin.SetPartitionOptionsRequest(partition_id="p0", relocatable=True)
        admin.stub(channel, "TenantService").SetPartitionOptions(request, timeout=10)
        listed = admin.stub(channel, "TenantService").ListAllocations(admin.ListAllocationsRequest(), timeout=10)
        partitions = virmgrpc.stub(channel, "UserService").ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10)
    assert [each.id for each in partitions.partitions] == ["p0"]
    first, second = listed.allocations[0].spec.agent_ids
    task = {"openipu.pod.vipu_agent_drain": {"id": first, "service_reason": REASON, "force": True}}
    made, again = play(controllers, leader, fault, "DrainAgent", tmp_path, task, task, text=REASON, number=number)
    assert [each["changed"] for each in (made, again)] == [True, False]
    assert [(each["id"], each["moves"], each["agents"]) for each in made["partitions"]] == [("p0", True, [second])]
    assert made["remaining"] == again["partitions"] == []
    assert made["diff"] == {"before": {"partitions": ["p0"]}, "after": {"partitions": []}}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reset(controllers: Controllers, leader: Controller, tmp_path: Path, fault: Fault) -> None:
    task = {"openipu.pod.vipu_partition": {"id": "p0", "state": "reset"}}
    (made,) = play(controllers, leader, fault, "ResetPartition", tmp_path, task)
    assert made["changed"]
    assert made["partition"]["state"] == "ACTIVE"


@pytest.mark.parametrize("fault", [killed_before, killed_after, disconnected_after])  # a test does not need etcd
def test_a_cluster_test(controllers: Controllers, leader: Controller, tmp_path: Path, fault: Fault) -> None:
    task = {"openipu.pod.vipu_cluster_test": {"cluster": "cl0", "tests": ["Cabling", "Version"]}}
    made, again = play(controllers, leader, fault, "StartClusterTest", tmp_path, task, task)
    assert [each["changed"] for each in (made, again)] == [True, False]
    assert [each["ok"] for each in (made, again)] == [True, True]
    if fault is disconnected_after:
        assert handled(leader, "StartClusterTest") == 1, "the module starts a test again that has begun"


def test_a_cluster_test_whose_leader_fails(controllers: Controllers, leader: Controller, tmp_path: Path) -> None:
    """The fault begins when the module waits for the results."""
    task = {"openipu.pod.vipu_cluster_test": {"cluster": "cl0", "tests": ["Cabling"], "force": True}}
    (made,) = play(controllers, leader, killed_before, "GetClusterTest", tmp_path, task)
    assert made["ok"]


@pytest.fixture
def secure(url: str, tmp_path: Path) -> Iterator[Controllers]:
    """Two secure controllers, with their certificates in the folder ``certs``."""
    certs = tmp_path / "certs"
    database = ("--database", str(tmp_path / "vipu-server.db"))
    created = run("--init", "--secure", "--tls-init", str(certs), "--store", url, *database)
    assert created.returncode == 0, created.stderr
    files = [(certs / "client" / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")]
    made = Controllers(
        tmp_path,
        url,
        2,
        options=("--secure", "--certs", str(certs)),
        initialise=False,
        credentials=grpc.ssl_channel_credentials(*files),
    )
    yield made
    made.close()


@pytest.mark.parametrize("fault", [killed_before, killed_after, disconnected_after])
@pytest.mark.parametrize("method", ["AddCertificate", "RevokeCertificate"])
def test_certificates(secure: Controllers, tmp_path: Path, fault: Fault, method: str) -> None:
    certs, leader = tmp_path / "certs", secure.wait_leader()
    (other,) = (each for each in secure.all if each is not leader)
    connection = read_connection(tmp_path / "admin.vipu-cli.hcl")
    folder = tmp_path / "play"
    folder.mkdir()
    user = {"id": "alice", "allocations": [], "config_dest": str(folder / "alice.hcl")}

    def done() -> bool:
        return handled(leader, method) >= 1

    with closing(fault(leader, f"/{method}", done, certs=certs)) as network:
        controller = {
            "api_host": f"{network.address},{leader.address},{other.address}",
            "api_user_id": connection.user_id,
            "api_access_key": connection.access_key,
            "ca_path": str(certs / "client/ca.crt"),
            "client_cert": str(certs / "client/client.crt"),
            "client_key": str(certs / "client/client.key"),
            "timeout": 60,
        }
        tasks = [
            {"openipu.pod.vipu_user": user, "register": "made"},
            {"openipu.pod.vipu_user": user},
            {
                "openipu.pod.vipu_user": {
                    **user,
                    "revoked_certificates": "{{ made.certificates | map(attribute='key') }}",
                }
            },
        ]
        found = results(folder, tasks, controller=controller)
        assert network.happened
    assert not [each for each in found if each["failed"]], found
    made, again, renewed = found
    assert [each["changed"] for each in (made, again, renewed)] == [True, False, True]
    assert [each["revoked"] for each in made["certificates"]] == [False]
    assert sorted(each["revoked"] for each in renewed["certificates"]) == [False, True]
    assert (folder / "alice.crt").exists()
