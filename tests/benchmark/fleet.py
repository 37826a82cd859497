# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller of 64 racks: idle cost, memory, restart, loss of a rack and of all racks.

A machine has four IPUs, and an IPU belongs to at most one partition. So 1024 machines have at most 4096 partitions.
10,000 partitions need 160 racks, which a second controller has.
"""

from __future__ import annotations

import os
import time

from openipu.vipu.fleet.supervisor import HEARTBEATS_PER_SECOND, MAX_SILENT_INTERVALS
from openipu.vipu.lifecycle.interface import LifecycleOptions

from .fleet_lab import FleetLab, Probe, Restart
from .lab import MACHINES_PER_POD, wait_until
from .measure import Table, Target

IDLE_SECONDS = 10.0
OUTAGE_SECONDS = 10.0
IPUS_PER_MACHINE = 4
RACKS = 64
MANY_RACKS = 160
MANY_PARTITIONS = 10_000


def bench_fleet(table: Table, _rounds: int) -> None:
    """Measure a controller of one rack, of 64 racks, and of 10,000 partitions."""
    with FleetLab(1) as lab:
        _fill(lab, MACHINES_PER_POD * IPUS_PER_MACHINE)
        one_idle, one_memory = lab.idle_cpu(IDLE_SECONDS), lab.memory()
        one_restart = lab.restart_server()
    with FleetLab(RACKS) as lab:
        partitions = RACKS * MACHINES_PER_POD * IPUS_PER_MACHINE
        title = f"{RACKS * MACHINES_PER_POD} agents, {partitions} partitions of 1 IPU"
        _fill(lab, partitions)
        idle = lab.idle_cpu(IDLE_SECONDS) * 100
        table.add(
            f"idle CPU, {title}",
            f"{idle:.1f} % of a core",
            f"one rack: {one_idle * 100:.1f} %",
            Target("≤ 5 %", 5),
            idle,
        )
        _restart(lab, table, title, one_restart)
        lab.wait_agents_up()
        _lose_rack(lab, table, partitions)
        _lose_hall(lab, table, partitions)
        _lose_hall(lab, table, partitions, silent=True)
        _memory(lab, table, f"{title}, after all losses", one_memory)
    with FleetLab(MANY_RACKS) as lab:
        title = f"{MANY_RACKS * MACHINES_PER_POD} agents, {MANY_PARTITIONS} partitions of 1 IPU"
        _fill(lab, MANY_PARTITIONS)
        idle = lab.idle_cpu(IDLE_SECONDS) * 100
        table.add(f"idle CPU, {title}", f"{idle:.1f} % of a core", f"one rack: {one_idle * 100:.1f} %")
        _memory(lab, table, title, one_memory)
        _restart(lab, table, title, one_restart)


def _fill(lab: FleetLab, partitions: int) -> None:
    lab.apply_pods(lab.pods, partitions)
    lab.wait_active(partitions)
    lab.wait_agents_up()
    lab.wait_idle()


def _memory(lab: FleetLab, table: Table, title: str, one: float) -> None:
    memory = lab.memory()
    table.add(f"memory, {title}", f"{memory:.0f} MB", f"one rack: {one:.0f} MB", Target("≤ 400 MB", 400), memory)


def _restart(lab: FleetLab, table: Table, title: str, one: Restart) -> None:
    load = os.getloadavg()[0]  # the wall time depends on it
    restart = lab.restart_server()
    table.add(
        f"restart until the first list, {title}",
        f"{restart.wall:.2f} s ({restart.cpu:.2f} s CPU, {restart.waited:.2f} s without a core, load {load:.1f})",
        f"one rack: {one.wall:.2f} s ({one.cpu:.2f} s CPU, {one.waited:.2f} s without a core)",
        Target("≤ 3 s", 3),
        restart.wall,
    )


def _lose_rack(lab: FleetLab, table: Table, partitions: int) -> None:
    """Lose a rack twice: its connections break, and it stops to send heartbeats."""
    lab.kill_racks()
    broken = lab.wait_down(1)
    lab.start_racks()
    lab.wait_agents_up()
    lab.wait_active(partitions)
    lab.wait_idle()
    lab.freeze_racks()
    silent = lab.wait_down(1)
    lab.thaw_first_rack()
    lab.wait_agents_up()
    lab.wait_active(partitions)
    lab.wait_idle()
    table.add(
        "loss of a rack of 16 agents until all its partitions are ERROR",
        f"{broken:.2f} s",
        "",
        Target("≤ 1 s", 1),
        broken,
    )
    longest = _longest_silence(lab)
    table.add("same, silent, without broken connections", f"{silent:.2f} s", f"longest silence: {longest:.0f} s")
    table.add(
        "same, silent: time after the longest silence",
        f"{max(0.0, silent - longest):.2f} s",
        f"longest silence: {longest:.0f} s",
        Target("≤ 1 s", 1),
        silent - longest,
    )


def _longest_silence(lab: FleetLab) -> float:
    """Return the seconds until an agent without heartbeats is Down."""
    interval = max(LifecycleOptions().heartbeat, lab.pods * MACHINES_PER_POD / HEARTBEATS_PER_SECOND)
    return MAX_SILENT_INTERVALS * interval


def _lose_hall(lab: FleetLab, table: Table, partitions: int, *, silent: bool = False) -> None:
    """Lose all racks. ``silent``: without broken connections, so that attempts to connect have no response."""
    kind = "silent racks" if silent else "racks"
    calls = lab.configure_calls()
    if silent:
        lab.freeze_racks(all_racks=True)
    else:
        lab.kill_racks(all_racks=True)
    lost = lab.wait_down(lab.pods)
    peer = f"longest silence: {_longest_silence(lab):.0f} s" if silent else ""
    table.add(f"loss of all {kind} until all partitions are ERROR", f"{lost:.2f} s", peer)
    outage = lab.idle_cpu(OUTAGE_SECONDS) * 100
    attempts = "attempts to connect have no response" if silent else "attempts to connect fail at once"
    table.add(f"CPU while no agent responds, {attempts}", f"{outage:.1f} % of a core", "")
    if silent:
        lab.kill_racks(all_racks=True)
    before = lab.server_cpu()
    with Probe(lab) as probe:
        boot = time.perf_counter()
        lab.start_racks()
        listening = time.perf_counter()
        lab.wait_agents_up()
        up = time.perf_counter() - listening
        wait_until(lambda: lab.are_active(partitions), "all partitions are ACTIVE", interval=0.2)
        recovered = time.perf_counter() - listening
    lab.wait_idle()
    cpu, calls = lab.server_cpu() - before, lab.configure_calls() - calls
    table.add(
        f"return of all {kind} until all partitions are ACTIVE",
        f"{recovered:.1f} s ({cpu:.1f} s CPU)",
        f"all agents up: {up:.1f} s; start of the twin before: {listening - boot:.1f} s",
        Target("≤ 30 s", 30),
        recovered,
    )
    table.add("same, longest call of a client", f"{probe.longest * 1000:.0f} ms", "")
    agents = lab.pods * MACHINES_PER_POD
    table.add(
        "same, Configure calls for each agent",
        f"{calls / agents:.2f}",
        f"partitions of each agent: {partitions / agents:.0f}",
        Target("≤ 2", 2),
        calls / agents,
    )
