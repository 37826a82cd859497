# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the leader: guarded, repeated until their result is known, and atomic beyond the limits of etcd."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from aetcd import rpc

from openipu.vipu.storage.etcd import staged
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError, EtcdUnavailableError
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys, end_of
from openipu.vipu.storage.etcd.staged import Operation
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoreError

MAX_OPERATIONS = 128  # of one transaction, the default of etcd (--max-txn-ops)
MAX_BYTES = 1 << 20  # of one transaction; etcd accepts 1.5 MiB (--max-request-bytes) including names and guards
_PARALLEL = 4  # transactions that execute staged operations
_RETRY_SECONDS = 0.05

_log = structlog.get_logger("openipu.vipu.storage.etcd")


class GuardedWriter:
    """Transactions of the leader. Use it from one thread at a time."""

    def __init__(self, client: EtcdClient, keys: Keys, leadership: Leadership, head_revision: int) -> None:
        """Write as the leader. ``head_revision``: revision of etcd of the last change of ``head``, 0 for none."""
        self._client = client
        self._keys = keys
        self._leadership = leadership
        self._head_revision = head_revision
        self._staged = 0  # large transactions of this writer
        self._pool = ThreadPoolExecutor(_PARALLEL, "etcd")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False)

    def commit(self, operations: Sequence[Operation], head: dict[str, Any], expired: int, meta: str = "") -> None:
        """Execute all operations and set ``head``, or nothing. ``expired``: delete older changed objects, 0 for none.

        ``meta``: its new value, empty to keep it. Readers have its version before any record of the transaction.
        Raises StoreError when nothing was changed, and LeadershipLostError when that is not known.
        """
        size = sum(map(_size, operations))
        more = [_delete(self._keys.revisions, self._keys.revision(expired))] if expired else []
        if meta:
            more.append(_put(self._keys.meta, meta))
        if len(operations) + 1 + len(more) <= MAX_OPERATIONS and size <= MAX_BYTES:
            self._move_head(head, [*map(_operation, operations), *more])
            return
        parts = list(staged.values(operations, MAX_BYTES))
        self._staged += 1
        name = f"{self._leadership.token}-{self._staged}"
        for number, part in enumerate(parts):
            self._write([_put(self._keys.staged_part(name, number), part)])
        self._move_head({**head, "staged": {"name": name, "parts": len(parts)}}, more)
        try:
            self._execute(operations, head)
        except StoreError:  # it is committed, so the next leader completes it
            self._leadership.lose()
            raise LeadershipLostError from None

    def complete(self, head: dict[str, Any]) -> None:
        """Execute the staged operations that an earlier leader has committed. Raises StoreError."""
        operations = staged.read(self._client, self._keys, head["staged"])
        _log.info("completing a transaction of the former leader", operations=len(operations))
        self._execute(operations, {name: value for name, value in head.items() if name != "staged"})

    def set(self, key: bytes, value: str) -> None:
        """Write a key that is not part of the records. Raises StoreError."""
        self._write([_put(key, value)])

    def _execute(self, operations: Sequence[Operation], head: dict[str, Any]) -> None:
        """Execute committed operations, which may be repeated, and set ``head``."""
        groups = staged.split(operations, _size, MAX_BYTES, MAX_OPERATIONS)
        for _ in self._pool.map(lambda group: self._write(list(map(_operation, group))), groups):
            pass
        self._move_head(head, [_delete(self._keys.staged, end_of(self._keys.staged))])

    def _move_head(self, head: dict[str, Any], operations: Sequence[Any]) -> None:
        value = json.dumps({**head, "leader": self._leadership.token})
        self._head_revision = self._write([*operations, _put(self._keys.head, value)], value)

    def _write(self, operations: Sequence[Any], head: str = "") -> int:
        """Execute operations of etcd, and return its revision. ``head``: value if they change it.

        An attempt without a response may have been executed, or may be executed later. Then the guards reject the next
        attempt or the late one, and the value of the head shows the result.
        """
        request = rpc.TxnRequest(
            compare=guards(self._leadership, self._keys, self._head_revision),
            success=operations,
            failure=[
                rpc.RequestOp(request_range=rpc.RangeRequest(key=key)) for key in (self._keys.leader, self._keys.head)
            ],
        )
        uncertain = False  # an earlier attempt may have been executed
        while True:
            if self._leadership.lost:
                raise _loss(uncertain)
            try:
                response = self._client.call("KV", "Txn", request)
            except EtcdUnavailableError as error:
                uncertain = True
                _log.warning("no response to a transaction", reason=error.details)
                self._leadership.wait(_RETRY_SECONDS)
                continue
            except EtcdError as error:
                if uncertain or error.uncertain:
                    _log.error("a transaction may have been executed", reason=error.details)
                    self._leadership.lose()
                    raise LeadershipLostError from None
                message = f"Cannot write to etcd: {error.details}. Nothing was changed. Check the nodes of etcd."
                raise StoreError(message) from None
            if response.succeeded:
                return int(response.header.revision)
            leader, current = (each.response_range.kvs for each in response.responses)
            if not leader or leader[0].mod_revision != self._leadership.token:
                self._leadership.lose()
                raise _loss(uncertain)
            if head and current and current[0].value.decode() == head:
                return int(current[0].mod_revision)  # an earlier attempt was executed
            self._leadership.lose()
            if uncertain:
                raise LeadershipLostError
            raise StoreError("Cannot write to etcd: another program has changed the records. Stop the other program.")


def _loss(uncertain: bool) -> StoreError:
    """Return the error for a transaction after the loss of leadership. ``uncertain``: it may have been executed."""
    return LeadershipLostError() if uncertain else NotLeaderError()


def guards(leadership: Leadership, keys: Keys, head_revision: int) -> list[Any]:
    """Return the comparisons of each write: this controller leads, and its last transaction is the last of all."""
    return [
        rpc.Compare(key=key, target=rpc.Compare.MOD, result=rpc.Compare.EQUAL, mod_revision=revision)
        for key, revision in ((leadership.key, leadership.token), (keys.head, head_revision))
    ]


def _size(operation: Operation) -> int:
    key, value = operation
    return len(key) + len(value or "")


def _operation(operation: Operation) -> Any:
    key, value = operation
    return _delete(key) if value is None else _put(key, value)


def _put(key: bytes, value: str) -> Any:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value.encode()))


def _delete(key: bytes, end: bytes = b"") -> Any:
    return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key, range_end=end))
