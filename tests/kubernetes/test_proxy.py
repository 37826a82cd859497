# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU proxy at a real API server and real V-IPU controllers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.domain import reserved, tracking
from openipu.kubernetes.domain.tracking import Owner, Phase, Record
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess, InstantLife, listed, partition
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxies import OPERATOR, Proxy, token
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.waiting import until


def reserve(proxy: Proxy, job: str = "job", size: int = 4, uid: str = "", instance: int = 0) -> tuple[int, Any]:
    """Reserve a partition for a job, which need not exist."""
    path = f"/v1/jobs/{proxy.cluster.namespace}/{job}/partitions/{instance}"
    return proxy.as_operator("PUT", path, {"uid": uid or create_job(proxy, job), "size": size, "workers": 1})


def release(proxy: Proxy, uid: str, job: str = "job") -> int:
    path = f"/v1/jobs/{proxy.cluster.namespace}/{job}/partitions?uid={uid}"
    return proxy.as_operator("DELETE", path)[0]


def create_job(proxy: Proxy, name: str) -> str:
    """Create a job, if it does not exist, and return its UID."""
    cluster = proxy.cluster
    if cluster.run("get", "ipujob", name).returncode:
        cluster.create({**first_form(), "metadata": {"name": name, "namespace": cluster.namespace}})
    uid: str = cluster.get("ipujob", name)["metadata"]["uid"]
    return uid


def partitions(server: InProcess) -> set[str]:
    return listed(server)


def test_answers_are_as_published(proxy: Proxy) -> None:
    status, _ = reserve(proxy)
    assert status == 200
    namespace = proxy.cluster.namespace
    usage = {"used": 4, "available": 28}
    until(lambda: proxy.call("GET", "/stats") == (200, {namespace: usage, "total": usage}))
    assert proxy.call("POST", "/query", {"size": 2}) == (200, {"available": True, "numOfPartitions": 14, "message": ""})
    assert proxy.call("POST", "/query", {"size": 64}) == (200, {"available": True, "numOfPartitions": 0, "message": ""})
    answer = proxy.call("POST", "/query", {"size": 3})[1]
    assert answer["available"] is False
    assert answer["message"] == "A partition cannot have 3 IPUs. Use a power of two up to 64."


def test_the_api_is_described(proxy: Proxy) -> None:
    status, description = proxy.call("GET", "/openapi.json")
    assert status == 200
    assert {"/health", "/stats", "/query", "/v1/self/partition"} <= set(description["paths"])


def test_life_of_a_partition(proxy: Proxy) -> None:
    uid = create_job(proxy, "job")
    first = reserve(proxy, uid=uid)
    id = f"p-job-{proxy.cluster.namespace}-0"
    host, _, port = proxy.vipu.address.rpartition(":")
    assert first == (
        200,
        {
            "id": id,
            "size": 4,
            "host": host,
            "port": int(port),
            "nodeLabel": {"key": "ipunode", "value": "node1"},
            "routing": "DNC",
            "state": "",
            "errors": [],
        },
    )
    assert reserve(proxy, uid=uid) == first
    assert partitions(proxy.vipu) == {id}
    found = proxy.records()
    assert {key: found[id][key] for key in ("uid", "name", "size", "phase")} == {
        "uid": uid,
        "name": "job",
        "size": 4,
        "phase": "reserved",
    }
    status, answer = proxy.as_operator("POST", f"/v1/jobs/{proxy.cluster.namespace}/job/partitions/0/reset?uid={uid}")
    assert (status, answer["state"]) == (200, "ACTIVE")
    assert release(proxy, uid) == 204
    assert partitions(proxy.vipu) == set()
    assert proxy.records() == {}
    assert release(proxy, uid) == 204


def test_partitions_of_another_size_replace_the_former(proxy: Proxy) -> None:
    uid = create_job(proxy, "job")
    reserve(proxy, uid=uid, size=4)
    status, found = reserve(proxy, uid=uid, size=8)
    assert (status, found["size"]) == (200, 8)
    until(lambda: partitions(proxy.vipu) == {found["id"]})


def test_full_controllers(proxy: Proxy) -> None:
    assert reserve(proxy, "big", 32)[0] == 200
    status, answer = reserve(proxy, "small", 1)
    assert status == 409
    assert answer == {"reason": "NoCapacity", "message": "No V-IPU controller has 1 free IPU for a partition."}
    assert len(proxy.records()) == 1


def test_the_next_controller_with_room_is_used(proxy: Proxy, vipu: Callable[..., InProcess]) -> None:
    second = vipu()
    proxy.kill()
    proxy.controllers.write_text(f"{proxy.vipu.address}:a=1,127.0.0.1:9:b=2,{second.address}:c=3")
    proxy.start()
    assert reserve(proxy, "first", 32)[1]["nodeLabel"] == {"key": "a", "value": "1"}
    assert reserve(proxy, "second", 32)[1]["nodeLabel"] == {"key": "c", "value": "3"}
    status, answer = reserve(proxy, "third", 1)
    assert status == 409
    assert "No V-IPU controller has 1 free IPU for a partition." in answer["message"]
    assert "127.0.0.1:9" in answer["message"]


def test_no_controller_responds(proxy: Proxy) -> None:
    proxy.vipu.stop()
    status, answer = reserve(proxy)
    assert (status, answer["reason"]) == (503, "Unavailable")
    found = proxy.call("POST", "/query", {"size": 1})[1]
    assert found["available"] is False
    # There is no answer, or a connection in progress is reset.
    assert f"the V-IPU controller at {proxy.vipu.address} " in found["message"]
    assert proxy.records() == {}


def test_records_survive_a_killed_proxy(proxy: Proxy) -> None:
    uid = create_job(proxy, "job")
    found = reserve(proxy, uid=uid)
    proxy.kill()
    proxy.start()
    assert reserve(proxy, uid=uid) == found
    assert release(proxy, uid) == 204
    assert partitions(proxy.vipu) == set()


@pytest.mark.parametrize("created", [False, True])
@pytest.mark.parametrize("phase", [Phase.RESERVING, Phase.RELEASING])
def test_a_killed_proxy_continues(proxy: Proxy, phase: Phase, created: bool) -> None:
    uid = create_job(proxy, "job")
    proxy.kill()
    owner = Owner("IPUJob", proxy.cluster.namespace, "job", uid)
    record = Record("p-left", owner, 0, 4, 1, proxy.vipu.address, phase)
    if created:
        proxy.vipu.user.CreatePartition(partition("p-left", 4, num_gcds=1))
    patch = json.dumps({"data": {record.id: record.encoded()}})
    proxy.cluster.kubectl("patch", "configmap", "ipu-partitions-tracker", "--type=merge", f"--patch={patch}")
    proxy.start()
    status, found = reserve(proxy, uid=uid)
    assert status == 200
    until(lambda: partitions(proxy.vipu) == {found["id"]})
    until(lambda: set(proxy.records()) == {found["id"]})
    assert (found["id"] == "p-left") == (phase is Phase.RESERVING and created)


def test_partitions_of_others_stay(proxy: Proxy) -> None:
    taken = f"p-job-{proxy.cluster.namespace}-0"
    proxy.vipu.user.CreatePartition(partition(taken, 2))
    uid = create_job(proxy, "job")
    status, found = reserve(proxy, uid=uid)
    assert status == 200
    assert found["id"] != taken
    assert tracking.find([tracking.decode(id, json.dumps(each)) for id, each in proxy.records().items()], uid, 0)
    assert release(proxy, uid) == 204
    assert partitions(proxy.vipu) == {taken}


def test_lost_partitions_are_created_again(proxy: Proxy) -> None:
    uid = create_job(proxy, "job")
    id = reserve(proxy, uid=uid)[1]["id"]
    proxy.vipu.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id))

    def state() -> str:
        (found,) = proxy.as_operator("GET", "/v1/partitions")[1]
        return str(found["state"])

    until(lambda: state() == "REMOVED")
    assert reserve(proxy, uid=uid)[0] == 200
    until(lambda: state() == "ACTIVE")


def test_partitions_without_owners_are_released(proxy: Proxy) -> None:
    kept = reserve(proxy, "kept")[1]["id"]
    reserve(proxy, "gone")
    reserve(proxy, "never", uid=str(uuid.uuid4()))
    proxy.vipu.user.CreatePartition(partition("foreign"))
    proxy.cluster.kubectl("delete", "ipujob", "gone")
    until(lambda: partitions(proxy.vipu) == {kept, "foreign"})
    until(lambda: set(proxy.records()) == {kept})


def test_partitions_are_released_when_the_controller_responds_again(proxy: Proxy, tmp_path: Path) -> None:
    uid = create_job(proxy, "job")
    reserve(proxy, uid=uid)
    address = proxy.vipu.endpoints[0]
    proxy.vipu.stop()
    assert release(proxy, uid) == 202
    assert [each["phase"] for each in proxy.records().values()] == ["releasing"]
    again = InProcess(tmp_path / "vipu-0.db", InstantLife, user=address)
    try:
        until(lambda: proxy.records() == {}, 60)
        assert partitions(again) == set()
    finally:
        again.stop()


def test_a_deleted_tracker_is_written_again(proxy: Proxy) -> None:
    first = reserve(proxy, "first")[1]["id"]
    proxy.cluster.kubectl("delete", "configmap", "ipu-partitions-tracker")
    second = reserve(proxy, "second")[1]["id"]
    assert set(proxy.records()) == {first, second}


def test_the_list_of_controllers_is_read_again(proxy: Proxy, vipu: Callable[..., InProcess]) -> None:
    second = vipu()
    uid = create_job(proxy, "job")
    reserve(proxy, uid=uid)
    proxy.controllers.write_text(f"{second.address}:ipunode=node2\n")
    until(lambda: "controllers read again" in proxy.log, 40)
    assert reserve(proxy, "other")[1]["nodeLabel"] == {"key": "ipunode", "value": "node2"}
    assert release(proxy, uid) == 204  # at the controller that has left the list
    assert partitions(proxy.vipu) == set()


def test_an_invalid_list_of_controllers_changes_nothing(proxy: Proxy) -> None:
    proxy.controllers.write_text("nonsense\n")
    until(lambda: "cannot use the list of controllers" in proxy.log, 40)
    assert reserve(proxy)[0] == 200


@pytest.mark.parametrize(
    ("account", "audience", "status", "reason"),
    [
        (None, "", 401, "Unauthenticated"),
        (OPERATOR, "https://kubernetes.default.svc", 401, "Unauthenticated"),
        ("default", "gc-proxy", 403, "Forbidden"),
        (OPERATOR, "gc-proxy", 200, ""),
    ],
)
def test_accounts(proxy: Proxy, account: str | None, audience: str, status: int, reason: str) -> None:
    found = token(proxy.cluster, account, audience) if account else ""
    path = f"/v1/jobs/{proxy.cluster.namespace}/job/partitions/0"
    answer = proxy.call("PUT", path, {"uid": create_job(proxy, "job"), "size": 1, "workers": 1}, found)
    assert answer[0] == status
    assert answer[1].get("reason", "") == reason


def test_operators_of_other_namespaces_are_rejected(proxy: Proxy) -> None:
    other = f"{proxy.cluster.namespace}-other"
    elsewhere = Cluster(proxy.cluster.kubectl_program, proxy.cluster.kubeconfig, other)
    elsewhere.create_namespace()
    elsewhere.create_account(OPERATOR)
    assert proxy.call("GET", "/v1/partitions", token=token(elsewhere, OPERATOR))[0] == 403


def test_a_launcher_resets_the_partition_of_its_job(proxy: Proxy) -> None:
    cluster, uid = proxy.cluster, create_job(proxy, "job")
    cluster.create_account("job-launcher")
    owner = {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "name": "job", "uid": uid}
    cluster.create(
        launcher(cluster, "job-launcher", {"graphcore.ai/role": "launcher"}, [owner]),
        launcher(cluster, "job-worker-0", {"graphcore.ai/role": "worker"}, [owner]),
        launcher(cluster, "stranger", {"graphcore.ai/role": "launcher"}, []),
    )

    def call(method: str, name: str) -> tuple[int, Any]:
        bound = token(cluster, "job-launcher", pod=cluster.get("pod", name))
        return proxy.call(method, "/v1/self/partition", token=bound)

    assert call("PUT", "job-launcher")[0] == 404
    reserve(proxy, uid=uid)
    status, found = call("PUT", "job-launcher")
    assert (status, found["state"]) == (200, "ACTIVE")
    assert call("GET", "job-launcher") == (status, found)
    assert call("PUT", "job-worker-0")[0] == 403
    assert call("PUT", "stranger")[0] == 403
    assert proxy.call("PUT", "/v1/self/partition", token=token(cluster, "job-launcher"))[0] == 403
    assert [call("DELETE", "job-worker-0")[0], call("DELETE", "stranger")[0]] == [403, 403]
    assert partitions(proxy.vipu) == {found["id"]}
    assert call("DELETE", "job-launcher") == (204, None)
    assert (partitions(proxy.vipu), proxy.records()) == (set(), {})
    status, answer = call("DELETE", "job-launcher")
    assert (status, answer["reason"]) == (404, "NotFound")


def test_a_pod_cannot_use_the_partition_of_another_namespace(proxy: Proxy) -> None:
    uid = create_job(proxy, "job")
    reserve(proxy, uid=uid)
    other = replace(proxy.cluster, namespace=f"{proxy.cluster.namespace}-attacker")
    other.kubectl("create", "namespace", other.namespace)
    other.kubectl("create", "serviceaccount", "job-launcher")
    owner = {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "name": "job", "uid": uid}
    labels = {reserved.ROLE_LABEL: reserved.LAUNCHER_ROLE, reserved.INSTANCE_LABEL: "0"}
    pods = [
        launcher(other, "thief", labels, [owner]),
        launcher(other, "odd", {**labels, reserved.INSTANCE_LABEL: "x"}, [owner]),
    ]
    for each in pods:  # the garbage collector would delete it: its owner is not in this namespace
        each["metadata"]["finalizers"] = ["example.com/keep"]
    other.create(*pods)

    def call(method: str, name: str) -> int:
        bound = token(other, "job-launcher", pod=other.get("pod", name))
        return proxy.call(method, "/v1/self/partition", token=bound)[0]

    try:
        methods = ("PUT", "GET", "DELETE")
        assert [call(each, "thief") for each in methods] == [404, 404, 404]
        assert [call(each, "odd") for each in methods] == [403, 403, 403]
        assert len(partitions(proxy.vipu)) == 1
    finally:
        for each in pods:
            name = each["metadata"]["name"]
            other.kubectl("patch", "pod", name, "--type=merge", '--patch={"metadata":{"finalizers":[]}}')


@pytest.mark.parametrize("size", [1 << 31, 1 << 40, -4])
def test_a_query_with_an_impossible_size(proxy: Proxy, size: int) -> None:
    status, answer = proxy.call("POST", "/query", {"size": size})
    assert (status, answer["available"]) == (200, False)
    assert answer["message"] == f"A partition cannot have {size} IPUs. Use a power of two up to 64."


def test_large_bodies_are_rejected(proxy: Proxy) -> None:
    for path in ("/query", "/v1/partitions", "/missing"):
        status, answer = proxy.call("POST", path, {"size": 1, "padding": "x" * 300_000})
        assert (status, answer["reason"]) == (413, "TooLarge"), path


def test_a_partition_that_no_controller_can_have(proxy: Proxy) -> None:
    status, answer = reserve(proxy, size=64)
    assert (status, answer["reason"]) == (409, "TooLarge")
    assert "The largest possible one has 32." in answer["message"]


def launcher(cluster: Cluster, name: str, labels: dict[str, str], owners: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": cluster.namespace, "labels": labels, "ownerReferences": owners},
        "spec": {"serviceAccountName": "job-launcher", "containers": [{"name": "main", "image": "image"}]},
    }


def test_concurrent_reservations_give_each_ipu_once(proxy: Proxy) -> None:
    uids = [str(uuid.uuid4()) for _ in range(40)]
    key = token(proxy.cluster, OPERATOR)

    def ask(number: int) -> int:
        path = f"/v1/jobs/{proxy.cluster.namespace}/job-{number}/partitions/0"
        return proxy.call("PUT", path, {"uid": uids[number], "size": 1, "workers": 1}, key)[0]

    proxy.kill()
    proxy.options = ("--sweep-seconds", "3600")
    proxy.start()
    with ThreadPoolExecutor(20) as pool:
        answers = sorted(pool.map(ask, range(40)))
    assert answers == [200] * 32 + [409] * 8
    assert len(proxy.records()) == len(partitions(proxy.vipu)) == 32


def test_stop(proxy: Proxy) -> None:
    assert proxy.stop() == 0


def test_a_missing_list_of_controllers_is_one_sentence(
    cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]
) -> None:
    proxy = Proxy(cluster, tmp_path, vipu())
    with pytest.raises(AssertionError):
        proxy.start()
    assert proxy.log.splitlines()[-1].startswith("Error OPU620: ")
    assert "Traceback" not in proxy.log
