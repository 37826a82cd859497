# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of the start of processes, and readiness of an agent by its heartbeat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.process.background import ProcessError
from tools.openstack import rest
from tools.openstack.component import Process
from tools.openstack.components import manila
from tools.openstack.daemons import Daemons
from tools.openstack.site import Secrets, Site

FOREVER = ["sleep", "infinity"]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path, Secrets.generate())
    for folder in (site.run, site.log):
        folder.mkdir()
    return site


@pytest.fixture
def daemons(site: Site) -> Iterator[Daemons]:
    daemons = Daemons(site)
    yield daemons
    daemons.stop()


def test_a_follower_starts_when_all_processes_before_it_are_ready(daemons: Daemons) -> None:
    running: list[list[str]] = []

    def ready() -> bool:
        running.append(daemons.running())
        return len(running) == 2

    processes = [Process("a", FOREVER, ready=ready), Process("b", FOREVER, follows=True), Process("c", FOREVER)]
    daemons.start(processes)
    assert running == [["a", "c"]] * 2
    assert daemons.running() == ["a", "b", "c"]


def test_a_second_start_keeps_a_follower(daemons: Daemons) -> None:
    processes = [Process("a", FOREVER), Process("b", FOREVER, follows=True)]
    daemons.start(processes)
    former = daemons.pid("b")
    daemons.start(processes)
    assert daemons.pid("b") == former


class Services:
    """Administrator for whom Manila returns one answer after the other. None is a failed request."""

    def __init__(self, *answers: list[dict[str, Any]] | None) -> None:
        self.answers = iter(answers)

    def get(self, service: str, path: str) -> dict[str, Any]:
        assert (service, path) == ("manila", "/v2/services")
        answer = next(self.answers)
        if answer is None:
            raise ProcessError("503 Service Unavailable")
        return {"services": answer}


def record(updated_at: str | None, state: str = "up", binary: str = "manila-scheduler") -> dict[str, Any]:
    return {"id": binary, "binary": binary, "host": manila.HOST, "state": state, "updated_at": updated_at}


OTHER = [record(second, binary="manila-share") for second in ("00:01", "00:02")]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([None, [], [record(None)], [record(None)], [record("00:01")]], id="first start"),
        pytest.param([[record("00:01")], [record("00:02", "down")], [record("00:03")]], id="after a kill"),
        pytest.param([[record("00:01")], [record("00:01")], [record("00:02")]], id="runs already"),
        pytest.param([OTHER[:1], [OTHER[1], record(None)], [OTHER[1], record("00:01")]], id="another agent"),
    ],
)
def test_the_scheduler_of_manila_is_ready_after_a_new_heartbeat(
    site: Site, monkeypatch: pytest.MonkeyPatch, answers: list[list[dict[str, Any]] | None]
) -> None:
    services = Services(*answers)
    monkeypatch.setattr(rest, "_admin", lambda _site: services)
    monkeypatch.setattr(rest, "POLL_SECONDS", 0.0)
    ready = {process.name: process.ready for process in manila.declare(site).processes}["manila-scheduler"]
    assert ready
    assert [ready() for _ in answers] == [False] * (len(answers) - 1) + [True]


def test_the_backend_of_manila_starts_after_the_scheduler(site: Site) -> None:
    processes = manila.declare(site).processes
    assert [(process.name, process.follows) for process in processes[-2:]] == [
        ("manila-scheduler", False),
        ("manila-share", True),
    ]
