# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a transaction that is larger than the limits of etcd."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import Keys, end_of
from openipu.vipu.storage.etcd.mirror import damaged

Operation = tuple[bytes, str | None]
"""Key and its new value, None to delete it."""


def encode(operations: Sequence[Operation]) -> str:
    """Return the value of a part."""
    return json.dumps([(key.decode(), value) for key, value in operations], separators=(",", ":"))


def read(client: EtcdClient, keys: Keys, staged: dict[str, Any], revision: int = 0) -> list[Operation]:
    """Return the operations of a committed transaction.

    ``staged``: its name and number of parts, from ``head``. ``revision``: revision of etcd, 0 for the present one.
    Raises StoreError when a part is missing or damaged.
    """
    first = keys.staged_parts(staged["name"])
    request = rpc.RangeRequest(key=first, range_end=end_of(first), revision=revision)
    found = client.call("KV", "Range", request, 10.0).kvs
    if len(found) != staged["parts"]:
        raise damaged("Parts of a transaction are missing.")
    try:
        return [(key.encode(), value) for part in found for key, value in json.loads(part.value)]
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(f"A part of a transaction cannot be read: {error}.") from None
