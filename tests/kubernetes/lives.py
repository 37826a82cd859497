# SPDX-License-Identifier: GPL-3.0-or-later
"""Lives of jobs from creation to deletion, with the state that each step must reach, whatever is killed meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from openipu.kubernetes.cluster.client import IPUJOBS, PODS, ApiError, Client, Object, Resource
from openipu.kubernetes.domain import names, reserved
from openipu.kubernetes.domain import status as statuses
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form

STEP_SECONDS = 120.0  # for a job to reach a state, with several outages
_CALM_SECONDS = 60.0  # further time without outages, which detects jobs that are stuck
_PAUSE_SECONDS = 0.1
_SERVER_ERROR = 500


class Api:
    """Requests of a test, repeated while the API server is down.

    ``late`` has the names of jobs that have not reached a state in time. Meanwhile, nothing may be killed.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.late: set[str] = set()

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, None if there is none."""
        return await self._repeat(lambda: self.client.find(resource, namespace, name))

    async def list(self, resource: Resource, namespace: str, selector: str = "") -> list[Object]:
        """Return objects."""
        found = await self._repeat(lambda: self.client.list(resource, namespace, selector))
        return list(found[0])

    async def create(self, resource: Resource, thing: Object) -> None:
        """Create an object. One that exists was created by an attempt whose answer was lost."""
        try:
            await self._repeat(lambda: self.client.create(resource, thing))
        except ApiError as error:
            if not error.already_exists:
                raise

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Object, subresource: str = "") -> None:
        """Merge fields into an object."""
        await self._repeat(lambda: self.client.patch(resource, namespace, name, patch, subresource))

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete an object."""
        await self._repeat(lambda: self.client.delete(resource, namespace, name))

    async def _repeat(self, request: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await request()
            except ApiError as error:
                # Without a reason: the API server does not serve custom resources yet.
                if 0 < error.code < _SERVER_ERROR and error.reason:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True)
class Life:
    """A job of a test, which is the only one that changes its specification."""

    api: Api
    namespace: str
    name: str

    async def submit(self, ipujob: Object) -> None:
        """Create the job."""
        await self.api.create(IPUJOBS, {**ipujob, "metadata": {"name": self.name, "namespace": self.namespace}})

    async def job(self) -> Object | None:
        """Return the job, None if it is gone."""
        return await self.api.get(IPUJOBS, self.namespace, self.name)

    async def pods(self) -> list[Object]:
        """Return its pods."""
        selector = f"{reserved.JOB_LABEL}={names.label(self.name)}"
        return await self.api.list(PODS, self.namespace, selector)

    async def reach(self, condition: Callable[[Object | None], bool], text: str) -> None:
        """Wait until the job fulfils a condition."""
        begin = asyncio.get_running_loop().time()
        while not condition(job := await self.job()):
            seconds = asyncio.get_running_loop().time() - begin
            if seconds > STEP_SECONDS:
                self.api.late.add(self.name)
            stuck = seconds > STEP_SECONDS + _CALM_SECONDS
            assert not stuck, f"job {self.name} is stuck: not {text} after {seconds:.0f} s: {json.dumps(job)}"
            await asyncio.sleep(_PAUSE_SECONDS)
        self.api.late.discard(self.name)

    async def reach_state(self, state: str, restarts: int = 0, instances: int | None = None) -> None:
        """Wait until the job is in a state. It must have been restarted exactly ``restarts`` times then."""

        def reached(job: Object | None) -> bool:
            assert job is not None, f"job {self.name} has disappeared"
            status = job.get("status") or {}
            count = status.get("restartCount", 0)
            assert count <= restarts, f"job {self.name} was restarted {count} times: {json.dumps(status)}"
            found = statuses.state(status)
            ready = instances is None or status.get("currentReplicas") == instances
            return found is not None and found.value == state and count == restarts and ready

        await self.reach(reached, f"{state} with {restarts} restarts and {instances or 'all'} instances")

    async def end(self, exit_code: int, attempt: int = 0) -> None:
        """Report that the launcher of an attempt has ended, as kubelet does."""
        name = names.launcher(self.name, 0)
        uid = ""
        while not uid:
            pod = await self.api.get(PODS, self.namespace, name)
            if pod is not None and pod["metadata"]["labels"][reserved.ATTEMPT_LABEL] == str(attempt):
                uid = pod["metadata"]["uid"] if pod["status"].get("phase") == "Running" else ""
            await asyncio.sleep(0 if uid else _PAUSE_SECONDS)
        ended = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}
        container = {
            "name": pod["spec"]["containers"][0]["name"],
            "image": "",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        status = {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [container]}
        await self.api.patch(PODS, self.namespace, name, {"metadata": {"uid": uid}, "status": status}, "status")

    async def change(self, **spec: Any) -> None:
        """Change fields of the specification."""
        await self.api.patch(IPUJOBS, self.namespace, self.name, {"spec": spec})

    async def delete(self) -> None:
        """Delete the job and wait until it is gone."""
        await self.api.delete(IPUJOBS, self.namespace, self.name)
        await self.reach(lambda job: job is None, "deleted")


async def succeed(life: Life, size: str) -> None:
    """Run to success."""
    await life.submit(first_form(modelReplicas=size))
    await life.reach_state("Running")
    await life.end(0)
    await life.reach_state("Succeeded")


async def fail(life: Life, size: str) -> None:
    """Run to a failure."""
    await life.submit(first_form(modelReplicas=size))
    await life.reach_state("Running")
    await life.end(3)
    await life.reach_state("Failed")


async def restart(life: Life, size: str) -> None:
    """Fail once, start again and succeed."""
    await life.submit(first_form(modelReplicas=size, restartPolicy={"type": "OnFailure", "backOffLimit": 3}))
    await life.reach_state("Running")
    await life.end(1)
    await life.reach_state("Running", restarts=1)
    await life.end(0, attempt=1)
    await life.reach_state("Succeeded", restarts=1)


async def suspend(life: Life, size: str) -> None:
    """Run, give the IPUs back, and run again."""
    await life.submit(first_form(modelReplicas=size))
    await life.reach_state("Running")
    await life.change(suspend=True)
    await life.reach_state("Suspended")
    await life.reach(lambda job: not (job or {})["status"]["iPUPartitionCreated"], "without partition")
    await life.change(suspend=False)
    await life.reach_state("Running")


async def suspend_early(life: Life, size: str) -> None:
    """Suspend while the job still starts."""
    await life.submit(first_form(modelReplicas=size))
    await life.change(suspend=True)
    await life.reach_state("Suspended")
    await life.change(suspend=False)
    await life.reach_state("Running")


async def scale(life: Life, size: str) -> None:
    """Run with one, three and two instances."""
    await life.submit(second_form(ipusPerJobInstance=size, jobInstances=1))
    await life.reach_state("Running", instances=1)
    await life.change(jobInstances=3)
    await life.reach_state("Running", instances=3)
    await life.change(jobInstances=2)
    await life.reach_state("Running", instances=2)


async def scale_early(life: Life, size: str) -> None:
    """Change the number of instances while the job still starts."""
    await life.submit(second_form(ipusPerJobInstance=size, jobInstances=3))
    await life.change(jobInstances=1)
    await life.reach_state("Running", instances=1)


async def vanish(life: Life, size: str) -> None:
    """Start, and be deleted at once."""
    await life.submit(first_form(modelReplicas=size))


ALL = (succeed, fail, restart, suspend, suspend_early, scale, scale_early, vanish)
# A job that was suspended is older than jobs that run meanwhile, so it is first when it waits again. If it needs many
# IPUs, it can wait for the instance of a scaled job that waits behind it. So both are small enough for any gap.
_SIZES = {
    scale: ("1", "2"),
    scale_early: ("1", "2", "4"),
    suspend: ("1", "2"),
    suspend_early: ("1", "2"),
}
_LARGE = ("2", "4", "8", "16")


async def live(life: Life, chance: random.Random) -> None:
    """Live a random life, to the end."""
    kind = chance.choice(ALL)
    await kind(life, chance.choice(_SIZES.get(kind, _LARGE)))
    await life.delete()
