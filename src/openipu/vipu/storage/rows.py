# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between records and rows of the database. The tables are defined in ``migrations``."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from openipu.vipu.domain.model import (
    IPUS_PER_MACHINE,
    Agent,
    Allocation,
    Certificate,
    Cluster,
    Device,
    GwRouting,
    GwTopology,
    Kind,
    Operation,
    Partition,
    PlacedIpu,
    ReadyState,
    Record,
    RevokedKey,
    Role,
    Routing,
    SyncType,
    Topology,
    User,
)

Place = tuple[str, int]
"""Location of an IPU: agent id, number on the machine."""

Checksums = Mapping[str, int]
"""Checksums of records by id."""

_PARTITION_COLUMNS = (
    *("allocation", "routing", "gw_routing", "sync_type", "num_gcds", "num_replicas", "num_segments"),
    *("reconfigurable", "disable_auto_reset", "relocatable", "ready", "operation"),
    *("max_retries", "retries", "last_auto_reset"),
)
_DEVICE_COLUMNS = tuple(field.name for field in fields(Device))
_device_values = attrgetter(*_DEVICE_COLUMNS)


def _upsert(table: str, *columns: str) -> str:
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"{_insert(table, 'id', *columns)} ON CONFLICT (id) DO UPDATE SET {updates}"


def _insert(table: str, *columns: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608


_PUT_AGENT = _upsert("agents", "host", "port", "out_of_service", "service_reason", "checksum")
_PUT_CLUSTER = _upsert("clusters", "num_ilds", "topology", "gw_topology", "checksum")
_PUT_CLUSTER_AGENT = _insert("cluster_agents", "agent", "cluster", "position")
_PUT_ALLOCATION = _upsert("allocations", "cluster", "checksum")
_PUT_ALLOCATION_AGENT = _insert("allocation_agents", "agent", "allocation")
_PUT_PARTITION = _upsert("partitions", *_PARTITION_COLUMNS, "checksum")
_PUT_ERROR = _insert("partition_errors", "partition", "position", "message")
_PUT_IPU = _insert("partition_ipus", "agent", "ipu", "partition", "segment", "routing_id")
_PUT_DEVICE = _insert("devices", "agent", "ipu", *_DEVICE_COLUMNS)
_PUT_USER = _upsert("users", "role", "key_hash", "key_salt", "shared_certificate", "all_allocations", "checksum")
_PUT_CERTIFICATE = _insert("user_certificates", "key", "user", "position", "serial", "not_after", "revoked")
_PUT_REVOKED_KEY = _upsert("revoked_keys", "user", "serial", "not_after", "checksum")
_PUT_USER_ALLOCATION = _insert("user_allocations", "user", "position", "allocation")

# kind -> dependent rows, which are deleted before the object: (table, column with the id of the object)
_PARTS = {
    Kind.AGENT: (),
    Kind.CLUSTER: (("cluster_agents", "cluster"),),
    Kind.ALLOCATION: (("allocation_agents", "allocation"),),
    Kind.PARTITION: (("partition_ipus", "partition"), ("partition_errors", "partition")),
    Kind.USER: (("user_allocations", "user"), ("user_certificates", "user")),
    Kind.REVOKED_KEY: (),
}


def delete(connection: sqlite3.Connection, kind: Kind, ids: Sequence[str]) -> None:
    """Delete objects of one kind with their dependent rows."""
    _delete_parts(connection, kind, ids)
    connection.executemany(f"DELETE FROM {kind}s WHERE id = ?", [(id,) for id in ids])  # noqa: S608


def _delete_parts(connection: sqlite3.Connection, kind: Kind, ids: Sequence[str]) -> None:
    for table, column in _PARTS[kind]:
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(id,) for id in ids])  # noqa: S608


def put_agents(connection: sqlite3.Connection, agents: Sequence[Agent], checksums: Checksums) -> None:
    """Insert or update agents."""
    connection.executemany(
        _PUT_AGENT, [(a.id, a.host, a.port, a.out_of_service, a.service_reason, checksums[a.id]) for a in agents]
    )


def put_clusters(connection: sqlite3.Connection, clusters: Sequence[Cluster], checksums: Checksums) -> None:
    """Insert or update clusters."""
    _delete_parts(connection, Kind.CLUSTER, [cluster.id for cluster in clusters])
    connection.executemany(
        _PUT_CLUSTER, [(c.id, c.num_ilds, c.topology, c.gw_topology, checksums[c.id]) for c in clusters]
    )
    connection.executemany(
        _PUT_CLUSTER_AGENT,
        [(agent, cluster.id, position) for cluster in clusters for position, agent in enumerate(cluster.agents)],
    )


def put_allocations(connection: sqlite3.Connection, allocations: Sequence[Allocation], checksums: Checksums) -> None:
    """Insert or update allocations."""
    _delete_parts(connection, Kind.ALLOCATION, [allocation.id for allocation in allocations])
    connection.executemany(_PUT_ALLOCATION, [(a.id, a.cluster, checksums[a.id]) for a in allocations])
    connection.executemany(
        _PUT_ALLOCATION_AGENT,
        [(agent, allocation.id) for allocation in allocations for agent in allocation.agents],
    )


def put_users(connection: sqlite3.Connection, users: Sequence[User], checksums: Checksums) -> None:
    """Insert or update users."""
    _delete_parts(connection, Kind.USER, [user.id for user in users])
    connection.executemany(
        _PUT_USER,
        [
            (u.id, u.role, u.key_hash, u.key_salt, u.shared_certificate, u.all_allocations, checksums[u.id])
            for u in users
        ],
    )
    connection.executemany(
        _PUT_USER_ALLOCATION,
        [(user.id, position, id) for user in users for position, id in enumerate(user.allocations)],
    )
    connection.executemany(
        _PUT_CERTIFICATE,
        [
            (each.key, user.id, position, each.serial, each.not_after, each.revoked)
            for user in users
            for position, each in enumerate(user.certificates)
        ],
    )


def put_revoked_keys(connection: sqlite3.Connection, keys: Sequence[RevokedKey], checksums: Checksums) -> None:
    """Insert or update revoked keys."""
    connection.executemany(_PUT_REVOKED_KEY, [(k.id, k.user, k.serial, k.not_after, checksums[k.id]) for k in keys])


def put_partitions(
    connection: sqlite3.Connection,
    puts: Sequence[tuple[Partition, Partition | None, Sequence[Place]]],
    checksums: Checksums,
) -> None:
    """Insert or update partitions, each given with its stored record, if any, and the locations of its IPUs.

    Only differences are written: most updates of a partition change a few numbers in one row.
    """
    moved, devices, errors, stale = [], [], [], []
    for new, old, places in puts:
        move = old is None or old.ipus is not new.ipus
        if move:
            moved.append((new, places))
            if old is not None:
                stale.append(("partition_ipus", new.id))  # deletes the devices too
        elif old is not None and old.devices and old.devices is not new.devices:
            stale.append(("devices", new.id))
        if new.devices and (move or old is None or old.devices is not new.devices):
            devices.append((new, places))
        if old is not None and old.errors and old.errors != new.errors:
            stale.append(("partition_errors", new.id))
        if new.errors and (old is None or old.errors != new.errors):
            errors.append(new)
    _clear(connection, stale)
    connection.executemany(_PUT_PARTITION, [(*_partition_row(new), checksums[new.id]) for new, _, _ in puts])
    connection.executemany(
        _PUT_IPU,
        [
            (*place, new.id, ipu.ild_routing_id, ipu.routing_id)
            for new, places in moved
            for place, ipu in zip(places, new.ipus, strict=True)
        ],
    )
    connection.executemany(
        _PUT_DEVICE,
        [
            (*place, *_device_values(device))
            for new, places in devices
            for place, device in zip(places, new.devices, strict=True)
        ],
    )
    connection.executemany(
        _PUT_ERROR,
        [(new.id, position, message) for new in errors for position, message in enumerate(new.errors)],
    )


def _clear(connection: sqlite3.Connection, stale: Sequence[tuple[str, str]]) -> None:
    for table, id in stale:
        if table == "devices":
            connection.execute(
                "DELETE FROM devices WHERE (agent, ipu) IN (SELECT agent, ipu FROM partition_ipus WHERE partition = ?)",
                (id,),
            )
        else:
            connection.execute(f"DELETE FROM {table} WHERE partition = ?", (id,))  # noqa: S608


def _partition_row(partition: Partition) -> tuple[object, ...]:
    return (
        partition.id,
        partition.allocation,
        partition.routing,
        partition.gw_routing,
        partition.sync_type,
        partition.num_gcds,
        partition.num_replicas,
        partition.num_segments,
        partition.reconfigurable,
        partition.disable_auto_reset,
        partition.relocatable,
        partition.ready,
        partition.operation,
        partition.max_retries,
        partition.retries,
        partition.last_auto_reset,
    )


def read(connection: sqlite3.Connection) -> Iterator[Record]:
    """Yield all records. Raises KeyError, ValueError or IndexError for inconsistent rows."""
    for id, host, port, out, reason in connection.execute(
        "SELECT id, host, port, out_of_service, service_reason FROM agents"
    ):
        yield Agent(id, host, port, bool(out), reason)
    position_of, clusters = {}, {}
    agents_of = defaultdict(list)
    for agent, cluster, position in connection.execute(
        "SELECT agent, cluster, position FROM cluster_agents ORDER BY cluster, position"
    ):
        agents_of[cluster].append(agent)
        position_of[agent] = position
    for id, num_ilds, topology, gw_topology in connection.execute(
        "SELECT id, num_ilds, topology, gw_topology FROM clusters"
    ):
        clusters[id] = Cluster(id, tuple(agents_of[id]), num_ilds, Topology(topology), GwTopology(gw_topology))
        yield clusters[id]
    members = defaultdict(list)
    for agent, allocation in connection.execute("SELECT agent, allocation FROM allocation_agents"):
        members[allocation].append(agent)
    cluster_of = {}
    for id, cluster in connection.execute("SELECT id, cluster FROM allocations"):
        cluster_of[id] = clusters[cluster]
        yield Allocation(id, cluster, tuple(sorted(members[id], key=position_of.__getitem__)))
    yield from _read_partitions(connection, cluster_of, position_of)
    rights = defaultdict(list)
    for user, allocation in connection.execute("SELECT user, allocation FROM user_allocations ORDER BY user, position"):
        rights[user].append(allocation)
    certificates = defaultdict(list)
    for user, key, serial, not_after, revoked in connection.execute(
        "SELECT user, key, serial, not_after, revoked FROM user_certificates ORDER BY user, position"
    ):
        certificates[user].append(Certificate(key, serial, not_after, bool(revoked)))
    for id, role, key_hash, key_salt, shared, all_allocations in connection.execute(
        "SELECT id, role, key_hash, key_salt, shared_certificate, all_allocations FROM users"
    ):
        yield User(
            id,
            Role(role),
            tuple(rights[id]),
            key_hash,
            key_salt,
            tuple(certificates[id]),
            bool(shared),
            bool(all_allocations),
        )
    for id, user, serial, not_after in connection.execute("SELECT id, user, serial, not_after FROM revoked_keys"):
        yield RevokedKey(id, user, serial, not_after)


def _read_partitions(
    connection: sqlite3.Connection, cluster_of: dict[str, Cluster], position_of: dict[str, int]
) -> Iterator[Partition]:
    devices = {
        (agent, ipu): Device(*device)
        for agent, ipu, *device in connection.execute(
            f"SELECT agent, ipu, {', '.join(_DEVICE_COLUMNS)} FROM devices"  # noqa: S608
        )
    }
    places = defaultdict(list)
    for partition, agent, ipu, segment, routing_id in connection.execute(
        "SELECT partition, agent, ipu, segment, routing_id FROM partition_ipus ORDER BY partition, segment, routing_id"
    ):
        places[partition].append((agent, ipu, segment, routing_id))
    errors = defaultdict(list)
    for partition, message in connection.execute(
        "SELECT partition, message FROM partition_errors ORDER BY partition, position"
    ):
        errors[partition].append(message)
    query = f"SELECT id, {', '.join(_PARTITION_COLUMNS)} FROM partitions"  # noqa: S608
    for id, *columns in connection.execute(query):
        row = dict(zip(_PARTITION_COLUMNS, columns, strict=True))
        cluster = cluster_of[row["allocation"]]
        per_ild = cluster.machines_per_ild
        ipus = []
        for agent, ipu, segment, routing_id in places[id]:
            ild, machine = divmod(position_of[agent], per_ild)
            ipus.append(PlacedIpu(ild, segment, machine * IPUS_PER_MACHINE + ipu, routing_id))
        reported = [devices[agent, ipu] for agent, ipu, _, _ in places[id] if (agent, ipu) in devices]
        yield Partition(
            id=id,
            allocation=row["allocation"],
            cluster=cluster.id,
            ipus=tuple(ipus),
            routing=Routing(row["routing"]),
            gw_routing=GwRouting(row["gw_routing"]),
            sync_type=SyncType(row["sync_type"]),
            num_gcds=row["num_gcds"],
            num_replicas=row["num_replicas"],
            num_segments=row["num_segments"],
            reconfigurable=bool(row["reconfigurable"]),
            disable_auto_reset=bool(row["disable_auto_reset"]),
            relocatable=bool(row["relocatable"]),
            ready=ReadyState(row["ready"]),
            operation=Operation(row["operation"]),
            errors=tuple(errors[id]),
            max_retries=row["max_retries"],
            retries=row["retries"],
            last_auto_reset=row["last_auto_reset"],
            devices=tuple(reported),
        )
