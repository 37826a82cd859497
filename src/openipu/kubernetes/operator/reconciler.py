# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconciliation of one job: compare it with its pods and partitions, take the next step, and write its status.

Every step can be repeated. What must not be repeated, a restart, is counted in the status before any pod is deleted.
"""

from __future__ import annotations

import http
import time
from collections.abc import Sequence

import structlog

from openipu.kubernetes.cluster.client import ApiError, Object
from openipu.kubernetes.cluster.events import EventRecorder
from openipu.kubernetes.cluster.informer import Key
from openipu.kubernetes.cluster.work_queue import RetryLaterError
from openipu.kubernetes.domain import job as ipujob
from openipu.kubernetes.domain import plan, progress, reserved, validation
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.job import CleanPodPolicy
from openipu.kubernetes.domain.plan import Instance
from openipu.kubernetes.domain.progress import KILLED, Progress, Stage
from openipu.kubernetes.domain.status import State, Status
from openipu.kubernetes.operator.admission import Admission
from openipu.kubernetes.operator.children import Children, NameInUseError
from openipu.kubernetes.operator.job_store import JobStore, has_finalizer
from openipu.kubernetes.operator.job_view import JobView
from openipu.kubernetes.operator.partition_watch import PartitionWatch
from openipu.kubernetes.operator.proxy_client import ProxyClient, ProxyError

_log = structlog.get_logger("openipu.kubernetes.operator.reconciler")

_CONFLICT_SECONDS = 0.1  # until the cache has the change that caused a conflict
_DENIED_SECONDS = 30.0  # until pods or other objects that were denied are tried again
_RETRY_SECONDS = 2.0  # after an error that disappears without a change of the job
_STUCK_SECONDS = 5.0  # between checks of pods that do not end
_INVALID = frozenset({http.HTTPStatus.BAD_REQUEST, http.HTTPStatus.UNPROCESSABLE_ENTITY})
_REJECTED = _INVALID | {http.HTTPStatus.FORBIDDEN}  # statuses of requests that need a change by someone


class Reconciler:
    """Reconciles jobs. ``reconcile`` is the handler of a work queue."""

    def __init__(
        self,
        jobs: JobStore,
        children: Children,
        admission: Admission,
        partitions: PartitionWatch,
        proxy: ProxyClient,
        events: EventRecorder,
        back_off_scale: float = 1.0,
    ) -> None:
        """``back_off_scale``: factor of the seconds before restarts."""
        self._jobs = jobs
        self._children = children
        self._admission = admission
        self._partitions = partitions
        self._proxy = proxy
        self._events = events
        self._back_off_scale = back_off_scale
        self._denied: dict[tuple[str, int], float] = {}  # UID and instance -> when its pods are tried again

    async def reconcile(self, name: Key) -> float | None:
        """Take the next steps for a job. Return the seconds until the next ones, None to wait for a change."""
        thing = self._jobs.find(name)
        if thing is None:
            return None
        try:
            return await self._reconcile(name, thing)
        except ApiError as error:
            if error.is_conflict:
                return _CONFLICT_SECONDS
            if error.is_missing:  # the job or its namespace is gone, and the cache receives this soon
                self._jobs.discard(name)
                return _RETRY_SECONDS
            if error.is_temporary:
                _log.info("API server requests to try again", job="/".join(name), reason=str(error))
                raise RetryLaterError(str(error), error.retry_seconds) from None
            raise

    async def removed(self, name: Key, uid: str) -> None:
        """Discard the state of a job that no longer exists."""
        self._jobs.discard(name)
        self._children.discard(name, uid)
        self._partitions.drop(uid)
        self._denied = {key: until for key, until in self._denied.items() if key[0] != uid}
        await self._admission.discard(name, uid)

    async def _reconcile(self, name: Key, thing: Object) -> float | None:
        uid = thing["metadata"]["uid"]
        pods = self._children.pods(name, uid)
        if thing["metadata"].get("deletionTimestamp"):
            return await self._delete(name, thing, pods)
        if not has_finalizer(thing):
            thing = await self._jobs.change_finalizers(name, thing, add=True)
        status = dict(thing.get("status") or {})
        problems = [] if statuses.is_finished(status) else validation.problems(thing)
        if problems:
            return await self._reject(name, thing, status, pods, problems)
        view = JobView(thing, ipujob.read(thing), status, pods)
        due = None if statuses.is_finished(view.status) else await self._step(view)
        await self._write_status(view)
        return await self._finish(view) if statuses.is_finished(view.status) else due

    async def _step(self, view: JobView) -> float | None:
        if view.job.suspended:
            return await self._suspend(view)
        state = statuses.state(view.status)
        if state is State.SUSPENDED and view.pods:  # it was resumed before its pods have ended
            await self._children.delete_pods(view.job.name, view.pods)
            return None
        if state not in (State.PENDING, State.RUNNING, State.RESTARTING):
            view.status.setdefault("startTime", statuses.timestamp(time.time()))
            view.enter(State.PENDING)
            # Written before the first reservation, so that users see the job at once.
            await self._write_status(view)
        return await self._advance(view)

    async def _advance(self, view: JobView) -> float | None:
        """Advance the job: replace outdated pods, evaluate its result, create missing pods."""
        job = view.job
        found = view.compare()
        surplus_due = await self._release_surplus(view)
        ended = self._end(view, found.instances)
        if ended is not None:
            view.restart_or_end(ended)
            await self._write_status(view)  # counted before anything is deleted
            if statuses.is_finished(view.status):
                return None
            for each in found.instances:
                if self._partitions.is_lost(job.uid, each.number):
                    await self._release(job.name, job.uid, each.number)
            await self._children.delete_pods(job.name, view.pods)
            return view.restart_delay(self._back_off_scale)
        await self._children.delete_pods(job.name, found.outdated)
        delay = view.restart_delay(self._back_off_scale)
        if delay > 0:
            return delay
        dues = [surplus_due, *[await self._create_missing(view, each) for each in found.instances if each.missing]]
        dues.append(await self._check_objects(view))
        self._report(view)
        return min((each for each in dues if each is not None), default=None)

    def _end(self, view: JobView, instances: Sequence[Instance]) -> Progress | None:
        """Return how the present attempt has ended, None if it has not."""
        for each in instances:
            if each.progress.stage is Stage.FAILED:
                return each.progress
            if self._is_lost(view, each):
                text = f"partition of instance {each.number} was removed or failed."
                view.add_event("PartitionLost", f"The {text}", warning=True)
                return Progress(Stage.FAILED, KILLED, f"the {text}")
        if instances and all(each.progress.stage is Stage.SUCCEEDED for each in instances):
            return Progress(Stage.SUCCEEDED)
        return None

    def _is_lost(self, view: JobView, instance: Instance) -> bool:
        uid, number, stage = view.job.uid, instance.number, instance.progress.stage
        has_pods = bool(instance.pods) and stage in (Stage.STARTING, Stage.RUNNING)
        is_lost = has_pods and self._partitions.is_lost(uid, number)
        may_end = view.job.has_launcher and stage is Stage.RUNNING
        return is_lost and not (may_end and self._partitions.is_released(uid, number))

    async def _create_missing(self, view: JobView, instance: Instance) -> float | None:
        """Create the missing pods of an instance if it has its partition."""
        job, number = view.job, instance.number
        denied = self._denied.get((job.uid, number), 0.0) - time.monotonic()
        if denied > 0:
            return await self._give_back(view, number, denied)
        grant = self._admission.grant(job.uid, number)
        if grant is not None and (grant.is_outdated(job) or self._partitions.is_lost(job.uid, number)):
            return await self._give_back(view, number, _RETRY_SECONDS)
        if number in view.leaving:
            return _RETRY_SECONDS  # they use the partition, and some have the names of new pods
        try:
            if grant is not None:
                partition = grant.partition
            elif self._partitions.exists(job.uid, number) or instance.pods:
                partition = await self._admission.resume(job, number)
            else:
                created = view.thing["metadata"]["creationTimestamp"]
                is_denied = (job.uid, number) in self._denied or statuses.is_denied(view.status)
                self._admission.enqueue(job, number, created, denied=is_denied)
                return None
            if not job.has_launcher and not instance.pods and view.restarts:
                await self._proxy.reset(job.name, job.uid, number)
        except ProxyError as error:
            view.status["lastMessage"] = str(error)
            view.add_event("PartitionNotReady", str(error), warning=True)
            return _RETRY_SECONDS
        try:
            if await self._children.write_objects(job, view.restarts) and await self._renew_credentials(view):
                return _RETRY_SECONDS
            before = bool(instance.pods) or bool(self._children.pending(job.name))
            done = await self._children.create_pods(job, number, instance.missing, partition, view.restarts)
        except NameInUseError as error:
            view.status["lastMessage"] = str(error)
            view.add_event("NameInUse", str(error), warning=True)
            return _RETRY_SECONDS
        except ApiError as error:
            return await self._pods_rejected(view, number, error)
        if done:
            self._denied.pop((job.uid, number), None)
        if not before:
            view.add_event("PodsCreated", f"Created the pods of instance {number} with partition {partition.id}.")
        return None if done else _RETRY_SECONDS

    async def _check_objects(self, view: JobView) -> float | None:
        """Write objects again that users have deleted or changed. Return the seconds until the next check."""
        job = view.job
        if not job.has_launcher or not any(each.pods for each in view.instances):
            return None
        if self._children.until_check(job) > 0:
            return self._children.until_check(job)
        try:
            await self._children.write_objects(job, view.restarts, check=True)
            if await self._renew_credentials(view):
                return _RETRY_SECONDS
        except NameInUseError as error:
            view.add_event("NameInUse", str(error), warning=True)
            self._children.postpone_check(job, _DENIED_SECONDS)
        except ApiError as error:
            if error.code not in _REJECTED:
                raise
            # Pods that exist may not need the objects, so the job goes on.
            view.add_event("ObjectsNotWritten", f"Cannot write the objects of the job: {error}", warning=True)
            self._children.postpone_check(job, _DENIED_SECONDS)
        return self._children.until_check(job)

    async def _renew_credentials(self, view: JobView) -> bool:
        """Renew the SSH keys of a job that starts, if it has none. Return whether pods with former ones are deleted.

        So are pods with the token of a former service account. A running launcher keeps its connections until it ends.
        """
        starting = [each for each in view.instances if each.progress.stage is Stage.STARTING]
        if not starting or not await self._children.renew_credentials(view.job):
            return False
        outdated = [pod for each in starting for pod in each.pods]
        await self._children.delete_pods(view.job.name, outdated)
        return bool(outdated)

    async def _pods_rejected(self, view: JobView, instance: int, error: ApiError) -> float | None:
        """Handle pods that the API server has rejected: wait for a quota, or fail."""
        job = view.job
        if error.code in _INVALID:
            view.enter(State.FAILED, f"its pods are invalid: {error}")
            return None
        if error.code != http.HTTPStatus.FORBIDDEN:
            raise error
        view.explain(statuses.DENIED, f"Pods are denied: {error}")
        view.status["lastMessage"] = f"Pods are denied: {error}"
        view.add_event("PodsDenied", str(error), warning=True)
        self._denied[job.uid, instance] = time.monotonic() + _DENIED_SECONDS
        view.pods = self._children.pods(job.name, job.uid)
        await self._children.delete_pods(job.name, [each for each in view.pods if plan.instance_of(each) == instance])
        return await self._give_back(view, instance, _DENIED_SECONDS)

    async def _give_back(self, view: JobView, instance: int, seconds: float) -> float:
        """Release the partition of an instance when its pods have ended. Return the seconds until the next step.

        ``seconds``: result if there is nothing to release.
        """
        job = view.job
        if instance not in self._partitions.instances(job.uid):
            return seconds
        if self._children.pending(job.name):
            return _RETRY_SECONDS
        if all(plan.instance_of(each) != instance for each in view.pods):
            await self._release(job.name, job.uid, instance)
        return min(seconds, _RETRY_SECONDS)

    def _report(self, view: JobView) -> None:
        """Bring state and message up to date."""
        stages = [each.progress.stage for each in view.instances]
        complete = [each for each in view.instances if not each.missing]
        waiting, reason = self._admission.obstacle(view.job.name)
        if reason or not any((view.job.uid, each.number) in self._denied for each in view.instances):
            view.explain(reason, waiting)
        if stages and all(stage in (Stage.RUNNING, Stage.SUCCEEDED) for stage in stages):
            view.enter(State.RUNNING)
            return
        if not stages:  # scaled to zero
            view.enter(State.PENDING)
        obstacle = waiting or progress.obstacle(pod for each in complete for pod in each.pods)
        if obstacle and view.status.get("lastMessage") != obstacle:
            view.status["lastMessage"] = obstacle
            if not waiting:
                view.add_event("PodNotStarting", obstacle, warning=True)

    async def _release_surplus(self, view: JobView) -> float | None:
        """Release the partitions of instances that a smaller number of instances has removed, after their pods."""
        job = view.job
        surplus = {number for number in self._partitions.instances(job.uid) if number >= job.instances}
        if surplus and self._children.pending(job.name):
            return _RETRY_SECONDS
        for number in sorted(surplus - {plan.instance_of(each) for each in view.pods}):
            await self._release(job.name, job.uid, number)
            view.add_event("PartitionReleased", f"Released the partition of instance {number}.")
        return None

    async def _finish(self, view: JobView) -> float | None:
        """Delete the pods of a job that has ended, as its policy says."""
        await self._admission.withdraw(view.job.name)
        match view.job.clean_pods:
            case CleanPodPolicy.ALL:
                await self._children.delete_pods(view.job.name, view.pods)
            case CleanPodPolicy.WORKERS:
                workers = [each for each in view.pods if progress.role(each) == reserved.WORKER_ROLE]
                await self._children.delete_pods(view.job.name, workers)
        return None

    async def _suspend(self, view: JobView) -> float | None:
        """Delete the pods of a job, and then release its partitions."""
        job = view.job
        await self._admission.withdraw(job.name)
        if statuses.state(view.status) is not State.SUSPENDED:
            view.enter(State.SUSPENDED)
            view.status.pop("startTime", None)
            await self._write_status(view)  # so that no pod that ends now counts as a failure
        await self._children.delete_pods(job.name, view.pods)
        if self._partitions.instances(job.uid):
            if view.pods or self._children.pending(job.name):
                return _RETRY_SECONDS
            await self._release(job.name, job.uid)
            view.add_event("PartitionReleased", "Released the partitions.")
        return None

    async def _reject(
        self, name: Key, thing: Object, status: Status, pods: list[Object], problems: list[str]
    ) -> float | None:
        """Stop a job whose specification is invalid. Without webhooks, such jobs can be created."""
        await self._admission.withdraw(name)
        await self._children.delete_pods(name, pods)
        uid = thing["metadata"]["uid"]
        due = None
        if self._partitions.instances(uid):
            if pods or self._children.pending(name):
                due = _RETRY_SECONDS
            else:
                await self._release(name, uid)
        text = " ".join(problems)
        last = statuses.condition(status, State.FAILED)
        if last is not None and last["status"] == "True" and text in last["message"]:
            return due
        new = statuses.entered(status, State.FAILED, name, time.time(), text, statuses.INVALID)
        await self._jobs.write_status(
            name, thing, {**new, "observedGeneration": thing["metadata"].get("generation", 0)}
        )
        await self._events.record(thing, statuses.INVALID, text, warning=True)
        return due

    async def _delete(self, name: Key, thing: Object, pods: list[Object]) -> float | None:
        """End the pods of a deleted job, release its partitions, and let it go."""
        if not has_finalizer(thing):
            return None
        uid = thing["metadata"]["uid"]
        await self._admission.withdraw(name)
        await self._children.delete_pods(name, pods)
        if self._children.pending(name) or not all(plan.is_stuck(each, time.time()) for each in pods):
            return _STUCK_SECONDS
        try:
            done = await self._release(name, uid)
        except ProxyError as error:
            text = f"The partitions are not released yet: {error}"
            await self._events.record(thing, "PartitionsNotReleased", text, warning=True)
            raise
        if not done:
            text = "The partitions will be released as soon as their V-IPU controllers respond."
            await self._events.record(thing, "PartitionsNotReleased", text, warning=True)
        await self._jobs.change_finalizers(name, thing, add=False)
        return None

    async def _release(self, name: Key, uid: str, instance: int | None = None) -> bool:
        """Release the partitions of a job, or of one instance. Return False if this will happen later."""
        done = await self._admission.release(name, uid, instance)
        self._partitions.drop(uid, instance)
        return done

    async def _write_status(self, view: JobView) -> None:
        """Write the status if it differs, and then the events."""
        if not statuses.is_finished(view.thing.get("status") or {}):
            view.thing = await self._jobs.write_status(view.job.name, view.thing, self._status(view))
            view.status = dict(view.thing["status"])
        for reason, message, warning in view.events:
            await self._events.record(view.thing, reason, message, warning=warning)
        view.events.clear()

    def _status(self, view: JobView) -> Status:
        """Return the status with the present counts."""
        uid = view.job.uid

        def is_reserved(instance: int) -> bool:
            return self._admission.grant(uid, instance) is not None or self._partitions.exists(uid, instance)

        return view.counted(is_reserved)
