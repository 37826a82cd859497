# SPDX-License-Identifier: GPL-3.0-or-later
"""Location of the records: nodes of etcd, and names of the keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from openipu.vipu.domain.model import Kind
from openipu.vipu.storage.interface import StoreError

SCHEME = "etcd://"
DEFAULT_PREFIX = "/openipu/vipu/"
DEFAULT_PORT = 2379
VERSION = 1
"""Version of keys and values."""

_ENDPOINT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files for connections to etcd. Certificate and key are None without client certificates."""

    ca: Path
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """Nodes of an etcd cluster as ``host:port``, credentials, and the prefix of all keys, which ends with a slash."""

    endpoints: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    tls: Tls | None = None
    user: str = ""
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Return the URL, without credentials."""
        return f"{SCHEME}{','.join(self.endpoints)}{self.prefix}"


def parse(url: str, tls: Tls | None = None, user: str = "", password: str = "") -> Location:
    """Return the location that ``etcd://host:port,…[/prefix]`` names. Raises StoreError."""
    if "@" in url:  # what precedes it may be a password, which no message may contain
        raise StoreError(
            "Cannot use the store: its URL contains '@'. Omit credentials from the URL, and use --store-user and "
            "--store-password-file."
        )
    nodes, slash, path = url.removeprefix(SCHEME).partition("/")
    endpoints = []
    for node in nodes.split(","):
        match = _ENDPOINT.fullmatch(node.strip())
        port = int(match[2] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port < 65536:
            raise StoreError(
                f"Cannot use store {url!r}: {node!r} is not the address of a node. Use etcd://host:port,host:port,…"
            )
        endpoints.append(f"{match[1]}:{port}")
    prefix = f"/{path.strip('/')}/" if slash and path.strip("/") else DEFAULT_PREFIX
    return Location(tuple(endpoints), prefix, tls, user, password)


class Keys:
    """Names of the keys below a prefix."""

    def __init__(self, prefix: str) -> None:
        """Use a prefix that ends with a slash."""
        self.prefix = prefix.encode()
        self.leader, self.meta, self.head = (self.prefix + name for name in (b"leader", b"meta", b"head"))
        self.records, self.revisions, self.staged = (
            self.prefix + name for name in (b"records/", b"revisions/", b"staged/")
        )

    def record(self, kind: Kind, id: str) -> bytes:
        """Return the key of a record."""
        return self.records + f"{kind}/{id}".encode()

    def revision(self, revision: int, part: int = 0) -> bytes:
        """Return the key of the objects that a revision changed. Keys sort in the order of revisions."""
        return self.revisions + b"%020d/%04d" % (revision, part)

    def staged_parts(self, name: str) -> bytes:
        """Return the prefix of the parts of a staged transaction."""
        return self.staged + name.encode() + b"/"

    def staged_part(self, name: str, part: int) -> bytes:
        """Return the key of a part of a staged transaction. Keys sort in the order of parts."""
        return self.staged_parts(name) + b"%06d" % part

    def split_record(self, key: bytes) -> tuple[Kind, str]:
        """Return kind and id of the key of a record. Raises ValueError."""
        kind, _, id = key[len(self.records) :].decode().partition("/")
        return Kind(kind), id

    def split_revision(self, key: bytes) -> tuple[int, int]:
        """Return revision and part of the key of changed objects. Raises ValueError."""
        revision, _, part = key[len(self.revisions) :].partition(b"/")
        return int(revision), int(part)


def end_of(prefix: bytes) -> bytes:
    """Return the key after all keys with a prefix, which does not end with the highest byte."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
