# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the objects of a job."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import names
from openipu.shared.vipu.object_rules import is_valid_id

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")

legal = st.from_regex(SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) <= 253)
namespaces = st.from_regex(LABEL, fullmatch=True).filter(lambda name: len(name) <= 63)
numbers = st.integers(0, 99_999)


def of_job(job: str, number: int) -> list[str]:
    return [
        names.worker(job, number),
        names.launcher(job, number),
        names.config(job, number),
        names.account(job),
        names.ssh_keys(job, "1234"),
        names.label(job),
    ]


def test_short_names_are_those_of_the_original_operator():
    assert names.worker("ipujob-sample", 0) == "ipujob-sample-worker-0"
    assert names.launcher("ipujob-sample", 0) == "ipujob-sample-launcher"
    assert names.launcher("ipujob-sample", 1) == "ipujob-sample-launcher-1"
    assert names.partition(("default", "ipujob-sample"), 0) == "p-ipujob-sample-default-0"


@given(legal, numbers)
def test_all_names_are_legal_and_short(job, number):
    for name in of_job(job, number):
        assert len(name) <= names.MAX_LENGTH
        assert SUBDOMAIN.fullmatch(name)


@given(namespaces, legal, numbers)
def test_ids_of_partitions_are_valid(namespace, job, number):
    assert is_valid_id(names.partition((namespace, job), number))


@given(st.integers(40, 253), numbers)
def test_long_names_with_the_same_start_differ(length, number):
    one, other = "a" * length + "b", "a" * length + "c"
    for first, second in zip(of_job(one, number), of_job(other, number), strict=True):
        assert first != second


@given(st.integers(1, 200), st.integers(0, 20), st.integers(0, 20))
def test_numbers_stay_readable(length, one, other):
    job = "j" * length
    assert names.worker(job, one).endswith(f"-worker-{one}")
    assert (names.worker(job, one) == names.worker(job, other)) is (one == other)


def test_different_jobs_may_have_the_same_partition_id():
    assert names.partition(("c", "a-b"), 0) == names.partition(("b-c", "a"), 0) == "p-a-b-c-0"
