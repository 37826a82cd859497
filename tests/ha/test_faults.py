# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of controllers and etcd nodes under load: nothing acknowledged is lost, and only the leader writes.

Environment variables: ``FAULTS`` is the number of faults, ``FAULT_SECONDS`` the time after which no more are made.
Every kind of fault is made once even beyond both. Clients must write again within ``HANG_SECONDS`` of each fault,
without the time in which processes waited for a processor. A soak has 200 faults or more, as of ``make soak-ha``.
It also fails when outages are longer than ``MEDIAN`` and ``WORST``, whatever else the machine does. Shorter runs only
print outages: they share busy machines with other tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.storage.etcd import keys
from tests.ha import audit
from tests.ha.checked_load import CheckedLoad
from tests.ha.contradictions import check
from tests.ha.controllers import SHIFTED, START_SECONDS, UNFENCED, Controllers, put_rack
from tests.ha.disks import SmallDisk, small_disk
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.faults import FULL_DISK, SLOW_FLUSHES, Fault, Faults, missing, pause
from tests.ha.machine_network import MachineNetwork
from tests.ha.processor_time import ProcessorTime
from tests.ha.target_network import TargetNetwork
from tests.integration.agents.agents_support import RackProcess
from tests.waiting import until, within

MACHINES = 16
FAULTS, SECONDS = int(os.environ.get("FAULTS", "20")), float(os.environ.get("FAULT_SECONDS", "150"))
SOAK = 200  # faults
HANG_SECONDS = 90.0
MEDIAN, WORST = 4.0, 10.0  # limits of outages in a soak, in seconds, with leases of 3 s; see Fault.stops
CLIENTS = int(os.environ.get("HA_CLIENTS", "64"))
SEED = "OPENIPU_HA_SEED"  # environment variable

Start = Callable[[str], Controllers]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk | None]:
    """Disk of the first node of etcd."""
    with small_disk(tmp_path_factory.mktemp("etcd") / "n0") as made:
        yield made


@pytest.fixture(scope="module")
def etcd(disk: SmallDisk | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """Cluster of these tests only, whose first node has a disk of its own."""
    cluster = EtcdCluster(disk.folder.parent if disk else tmp_path_factory.mktemp("etcd"), separable=True)
    yield cluster
    cluster.stop()


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[RackProcess]:
    made = RackProcess(tmp_path, MACHINES)
    yield made
    made.close()


@pytest.fixture
def machines(rack: RackProcess) -> Iterator[MachineNetwork]:
    made = MachineNetwork(rack.agents)
    yield made
    made.close()


@pytest.fixture
def start(url: str, tmp_path: Path, machines: MachineNetwork) -> Iterator[Start]:
    """Start three controllers of a kind, with the rack as their machines."""
    started: list[Controllers] = []

    def make(module: str) -> Controllers:
        controllers = Controllers(tmp_path, url, 3, module, ["--log-level", "warning"])
        started.append(controllers)
        agents = [admin.AgentSpec(id=each.id, host=each.host, port=each.port) for each in machines.agents]
        put_rack(controllers.wait_leader().address, agents)
        return controllers

    yield make
    for controllers in started:
        controllers.close()


def random_seed() -> int:
    return int(os.environ.get(SEED) or int.from_bytes(os.urandom(3), "big"))


@dataclass(frozen=True)
class Parts:
    """All parts of a test, of which a failure reports the states."""

    controllers: Controllers
    etcd: EtcdCluster
    rack: RackProcess
    load: CheckedLoad

    def pids(self) -> list[int]:
        """Return the processes of all parts, with the clients in this one."""
        processes = [each.process for each in (*self.controllers.all, *self.etcd.nodes)]
        return [os.getpid(), self.rack.process.pid, *(each.pid for each in processes if each is not None)]

    def states(self) -> str:
        """Return what each part reports: no leader of etcd, no leading controller, or the errors of the clients."""
        names = {1: "leads", 2: "follows", None: "no response"}
        roles = [f"{each.name}: {names.get(each.health(), 'starts')}" for each in self.controllers.all]
        return "\n".join([*roles, self.etcd.states(), self.load.errors(), self.controllers.logs()])


def make(faults: Faults, parts: Parts) -> tuple[Fault, float]:
    """Make and repair a fault. Return it with the longest time without a write.

    The time begins with the fault. When it stops all writes, it begins with its repair. Some faults take effect after
    seconds, so it ends when the fault has lasted and clients write.
    """
    load = parts.load
    since = time.monotonic()
    fault = faults.make()
    pause(faults.seconds(fault))
    if fault.stops:
        assert load.silence() > fault.lasts / 2, f"clients write in spite of {fault}"
        fault.repair()
        since = time.monotonic()
    before, clock = load.acknowledged, ProcessorTime(parts.pids)

    def writes() -> bool:
        return load.acknowledged > before + CLIENTS

    while not within(lambda: writes() or clock.seconds() > HANG_SECONDS, HANG_SECONDS):
        print(f"{clock.share:.0%} of the needed processor time since {fault}")
    if not writes():
        pytest.fail(
            f"not within {HANG_SECONDS:g} s, without waiting for a processor: writes after {fault}\n{parts.states()}"
        )
    outage = load.outage(since)
    if not fault.stops:
        fault.repair()
    print(f"{outage:5.1f} s without a write, {clock.share:.0%} of the needed processor time: {fault}")
    return fault, outage


def summary(outages: list[tuple[Fault, float]]) -> str:
    """Return a line for each kind of fault."""
    kinds: dict[str, list[float]] = defaultdict(list)
    for fault, seconds in outages:
        kinds[fault.kind].append(seconds)
    return "\n".join(
        f"{len(times):3} × {kind}: median {statistics.median(times):.1f} s, worst {max(times):.1f} s"
        for kind, times in sorted(kinds.items())
    )


def test_all_kinds_of_faults_are_possible(disk: SmallDisk | None) -> None:
    impossible = missing(disk)
    if impossible and os.geteuid():
        pytest.skip(f"faults need root: {', '.join(impossible)}")
    assert not impossible


def test_missing_means_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    assert missing(None) == [FULL_DISK, SLOW_FLUSHES]


@pytest.mark.timeout(SECONDS + 600)
def test_random_faults_lose_nothing(
    start: Start, rack: RackProcess, machines: MachineNetwork, etcd: EtcdCluster, disk: SmallDisk | None, url: str
) -> None:
    seed = random_seed()
    print(f"{SEED}={seed}")
    began = audit.revision(keys.parse(url))
    controllers = start(SHIFTED)
    outages: list[tuple[Fault, float]] = []
    with contextlib.closing(TargetNetwork(controllers.addresses)) as clients:
        load = CheckedLoad(clients.addresses, CLIENTS, seed)
        faults = Faults(controllers, machines, clients, etcd, disk, seed)
        parts = Parts(controllers, etcd, rack, load)
        deadline = time.monotonic() + SECONDS
        try:
            until(lambda: load.acknowledged >= 20, 60, "the load runs")
            while len(outages) < len(faults.kinds) or (len(outages) < FAULTS and time.monotonic() < deadline):
                outages.append(make(faults, parts))
                until(lambda: all(each.leads() or each.follows() for each in controllers.all), START_SECONDS, "health")
                etcd.wait()
        finally:
            load.stop()
    wrong = check(controllers, load, rack, url, began)
    times = [seconds for fault, seconds in outages if not fault.stops]
    median, worst = statistics.median(times), max(times)
    histories = load.histories().values()
    print(
        f"{summary(outages)}\n{len(outages)} faults of {len(faults.kinds)} kinds, {load.acknowledged} acknowledged "
        f"changes; seconds without a write: median {median:.1f}, worst {worst:.1f}, after faults that stop all writes "
        f"{max(seconds for fault, seconds in outages if fault.stops):.1f}; linearizable histories of {len(histories)} "
        f"partitions with {sum(map(len, histories))} calls"
    )
    assert not wrong, wrong[:10]
    assert len({fault.kind for fault, _ in outages}) == len(faults.kinds)
    if FAULTS >= SOAK:
        assert len(outages) >= FAULTS, "FAULT_SECONDS was too short"
        assert median <= MEDIAN
        assert worst <= WORST


def test_the_checker_notices_that_fencing_is_off(start: Start, rack: RackProcess, url: str) -> None:
    seed = random_seed()
    began = audit.revision(keys.parse(url))
    controllers = start(UNFENCED)
    former = controllers.wait_leader()
    load = CheckedLoad(controllers.addresses, 16, seed)
    try:
        until(lambda: load.acknowledged >= 20, 60, "the load runs")
        former.pause()
        until(lambda: controllers.leader() not in (None, former), 60, "another controller leads")
        before = load.acknowledged
        until(lambda: load.acknowledged >= before + 20, 60, "the new leader serves")
        former.resume()
        before = load.acknowledged
        until(lambda: load.acknowledged >= before + 100, 60, "the load continues")
    finally:
        load.stop()
    former.kill()
    history = audit.replay(keys.parse(url), began)
    assert history.transactions
    assert history.foreign, "the audit of the history does not notice a former leader"
    assert history.shared, "the audit of the history does not notice IPUs in two partitions"
    # The former leader has acknowledged changes that the leader does not know, and reads that are outdated.
    assert load.violations(), "the histories of all partitions are linearizable"
