# SPDX-License-Identifier: GPL-3.0-or-later
"""First tables.

References are checked at commit, because one transaction may remove and create again the object of a
reference. The location of a partition's IPU is stored once, as agent and number: this primary key keeps
an IPU out of a second partition.
"""

from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    """
    CREATE TABLE agents (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        port INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX agents_endpoint ON agents (lower(host), port)",
    """
    CREATE TABLE clusters (
        id TEXT PRIMARY KEY,
        num_ilds INTEGER NOT NULL CHECK (num_ilds > 0),
        topology TEXT NOT NULL,
        gw_topology TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE cluster_agents (
        agent TEXT PRIMARY KEY REFERENCES agents DEFERRABLE INITIALLY DEFERRED,
        cluster TEXT NOT NULL REFERENCES clusters DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL CHECK (position >= 0),
        UNIQUE (cluster, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE allocations (
        id TEXT PRIMARY KEY,
        cluster TEXT NOT NULL REFERENCES clusters DEFERRABLE INITIALLY DEFERRED
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX allocations_cluster ON allocations (cluster)",
    """
    CREATE TABLE allocation_agents (
        agent TEXT PRIMARY KEY REFERENCES cluster_agents DEFERRABLE INITIALLY DEFERRED,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX allocation_agents_allocation ON allocation_agents (allocation)",
    """
    CREATE TABLE partitions (
        id TEXT PRIMARY KEY,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED,
        routing INTEGER NOT NULL,
        gw_routing INTEGER NOT NULL,
        sync_type INTEGER NOT NULL,
        num_gcds INTEGER NOT NULL,
        num_replicas INTEGER NOT NULL,
        num_segments INTEGER NOT NULL,
        reconfigurable INTEGER NOT NULL,
        disable_auto_reset INTEGER NOT NULL,
        relocatable INTEGER NOT NULL,
        ready INTEGER NOT NULL,
        operation INTEGER NOT NULL,
        max_retries INTEGER NOT NULL,
        retries INTEGER NOT NULL,
        last_auto_reset REAL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX partitions_allocation ON partitions (allocation)",
    """
    CREATE TABLE partition_errors (
        partition TEXT NOT NULL REFERENCES partitions DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (partition, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE partition_ipus (
        agent TEXT NOT NULL REFERENCES allocation_agents DEFERRABLE INITIALLY DEFERRED,
        ipu INTEGER NOT NULL CHECK (ipu BETWEEN 0 AND 3),
        partition TEXT NOT NULL REFERENCES partitions DEFERRABLE INITIALLY DEFERRED,
        segment INTEGER NOT NULL,
        routing_id INTEGER NOT NULL,
        PRIMARY KEY (agent, ipu),
        UNIQUE (partition, segment, routing_id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE devices (
        agent TEXT NOT NULL,
        ipu INTEGER NOT NULL,
        ip TEXT NOT NULL,
        server_port INTEGER NOT NULL,
        rdma_port INTEGER NOT NULL,
        device_id INTEGER NOT NULL,
        ipu_arch_id INTEGER NOT NULL,
        chip_id TEXT NOT NULL,
        gwsw_version TEXT NOT NULL,
        ipum_sw_version TEXT NOT NULL,
        ipuof_server_version TEXT NOT NULL,
        PRIMARY KEY (agent, ipu),
        FOREIGN KEY (agent, ipu) REFERENCES partition_ipus ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE users (
        id TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        key_hash TEXT NOT NULL,
        key_salt TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE user_allocations (
        user TEXT NOT NULL REFERENCES users DEFERRABLE INITIALLY DEFERRED,
        position INTEGER NOT NULL,
        allocation TEXT NOT NULL REFERENCES allocations DEFERRABLE INITIALLY DEFERRED,
        PRIMARY KEY (user, position),
        UNIQUE (user, allocation)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX user_allocations_allocation ON user_allocations (allocation)",
)


def upgrade() -> None:
    """Create the tables."""
    for statement in TABLES:
        op.execute(statement)
