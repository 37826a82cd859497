# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects in the state of earlier code, written and read over the API."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
from aetcd import rpc
from google.protobuf.json_format import MessageToDict

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.storage.etcd import keys
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import Location, end_of
from tests.waiting import until

FOLDER = Path(__file__).parent
DATABASE, RECORDS, OBJECTS = (FOLDER / name for name in ("database.sql", "etcd.json", "objects.json"))
AGENTS = {f"ag{number}": f"127.85.0.{number}" for number in range(1, 5)}  # with their addresses
PORT = 8080


def create(address: str) -> None:
    """Create agents, which must run, a cluster, an allocation, a user and a partition."""
    with grpc.insecure_channel(address) as channel:
        stub = admin.stub(channel, "AdminService")
        request = admin.ApplyRequest(
            agents=[admin.AgentSpec(id=id, host=host, port=PORT, take_over=True) for id, host in AGENTS.items()],
            clusters=[admin.ClusterSpec(id="cl0", agent_ids=AGENTS, ipu_link_topology=2)],
            allocations=[admin.AllocationSpec(id="team", cluster_id="cl0", size=4)],
        )
        reply = stub.Apply(request, timeout=20)
        assert reply.applied, reply.results
        user = admin.UserSpec(id="alice", role=admin.Role.Value("ROLE_USER"))
        user.allocation_ids.append("team")
        stub.CreateUser(admin.CreateUserRequest(spec=user), timeout=20)
        requirements = virmgrpc.PartitionRequirements(id="training", size=8, allocation_id="team")
        created = virmgrpc.CreatePartitionRequest(requirements=requirements)
        until(lambda: _is_up(stub), 30, "the agents are up")
        virmgrpc.stub(channel, "UserService").CreatePartition(created, timeout=20)


def rename_user(address: str, id: str, name: str) -> None:
    """Replace a user by one with another name."""
    with grpc.insecure_channel(address) as channel:
        stub = admin.stub(channel, "AdminService")
        users = stub.ListUsers(admin.ListUsersRequest(), timeout=20).users
        spec = next(each for each in users if each.id == id)
        stub.RemoveUser(admin.RemoveRequest(id=id), timeout=20)
        spec.id = name
        stub.CreateUser(admin.CreateUserRequest(spec=spec), timeout=20)


def _is_up(stub: Any) -> bool:
    agents = stub.ListAgents(admin.ListAgentsRequest(), timeout=20).agents
    return all(each.state == admin.AgentState.Value("AGENT_STATE_UP") for each in agents)


def read(address: str) -> dict[str, Any]:
    """Return the specifications of all objects of a controller."""
    with grpc.insecure_channel(address) as channel:
        stub, tenant = admin.stub(channel, "AdminService"), admin.stub(channel, "TenantService")
        return {
            "agents": _specs(stub.ListAgents(admin.ListAgentsRequest(), timeout=20).agents),
            "clusters": _specs(stub.ListClusters(admin.ListClustersRequest(), timeout=20).clusters),
            "allocations": _specs(tenant.ListAllocations(admin.ListAllocationsRequest(), timeout=20).allocations),
            "users": _specs(stub.ListUsers(admin.ListUsersRequest(), timeout=20).users),
            "partitions": [
                each.partition_id
                for each in tenant.ListPartitionOptions(admin.ListPartitionOptionsRequest(), timeout=20).partitions
            ],
        }


def _specs(found: Iterable[Any]) -> list[dict[str, Any]]:
    return [MessageToDict(each.spec if "spec" in each.DESCRIPTOR.fields_by_name else each) for each in found]


def dump_database(path: Path) -> None:
    """Keep a database as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        DATABASE.write_text("\n".join(connection.iterdump()) + "\n")


def load_database(path: Path) -> None:
    """Write the database of the earlier code."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(DATABASE.read_text())


def dump_records(location: Location) -> None:
    """Keep all keys of a prefix without it, and their values."""
    found = _call(
        location, "Range", rpc.RangeRequest(key=location.prefix.encode(), range_end=end_of(location.prefix.encode()))
    )
    pairs = {
        pair.key.removeprefix(location.prefix.encode()).decode(): base64.b64encode(pair.value).decode()
        for pair in found.kvs
        if not pair.lease
    }
    RECORDS.write_text(json.dumps(pairs, indent=1, sort_keys=True) + "\n")


def load_records(url: str) -> None:
    """Write the keys of the earlier code below an empty prefix."""
    location = keys.parse(url)
    for name, value in json.loads(RECORDS.read_text()).items():
        key = f"{location.prefix}{name}".encode()
        _call(location, "Put", rpc.PutRequest(key=key, value=base64.b64decode(value)))


def _call(location: Location, method: str, request: Any) -> Any:
    client = EtcdClient(location)
    try:
        return client.call("KV", method, request, 10.0)
    finally:
        client.close()
