# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed programs: no partition is lost or given twice, no job is stuck, and no restart is counted twice.

``KILLS``: number of random kills. ``SEED``: seed of their order, which is printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import CONFIG_MAPS, Client, open_client
from tests.kubernetes.audit import TRACKER, Audit, survey, wait_released
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.lives import Api, Life, live
from tests.kubernetes.operators import Operator
from tests.kubernetes.relay import Relay
from tests.kubernetes.victims import Frozen, Replica, Site, Victim, open_site, send
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.waiting import until

KILLS = int(os.environ.get("KILLS") or 20)
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120 + 30 * KILLS)]

_LIVES = 6  # jobs at the same time
_STEADY = ("steady-0", "steady-1")  # jobs that run all the time
_PAUSES = (0.1, 2.0)  # seconds between kills, and until a killed program starts again
_STOPPED_WRITE = 12  # while all jobs are handled
LEAD_SECONDS = 60.0  # until an operator leads, or notices that it does not


@pytest.fixture(scope="module")
def node(control_plane: Cluster) -> Iterator[HollowNode]:
    """Yield a node whose pods need a moment to end."""
    node = HollowNode(control_plane.kubeconfig, end_seconds=0.3)
    node.start()
    yield node
    node.stop()


def test_random_kills(cluster: Cluster, tmp_path: Path) -> None:
    print(f"KILLS={KILLS} SEED={SEED}")
    with open_site(cluster, tmp_path, replicas=2) as site:
        asyncio.run(_random_kills(site, random.Random(SEED)))


def test_a_leader_that_was_stopped_does_nothing_after_its_lease(cluster: Cluster, tmp_path: Path) -> None:
    with open_site(cluster, tmp_path, replicas=2) as site:
        asyncio.run(_stopped_leader(site, tmp_path))


async def _stopped_leader(site: Site, folder: Path) -> None:
    namespace, (first, second) = site.cluster.namespace, site.operators
    async with Relay() as relay, await open_client(str(site.cluster.kubeconfig)) as client:
        for each in (first, second):  # so that the first one leads again, and uses the relay
            each.kill()
        first.kubeconfig = await relay.kubeconfig(site.cluster.kubeconfig, folder / "relay.kubeconfig")
        first.proxy_url = await relay.listen(site.proxy.url)
        await start_leader(first)
        await asyncio.to_thread(second.start, leads=False)
        begun = len(second.log)

        async def stop(number: int, write: str) -> None:
            if number == _STOPPED_WRITE:
                send(first, signal.SIGSTOP)

        relay.reset(after=stop)
        lives = [Life(Api(client), namespace, f"job-{number}") for number in range(_LIVES)]
        for each in lives:
            await each.submit(first_form(modelReplicas="2"))
        await asyncio.to_thread(until, lambda: "leading" in second.log[begun:], LEAD_SECONDS, lambda: second.log)
        writes = list(relay.writes)
        assert len(writes) >= _STOPPED_WRITE
        send(first, signal.SIGCONT)
        await asyncio.to_thread(until, lambda: "no longer leading" in first.log, LEAD_SECONDS, lambda: first.log)
        # The stop can come between the check of the lease and the write: one request at most, the loop runs one task.
        late = relay.writes[len(writes) :]
        assert relay.writes[: len(writes)] == writes
        assert len(late) <= 1, late
        for each in lives:
            await each.reach_state("Running")
            await each.delete()
        await wait_released(client, namespace, site.proxy.vipu)


async def start_leader(operator: Operator) -> None:
    """Start an operator and wait until it leads."""
    operator.log_file.unlink()
    await asyncio.to_thread(operator.start)


async def _random_kills(site: Site, chance: random.Random) -> None:
    namespace = site.cluster.namespace
    async with await open_client(str(site.cluster.kubeconfig)) as client:
        audit = Audit(client, namespace, site.vipu.address)
        api = Api(client)
        steady = [Life(api, namespace, name) for name in _STEADY]
        for each in steady:
            await each.submit(first_form(modelReplicas="2"))
            await each.reach_state("Running")
        before = await _identities(client, namespace, steady)
        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            auditing = tasks.create_task(audit.run())
            lives = [
                tasks.create_task(_live_on(api, namespace, site.vipu.address, slot, chance.random(), done))
                for slot in range(_LIVES)
            ]
            await _kill(site, chance, api)
            done.set()
            count = sum(await asyncio.gather(*lives))
            assert await _identities(client, namespace, steady) == before
            for each in steady:
                await each.delete()
            await wait_released(client, namespace, site.proxy.vipu)
            auditing.cancel()
        assert audit.found == []
        print(f"{count} jobs, {audit.rounds} observations")
        assert audit.rounds > KILLS
        assert count > _LIVES


async def _live_on(api: Api, namespace: str, vipu: str, slot: int, seed: float, done: asyncio.Event) -> int:
    """Live one job after the other until all kills are done. Return the number of jobs."""
    chance, count = random.Random(seed), 0
    while not done.is_set():
        try:
            await live(Life(api, namespace, f"job-{slot}-{count}"), chance)
        except AssertionError:
            print(await survey(api.client, namespace, vipu))
            raise
        count += 1
    return count


async def _kill(site: Site, chance: random.Random, api: Api) -> None:
    """Kill programs, sometimes two at the same time, and start them again. Spare them while a job is late."""
    victims: list[Victim] = [*map(Replica, site.operators), site.proxy, site.api_server, site.vipu]
    deck: list[Victim] = []
    killed = 0
    while killed < KILLS:
        if not deck:  # so each is killed as often as the others
            deck = [*victims, Frozen(chance.choice(site.operators))]
            chance.shuffle(deck)
        chosen = [deck.pop() for _ in range(min(len(deck), chance.choice((1, 1, 2))))]
        await asyncio.sleep(chance.uniform(*_PAUSES))
        while api.late:
            await asyncio.sleep(_PAUSES[0])
        for each in chosen:
            await asyncio.to_thread(each.kill)
        await asyncio.sleep(chance.uniform(*_PAUSES))
        # The others do not start without the API server.
        for each in sorted(chosen, key=lambda each: each is not site.api_server):
            await asyncio.to_thread(each.start)
        killed += len(chosen)


async def _identities(client: Client, namespace: str, lives: list[Life]) -> Any:
    """Return what must not change while a job runs: its pods, its partition and its restarts."""
    tracker = await client.get(CONFIG_MAPS, namespace, TRACKER)
    found = {}
    for life in lives:
        job = await life.job()
        assert job is not None
        pods = {each["metadata"]["name"]: each["metadata"]["uid"] for each in await life.pods()}
        records = {id: text for id, text in tracker["data"].items() if job["metadata"]["uid"] in text}
        found[life.name] = pods, records, job["status"]["restartCount"], job["status"]["launcherStatus"]
    return found
