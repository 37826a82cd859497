# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of SSH servers in the network of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import ssh_ports
from openipu.kubernetes.domain.ssh_ports import DEFAULT_RANGE, Instance, PortBook, PortRange

JOB = Instance("1234", 0, 0)


def test_a_range_is_read():
    assert ssh_ports.parse(str(DEFAULT_RANGE)) == DEFAULT_RANGE
    assert ssh_ports.parse("22-22") == PortRange(22, 22)


@pytest.mark.parametrize("text", ["", "20000", "a-b", "0-10", "30000-20000", "1-65536", "-5-9"])
def test_an_invalid_range_is_named(text):
    with pytest.raises(ValueError, match=r"is no range of ports\. Write it like 20000-29999\."):
        ssh_ports.parse(text)


@given(
    st.lists(st.tuples(st.uuids(), st.integers(0, 3), st.integers(1, 64)), max_size=20, unique_by=lambda each: each[0])
)
def test_workers_of_all_jobs_have_different_ports(jobs):
    book = PortBook(DEFAULT_RANGE)
    found = [port for uid, number, workers in jobs for port in book.ports(Instance(str(uid), number, 0), workers)]
    assert len(set(found)) == len(found) == sum(workers for _, _, workers in jobs)
    assert all(DEFAULT_RANGE.first <= port <= DEFAULT_RANGE.last for port in found)


def test_ports_follow_from_the_job():
    assert PortBook(DEFAULT_RANGE).ports(JOB, 4) == PortBook(DEFAULT_RANGE).ports(JOB, 4)


def test_a_restart_changes_the_ports_and_frees_the_former_ones():
    book = PortBook(PortRange(1, 8))
    before = book.ports(JOB, 4)
    after = book.ports(Instance("1234", 0, 1), 4)
    assert not set(before) & set(after)
    assert book.ports(Instance("5678", 0, 0), 4) == before


def test_a_deleted_job_frees_its_ports():
    book = PortBook(PortRange(1, 4))
    found = book.ports(JOB, 4)
    book.discard("1234")
    assert book.ports(Instance("5678", 0, 0), 4) == found


def test_a_new_leader_learns_the_ports_of_running_workers():
    instance = Instance("1234", 2, 1)
    before = PortBook(DEFAULT_RANGE).ports(instance, 4)
    book = PortBook(PortRange(1, 8))  # its range has changed
    book.note(instance, 2 * 4 + 3, before[3])
    assert book.ports(instance, 4) == before


def test_without_free_ports_jobs_share_some():
    book = PortBook(PortRange(1, 4))
    book.ports(JOB, 4)
    assert set(book.ports(Instance("5678", 0, 0), 4)) == {1, 2, 3, 4}
    assert len(book.ports(Instance("9", 0, 0), 6)) == 6  # more workers than ports
