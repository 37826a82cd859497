# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of the partitions that jobs and pods own. They are the data of a ConfigMap: partition id -> text.

A record is written before its partition is created, and removed after its partition is. So no partition of a job is
ever without a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from openipu.kubernetes.domain import names

MAX_BYTES = 900_000  # of all records; the API server rejects ConfigMaps of more than 1 MiB


class Phase(Enum):
    """Progress of a partition."""

    RESERVING = "reserving"  # it may exist
    RESERVED = "reserved"
    RELEASING = "releasing"  # it may still exist


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of partitions. Its UID decides, because names can be used again."""

    kind: str  # IPUJob or Pod
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Record:
    """A partition of an owner."""

    id: str
    owner: Owner
    instance: int
    size: int
    workers: int
    controller: str  # its address
    phase: Phase = Phase.RESERVING

    def encoded(self) -> str:
        """Return the text of the record."""
        owner = self.owner
        fields = {
            "kind": owner.kind,
            "namespace": owner.namespace,
            "name": owner.name,
            "uid": owner.uid,
            "instance": self.instance,
            "size": self.size,
            "workers": self.workers,
            "controller": self.controller,
            "phase": self.phase.value,
        }
        return json.dumps(fields, separators=(",", ":"))


def decode(id: str, text: str) -> Record:
    """Return a record. Raises ValueError when the text is no record."""
    try:
        fields = json.loads(text)
        owner = Owner(fields["kind"], fields["namespace"], fields["name"], fields["uid"])
        size, workers = int(fields["size"]), int(fields["workers"])
        return Record(id, owner, int(fields["instance"]), size, workers, fields["controller"], Phase(fields["phase"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"The record of partition {id!r} is damaged: {error}.") from None


def find(records: Iterable[Record], uid: str, instance: int) -> Record | None:
    """Return the record of an instance of an owner."""
    return next((each for each in records if each.owner.uid == uid and each.instance == instance), None)


def partition_id(owner: Owner, instance: int, cluster: str, used: Mapping[str, object]) -> str:
    """Return the id of a new partition.

    It is the published one, unless that is in ``used``: then another job, or a job of another Kubernetes cluster, has
    it. ``cluster``: a value that identifies the Kubernetes cluster.
    """
    name = owner.namespace, owner.name
    published = names.partition(name, instance)
    return published if published not in used else names.unique_partition(name, instance, f"{cluster}/{owner.uid}")


def used_ipus(records: Iterable[Record]) -> dict[str, int]:
    """Return namespace -> number of IPUs of its jobs and pods."""
    used: dict[str, int] = {}
    for each in records:
        used[each.owner.namespace] = used.get(each.owner.namespace, 0) + each.size
    return dict(sorted(used.items()))
