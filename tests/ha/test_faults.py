# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of controllers and etcd nodes under load: nothing acknowledged is lost, and only the leader writes."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
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
from tests.ha.faults import Fault, Faults, pause
from tests.ha.machine_network import MachineNetwork
from tests.integration.agents.agents_support import RackProcess
from tests.waiting import until

MACHINES = 16
FAULTS, SECONDS = int(os.environ.get("FAULTS", "20")), float(os.environ.get("FAULT_SECONDS", "150"))
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


def make(faults: Faults, load: CheckedLoad, logs: Callable[[], str]) -> tuple[Fault, float]:
    """Make and repair a fault. Return it with the longest time without a write.

    The time begins with the fault. When it stops etcd, it begins with its repair. Some faults take effect after
    seconds, so it ends when the fault has lasted and clients write.
    """
    since = time.monotonic()
    fault = faults.make()
    pause(faults.seconds(fault))
    if fault.quorum:
        fault.repair()
        since = time.monotonic()
    before = load.acknowledged
    try:
        until(lambda: load.acknowledged > before + CLIENTS, 90, f"writes after {fault}")
    except AssertionError as error:
        pytest.fail(f"{error}\n{logs()}")
    outage = load.outage(since)
    if not fault.quorum:
        fault.repair()
    print(f"{outage:5.1f} s without a write, load {os.getloadavg()[0]:.1f}: {fault}")
    return fault, outage


def test_random_faults_lose_nothing(
    start: Start, rack: RackProcess, machines: MachineNetwork, etcd: EtcdCluster, disk: SmallDisk | None, url: str
) -> None:
    seed = random_seed()
    print(f"{SEED}={seed}")
    began = audit.revision(keys.parse(url))
    controllers = start(SHIFTED)
    load = CheckedLoad(controllers.addresses, CLIENTS, seed)
    faults, deadline = Faults(controllers, machines, etcd, disk, seed), time.monotonic() + SECONDS
    outages: list[tuple[Fault, float]] = []
    try:
        until(lambda: load.acknowledged >= 20, 60, "the load runs")
        while len(outages) < FAULTS and time.monotonic() < deadline:
            outages.append(make(faults, load, controllers.logs))
            until(lambda: all(each.leads() or each.follows() for each in controllers.all), START_SECONDS, "all respond")
            etcd.wait()
    finally:
        load.stop()
    wrong = check(controllers, load, rack, url, began)
    times = [seconds for fault, seconds in outages if not fault.quorum]
    histories = load.histories().values()
    print(
        f"{len(outages)} faults, {load.acknowledged} acknowledged changes; seconds without a write: median "
        f"{statistics.median(times):.1f}, worst {max(times):.1f}, after losses of the quorum "
        f"{max((seconds for fault, seconds in outages if fault.quorum), default=0):.1f}; linearizable histories of "
        f"{len(histories)} partitions with {sum(map(len, histories))} calls"
    )
    assert not wrong, wrong[:10]
    assert len({fault.kind for fault, _ in outages}) >= min(len(outages), len(faults.kinds))


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
    written, foreign = audit.foreign_writes(keys.parse(url), began)
    assert written
    assert foreign, "the audit of the history does not notice a former leader"
    # The former leader has acknowledged changes that the leader does not know, and reads that are outdated.
    assert load.violations(), "the histories of all partitions are linearizable"
