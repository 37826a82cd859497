# SPDX-License-Identifier: GPL-3.0-or-later
"""Records as values in etcd, and the URL of a store. Without etcd; tests/ha has the store itself."""

from __future__ import annotations

import json

import pytest

from openipu.vipu.domain.model import Agent, Kind, Partition, Record
from openipu.vipu.storage.checksums import checksum
from openipu.vipu.storage.etcd import codec, keys
from openipu.vipu.storage.interface import StoreError
from tests.unit.vipu.storage.store_support import rack

RECORDS: list[Record] = [record for kind in Kind for record in rack().table(kind).values()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.kind}-{record.id}")
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    sum = checksum(record)
    assert codec.decode(record.kind, record.id, codec.encode(record, sum).encode()) == (record, sum)


def test_an_added_field_has_its_default_in_older_values() -> None:
    agent = Agent("ag1", "10.0.0.1")
    value = json.loads(codec.encode(agent, checksum(agent)))
    del value["record"]["service_reason"]
    assert codec.decode(Kind.AGENT, "ag1", json.dumps(value).encode())[0] == agent


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda value: value["record"].update(size=3), "other fields"),
        (lambda value: value["record"].pop("allocation"), "other fields"),
        (lambda value: value["record"].update(retries=7), "does not match its checksum"),
        (lambda value: value["record"].update(ipus=[[1]]), "other fields"),
        (lambda value: value["record"].update(ready=99), "99"),
        (lambda value: value.pop("checksum"), "other fields"),
    ],
)
def test_a_changed_value_is_rejected(change: object, cause: str) -> None:
    record = next(record for record in RECORDS if isinstance(record, Partition))
    value = json.loads(codec.encode(record, checksum(record)))
    change(value)  # type: ignore[operator]
    with pytest.raises(ValueError, match=cause):
        codec.decode(record.kind, record.id, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("url", "endpoints", "prefix"),
    [
        ("etcd://10.0.0.1:2379", ["10.0.0.1:2379"], "/openipu/vipu/"),
        ("etcd://e1,e2:4001,[fd00::1]:2379/pod/a/", ["e1:2379", "e2:4001", "[fd00::1]:2379"], "/pod/a/"),
        ("etcd://e1/", ["e1:2379"], "/openipu/vipu/"),
    ],
)
def test_urls(url: str, endpoints: list[str], prefix: str) -> None:
    location = keys.parse(url)
    assert (list(location.endpoints), location.prefix) == (endpoints, prefix)


@pytest.mark.parametrize("url", ["etcd://", "etcd://e1,,e2", "etcd://e1:70000", "etcd://e1:x"])
def test_invalid_urls(url: str) -> None:
    with pytest.raises(StoreError, match="is not the address of a node"):
        keys.parse(url)


@pytest.mark.parametrize("url", ["etcd://root:secret@e1", "etcd://root:sec/secret@e1"])
def test_credentials_in_a_url_are_rejected_and_not_printed(url: str) -> None:
    with pytest.raises(StoreError, match="Omit credentials from the URL") as caught:
        keys.parse(url)
    assert "secret" not in str(caught.value)


def test_the_password_is_in_no_message() -> None:
    location = keys.parse("etcd://e1", user="root", password="secret")
    assert "secret" not in f"{location} {location!r}"
