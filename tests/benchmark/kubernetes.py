# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU, memory and reaction of the IPU operator, beside a Deployment with as many pods: ``make bench-kubernetes``."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import random
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import quantiles

import click

from openipu.kubernetes.cluster.client import IPUJOBS, PODS, Object, Resource
from openipu.kubernetes.cluster.informer import Key
from openipu.kubernetes.domain import names
from openipu.process import log
from tests.kubernetes.operators import Operator
from tests.kubernetes.program import Program
from tests.unit.kubernetes.domain.ipujobs import first_form

from .kubernetes_lab import HOME, Creations, KubernetesLab, cpu, open_lab, open_operator, peak_memory, wait
from .measure import Table, Target

_FEW, _MANY = 500, 2000
_IPUS_OF_A_RACK = 64
# The twins of the racks share the cores. So all measurements with IPUs for all jobs have the same racks.
_RACKS = math.ceil(_MANY / _IPUS_OF_A_RACK)
_PODS_OF_A_JOB = 2  # launcher and worker
_CHANGES, _CHANGES_PER_SECOND = 200, 20
_QUEUES = tuple(f"queue-{number}" for number in range(5))  # namespaces
_SIZES = ("1", "16", "4", "2", "8")  # IPUs of jobs that queue
_DEPLOYMENTS = Resource("apps/v1", "deployments")
_DEPLOYMENT = Resource("apps/v1", "deployments").path(HOME, "peer")


@dataclass
class Run:
    """Figures of jobs from their creation until all are Running. ``memory``: peak in MB."""

    jobs: int
    cpu: float
    proxy_cpu: float
    seconds: float
    memory: float

    @property
    def cpu_of_a_job(self) -> float:
        """CPU of the operator per job in milliseconds."""
        return self.cpu / self.jobs * 1000

    def text(self) -> str:
        """Return the figures apart from the CPU of the operator."""
        proxy = self.proxy_cpu / self.jobs * 1000
        return f"proxy {proxy:.1f} ms per job; all Running after {self.seconds:.0f} s; peak {self.memory:.0f} MB"


def pid(program: Program) -> int:
    """Return the process of a program."""
    assert program.process is not None
    return program.process.pid


def ipujob(name: Key, ipus: str = "1") -> Object:
    """Return a job with a launcher and one worker."""
    return {**first_form(modelReplicas=ipus), "metadata": {"namespace": name[0], "name": name[1]}}


async def start_jobs(lab: KubernetesLab, operator: Operator, count: int) -> Run:
    """Create jobs at once, and measure until all are Running."""
    own, proxy = pid(operator), pid(operator.proxy)
    before, proxy_before, begun = cpu(own), cpu(proxy), time.monotonic()
    await lab.each([lab.client.create(IPUJOBS, ipujob((HOME, f"job-{number}"))) for number in range(count)])
    await wait(lambda: lab.board.all_in("Running", count), f"{count} jobs are Running")
    return Run(count, cpu(own) - before, cpu(proxy) - proxy_before, time.monotonic() - begun, peak_memory(own))


async def end(lab: KubernetesLab, name: Key) -> None:
    """Report that the launcher of a job has ended with success, as kubelet does."""
    await lab.client.patch(PODS, name[0], names.launcher(name[1], 0), {"status": {"phase": "Succeeded"}}, "status")


async def measure_reaction(lab: KubernetesLab) -> list[float]:
    """End random jobs one after the other. Return the seconds until each is Succeeded, from the shortest."""
    begun: dict[Key, float] = {}
    durations: list[float] = []

    def changed(name: Key, state: str) -> None:
        if name in begun and state == "Succeeded":
            durations.append(time.monotonic() - begun[name])

    lab.board.changed = changed
    for name in random.Random(1).sample(sorted(lab.board.jobs), _CHANGES):
        begun[name] = time.monotonic()
        await end(lab, name)
        await asyncio.sleep(1 / _CHANGES_PER_SECOND)
    await wait(lambda: len(durations) == _CHANGES, "the changed jobs are Succeeded")
    lab.board.changed = lambda name, state: None
    return sorted(durations)


async def bench_few(lab: KubernetesLab, table: Table) -> Run:
    """Measure 500 jobs on IPUs for all, their reaction to changes, and their deletion."""
    with open_operator(lab, _RACKS) as operator:
        run = await start_jobs(lab, operator, _FEW)
        before = cpu(pid(operator))
        await asyncio.sleep(10)
        idle = (cpu(pid(operator)) - before) / 10
        durations = await measure_reaction(lab)
        before = cpu(pid(operator))
        await lab.delete_jobs()
        deletion = (cpu(pid(operator)) - before) / _FEW * 1000
    target = Target("≤ 50 ms", 50)
    table.add(f"{_FEW} jobs at once, CPU per job", f"{run.cpu_of_a_job:.1f} ms", run.text(), target, run.cpu_of_a_job)
    p95, p50 = quantiles(durations, n=20)[-1], durations[len(durations) // 2]
    text = f"median {p50 * 1000:.0f} ms; idle: {idle * 1000:.0f} ms CPU per second"
    table.add("reaction to the end of a launcher, p95", f"{p95 * 1000:.0f} ms", text, Target("≤ 1 s", 1), p95)
    table.add("deletion, CPU per job", f"{deletion:.1f} ms", "")
    return run


async def bench_deployment(lab: KubernetesLab, table: Table, run: Run) -> None:
    """Measure a Deployment with as many pods as the jobs of a run."""
    count = _PODS_OF_A_JOB * run.jobs
    labels = {"app": "peer"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "main"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "peer", "namespace": HOME},
        "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template},
    }
    before, begun = cpu(*lab.peers), time.monotonic()
    await lab.client.create(_DEPLOYMENTS, deployment)
    while (await lab.client.request("GET", _DEPLOYMENT))["status"].get("readyReplicas") != count:
        await asyncio.sleep(0.2)
    used, seconds = cpu(*lab.peers) - before, time.monotonic() - begun
    await lab.client.delete(_DEPLOYMENTS, HOME, "peer")
    table.add(
        f"same, beside a Deployment of {count} pods",
        f"{run.cpu:.1f} s in all",
        f"controller manager and scheduler: {used:.1f} s, ready after {seconds:.0f} s",
    )


async def bench_queue(lab: KubernetesLab, table: Table) -> None:
    """Measure 500 jobs of several namespaces that queue for 64 IPUs, and check their order."""
    for each in _QUEUES:
        await lab.create_namespace(each)
    with open_operator(lab, 1) as operator, Creations(operator.proxy.vipu.address) as creations:
        blocker = (HOME, "blocker")
        await lab.client.create(IPUJOBS, ipujob(blocker, str(_IPUS_OF_A_RACK)))
        await wait(lambda: lab.board.states.get(blocker) == "Running", "the first job is Running")
        own, begun, before = pid(operator), time.monotonic(), cpu(pid(operator))
        jobs = [(namespace, f"job-{number}") for number in range(_FEW // len(_QUEUES)) for namespace in _QUEUES]
        sizes = random.Random(1).choices(_SIZES, k=len(jobs))
        await lab.each([lab.client.create(IPUJOBS, ipujob(*each)) for each in zip(jobs, sizes, strict=True)])
        await wait(lambda: len(lab.board.jobs) == len(lab.board.states) == _FEW + 1, "all jobs wait")
        created = {name: lab.board.jobs[name]["metadata"]["creationTimestamp"] for name in jobs}
        ran = await _run_all(lab)
        used = cpu(own) - before
        memory, seconds = peak_memory(own), time.monotonic() - begun
        served = creations.order()
    if len(ran) != _FEW + 1:
        raise RuntimeError(f"Cannot measure the queue: {len(ran)} of {_FEW + 1} jobs were Running.")
    _check_order(created, served)
    text = f"all deleted after {seconds:.0f} s; peak {memory:.0f} MB; served in their order"
    table.add(f"{_FEW} jobs queue for 64 IPUs, CPU per job until deleted", f"{used / _FEW * 1000:.1f} ms", text)


async def _run_all(lab: KubernetesLab) -> set[Key]:
    """End each job that runs and delete it then, until there is none. Return the jobs that ran."""
    ran: set[Key] = set()
    tasks: set[asyncio.Task[None]] = set()

    def changed(name: Key, state: str) -> None:
        work: Awaitable[None] | None = None
        if state == "Running":
            ran.add(name)
            work = end(lab, name)
        elif state == "Succeeded":
            work = lab.client.delete(IPUJOBS, *name)
        if work is not None:
            task = asyncio.ensure_future(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    lab.board.changed = changed
    for name, state in list(lab.board.states.items()):
        changed(name, state)
    await wait(lambda: not lab.board.jobs, "all jobs are deleted")
    lab.board.changed = lambda name, state: None
    return ran


def _check_order(created: dict[Key, str], served: dict[str, int]) -> None:
    """Check that the jobs of each namespace received their partitions in the order of their creation.

    ``served``: partition id -> number of the change that created it. Raises RuntimeError.
    """
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, second in created.items():
        found[name[0]].append((second, name[1]))
    for namespace, jobs in found.items():
        order = [served[names.partition((namespace, job), 0)] for _, job in sorted(jobs)]
        if order != sorted(order):
            raise RuntimeError(f"Jobs of namespace {namespace} were not served in the order of their creation.")


async def bench_many(lab: KubernetesLab, table: Table, few: Run) -> None:
    """Measure 2,000 jobs on IPUs for all."""
    with open_operator(lab, _RACKS) as operator:
        run = await start_jobs(lab, operator, _MANY)
        await lab.delete_jobs()
    growth = run.cpu / few.cpu
    table.add(
        f"{_MANY} jobs, CPU per job", f"{run.cpu_of_a_job:.1f} ms", run.text(), Target("≤ 50 ms", 50), run.cpu_of_a_job
    )
    table.add(f"CPU of {_MANY} jobs / {_FEW} jobs", f"{growth:.2f} ×", "", Target("≤ 4.5 ×", 4.5), growth)


async def _bench(table: Table, groups: tuple[str, ...]) -> None:
    async with open_lab() as lab:

        async def measured(name: str, work: Callable[[], Awaitable[None]]) -> None:
            if name not in groups:
                return
            begun = time.monotonic()
            print(f"{name} …", end="", file=sys.stderr, flush=True)
            await work()
            print(f" {time.monotonic() - begun:.0f} s", file=sys.stderr)

        few: list[Run] = []

        async def jobs() -> None:
            few.append(await bench_few(lab, table))

        await measured("jobs", jobs)
        if few:
            await measured("deployment", lambda: bench_deployment(lab, table, few[0]))
            await measured("many", lambda: bench_many(lab, table, few[0]))
        await measured("queue", lambda: bench_queue(lab, table))


_GROUPS = ("jobs", "deployment", "many", "queue")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--only",
    "groups",
    multiple=True,
    type=click.Choice(_GROUPS),
    help="Group of figures to measure; repeatable. Groups deployment and many need group jobs. Default: all.",
)
def main(groups: tuple[str, ...]) -> None:
    """Measure and print a table of figures. Missed targets are reported, and the exit status is 0."""
    log.configure("text", "warning")
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    table = Table(f"IPU operator, {cores} cores (load {load:.1f} at start), Python {platform.python_version()}")
    try:
        asyncio.run(_bench(table, groups or _GROUPS))
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    print(table.text())
    missed = "; ".join(table.missed)
    print(f"\nMissed targets: {missed}." if missed else "\nAll targets are met.")


if __name__ == "__main__":
    main(prog_name="python -m tests.benchmark.kubernetes")
