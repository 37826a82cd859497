# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a transaction that is larger than the limits of etcd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import Keys, end_of
from openipu.vipu.storage.etcd.mirror import DamagedError

Operation = tuple[bytes, str | None]
"""Key and its new value, None to delete it."""
Item = TypeVar("Item")


_encode = json.JSONEncoder(separators=(",", ":")).encode


def values(operations: Sequence[Operation], size: int) -> Iterator[str]:
    """Return the value of each part, with at most ``size`` bytes or one larger operation.

    Encoded operations are larger than their keys and values: quotes and backslashes are escaped once more.
    """
    encoded = (_encode((key.decode(), value)) for key, value in operations)
    for part in split(encoded, lambda operation: len(operation) + 1, size - 1, len(operations)):
        yield f"[{','.join(part)}]"


def split(items: Iterable[Item], size_of: Callable[[Item], int], size: int, count: int) -> Iterator[list[Item]]:
    """Split items into lists with at most ``count`` items and ``size`` bytes, or one larger item."""
    part: list[Item] = []
    used = 0
    for item in items:
        needed = size_of(item)
        if part and (len(part) >= count or used + needed > size):
            yield part
            part, used = [], 0
        part.append(item)
        used += needed
    if part:
        yield part


def read(client: EtcdClient, keys: Keys, staged: dict[str, Any], revision: int = 0) -> list[Operation]:
    """Return the operations of a committed transaction.

    ``staged``: its name and number of parts, from ``head``. ``revision``: revision of etcd, 0 for the present one.
    Raises StoreError when a part is missing or damaged.
    """
    first = keys.staged_parts(staged["name"])
    request = rpc.RangeRequest(key=first, range_end=end_of(first), revision=revision)
    found = client.call("KV", "Range", request, 10.0).kvs
    if len(found) != staged["parts"]:
        raise DamagedError("Parts of a transaction are missing.")
    operations: list[Operation] = []
    try:
        for key, value in (operation for part in found for operation in json.loads(part.value)):
            if not isinstance(key, str) or not isinstance(value, str | None):
                raise damaged_operation(key, "it is not text")
            (value or "").encode()  # raises ValueError for text that etcd cannot store
            operations.append((key.encode(), value))
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedError(f"A part of a transaction cannot be read: {error}.") from None
    return operations


def damaged_operation(key: object, fault: object) -> DamagedError:
    """Return the error for an operation of a committed transaction that cannot be executed."""
    return DamagedError(f"A committed transaction has the key {key!r} with a damaged name or value: {fault}.")
