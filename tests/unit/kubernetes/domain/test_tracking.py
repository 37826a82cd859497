# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import names, tracking
from openipu.kubernetes.domain.tracking import Owner, Phase, Record

OWNER = Owner("IPUJob", "default", "sample", "1234")


@given(
    st.text(max_size=20),
    st.integers(0, 999),
    st.sampled_from([1, 2, 4, 8, 16, 32, 64]),
    st.integers(1, 64),
    st.sampled_from(Phase),
)
def test_records_survive_their_text(name: str, instance: int, size: int, workers: int, phase: Phase) -> None:
    record = Record("p", Owner("IPUJob", "default", name, "u"), instance, size, workers, "pod001:8090", phase)
    assert tracking.decode("p", record.encoded()) == record


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"kind": "IPUJob"}', "x"])
def test_damaged_records_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="The record of partition 'p-x' is damaged"):
        tracking.decode("p-x", text)


def test_the_published_id_is_used_unless_it_is_taken() -> None:
    assert tracking.partition_id(OWNER, 0, "cluster", {}) == "p-sample-default-0"
    other = tracking.partition_id(OWNER, 0, "cluster", {"p-sample-default-0": None})
    assert other.startswith("p-sample-default-")
    assert other != tracking.partition_id(OWNER, 0, "another", {"p-sample-default-0": None})
    long = Owner("IPUJob", "n" * 63, "j" * 200, "1234")
    for used in ({}, {tracking.partition_id(long, 7, "c", {}): None}):
        assert len(tracking.partition_id(long, 7, "c", used)) <= names.MAX_LENGTH


def test_used_ipus_count_by_namespace() -> None:
    records = [
        Record(f"p{number}", Owner("IPUJob", namespace, "j", str(number)), 0, 4, 1, "a:1")
        for number, namespace in enumerate(["b", "a", "b"])
    ]
    assert tracking.used_ipus(records) == {"a": 4, "b": 8}
    assert tracking.find(records, "1", 0) is records[1]
    assert tracking.find(records, "1", 1) is None
