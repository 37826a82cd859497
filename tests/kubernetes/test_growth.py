# SPDX-License-Identifier: GPL-3.0-or-later
"""Work of the proxy per partition, while the number of partitions grows."""

from __future__ import annotations

import asyncio
import json
import uuid

from openipu.kubernetes.cluster.client import CONFIG_MAPS, Client, Object, Resource, open_client
from openipu.kubernetes.domain.tracking import Owner, Phase, Record
from openipu.kubernetes.proxy.tracker import Tracker
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxies import Proxy
from tests.unit.kubernetes.domain.ipujobs import first_form

FEW, MANY = 10, 400  # partitions


def test_the_answer_to_a_write_of_the_tracker_does_not_grow(cluster: Cluster) -> None:
    sizes: list[int] = []

    class Measured(Client):
        async def patch_only(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
            answer = await super().patch_only(resource, namespace, name, patch)
            sizes.append(len(json.dumps(answer)))
            return answer

    async def body() -> None:
        async with await open_client(str(cluster.kubeconfig)) as client, Measured(client._configuration) as measured:
            tracker = Tracker(measured, cluster.namespace, "tracker")
            await tracker.load()
            for count in (FEW, MANY - FEW, 1):
                records = [record() for _ in range(count)]
                await tracker.write({each.id: each for each in records})
            found = await client.get(CONFIG_MAPS, cluster.namespace, "tracker")
            assert len(found["data"]) == MANY + 1

    asyncio.run(body())
    assert len(sizes) == 3
    assert max(sizes) < 1.1 * min(sizes), sizes


def record() -> Record:
    """Return the record of a new partition."""
    uid = str(uuid.uuid4())
    return Record(f"p-{uid}", Owner("IPUJob", "default", uid, uid), 0, 1, 1, "pod001:8090", Phase.RESERVED)


def test_partitions_of_jobs_and_pods_are_listed_apart(proxy: Proxy) -> None:
    cluster, namespace = proxy.cluster, proxy.cluster.namespace
    spec = {"containers": [{"name": "main", "image": "main"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": namespace}, "spec": spec}
    cluster.create({**first_form(), "metadata": {"name": "job", "namespace": namespace}}, pod)
    uids = {kind: cluster.get(kind, kind.removeprefix("ipu"))["metadata"]["uid"] for kind in ("ipujob", "pod")}
    bodies = {
        "jobs/{}/job/partitions/0": {"uid": uids["ipujob"], "size": 1, "workers": 1},
        "pods/{}/pod/partition": {"uid": uids["pod"], "size": 1, "nodeLabels": {"ipunode": "node1"}},
    }
    for path, body in bodies.items():
        status, answer = proxy.as_operator("PUT", f"/v1/{path.format(namespace)}", body)
        assert status == 200, answer

    def names(query: str) -> list[str]:
        status, found = proxy.as_operator("GET", f"/v1/partitions{query}")
        assert status == 200, found
        return sorted(each["name"] for each in found)

    assert names("?kind=IPUJob") == ["job"]
    assert names("?kind=Pod") == ["pod"]
    assert names("") == ["job", "pod"]
    assert proxy.as_operator("GET", "/v1/partitions?kind=Node")[0] == 422
