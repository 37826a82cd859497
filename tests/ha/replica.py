# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a controller on etcd, in this process."""

from __future__ import annotations

from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys, Location
from openipu.vipu.storage.etcd.mirror import Mirror
from openipu.vipu.storage.etcd.store import EtcdStore


class Replica:
    """Follower that can become the leader."""

    def __init__(self, location: Location, ttl: int = 3) -> None:
        self.client = EtcdClient(location)
        self.keys = Keys(location.prefix)
        self.mirror = Mirror(self.client, self.keys)
        self.leadership = Leadership(self.client, self.keys, {"user": "127.0.0.1:1"}, ttl)
        self.mirror.start()

    def lead(self) -> EtcdStore:
        """Win the election and return the store."""
        assert self.leadership.campaign()
        return EtcdStore(self.client, self.keys, self.mirror, self.leadership)

    def close(self) -> None:
        self.mirror.stop()
        self.leadership.resign()
        self.client.close()
