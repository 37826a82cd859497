# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects and pods of jobs at the API server.

A name may be in use by an object of an earlier job with the same name, which disappears soon. It may also be in use
by an object without such an owner. Neither is ever changed.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from openipu.kubernetes.cluster.client import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    ApiError,
    Client,
    Object,
    Resource,
)
from openipu.kubernetes.cluster.informer import Informer, Key, key
from openipu.kubernetes.domain import manifests, names, plan, pods, reserved, ssh, ssh_ports, status
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.ownership import conflict, not_created, owner
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.operator import ssh_keys

CHECK_SECONDS = 300.0  # between checks of the objects of a job other than pods
_UNSEEN_SECONDS = 30.0  # until a new pod must have appeared in the stream of changes
_UNKNOWN_GRACE_SECONDS = 30.0  # of a deleted pod, until the cache has its deletion timestamp
_RESOURCES = {
    "ConfigMap": CONFIG_MAPS,
    "ServiceAccount": SERVICE_ACCOUNTS,
    "Role": ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "Pod": PODS,
}


class _Written(NamedTuple):
    """Properties of a job on which its objects other than pods depend, and its attempt."""

    instances: int
    template_hash: str
    uses_ssh: bool
    attempt: int


class NameInUseError(Exception):
    """Raised when a foreign object has the name of an object of a job."""

    error_code = "OPU900"


def job_key(thing: Object) -> Key | None:
    """Return the key of the job to which an object belongs."""
    found = owner(thing)
    return None if found is None else (thing["metadata"]["namespace"], found[0])


def needed(pod: Object) -> Object:
    """Return the part of a pod that the operator needs."""
    metadata, state = pod["metadata"], pod.get("status") or {}
    fields = ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "deletionTimestamp")
    kept = ("phase", "reason", "message", "conditions", "initContainerStatuses", "containerStatuses")
    return {
        "metadata": {name: metadata[name] for name in fields if name in metadata},
        "status": {name: state[name] for name in kept if name in state},
    }


class Children:
    """Writer of the objects and pods of all jobs."""

    def __init__(
        self, client: Client, cache: Informer, options: PodOptions, check_seconds: float = CHECK_SECONDS
    ) -> None:
        """Find pods in ``cache``, which may be a little late. ``check_seconds``: between checks of other objects."""
        self._client = client
        self._cache = cache
        self._options = options
        self._created: defaultdict[Key, dict[str, tuple[str, float]]] = defaultdict(dict)  # not yet in the cache
        self._deleted: defaultdict[Key, set[str]] = defaultdict(set)  # UIDs, still in the cache without a mark
        self._check_seconds = check_seconds
        self._written: dict[str, _Written] = {}  # by UID of a job
        self._checked: dict[str, float] = {}  # UID -> when its other objects were checked
        self._new_accounts: set[str] = set()  # UIDs of jobs whose service account was created
        self._ports: ssh_ports.PortBook | None = None

    def pods(self, job: Key, uid: str) -> list[Object]:
        """Return the pods of a job. Deleted pods are marked, even if the cache is not up to date yet."""
        deleted = self._deleted.get(job, ())
        return [
            _marked(each) if each["metadata"]["uid"] in deleted else each
            for each in self._cache.members(job)
            if (owner(each) or ("", ""))[1] == uid
        ]

    def pending(self, job: Key) -> set[str]:
        """Return the names of new pods that the cache does not know yet."""
        now = time.monotonic()
        found = self._created.get(job, {})
        for name in [name for name, (_, since) in found.items() if now - since > _UNSEEN_SECONDS]:
            del found[name]
        return set(found)

    def seen(self, pod: Object) -> None:
        """Note that the cache knows a change of a pod."""
        job = job_key(pod)
        if job is None:
            return
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if self._created.get(job, {}).get(name, ("", 0))[0] == uid:
            del self._created[job][name]
        if uid in self._deleted.get(job, ()) and self._cache.get(key(pod)) is None:
            self._deleted[job].discard(uid)

    def discard(self, job: Key, uid: str) -> None:
        """Discard the state of a job that no longer exists."""
        self._created.pop(job, None)
        self._deleted.pop(job, None)
        self._written.pop(uid, None)
        self._checked.pop(uid, None)
        self._new_accounts.discard(uid)
        if self._ports is not None:
            self._ports.discard(uid)

    def until_check(self, job: Job) -> float:
        """Return the seconds until the objects of a job other than pods must be checked, 0 if they must be now.

        A new leader spreads the first checks of its jobs.
        """
        now = time.monotonic()
        spread = zlib.crc32(job.uid.encode()) / (1 << 32) * self._check_seconds
        last = self._checked.setdefault(job.uid, now - spread)
        return max(0.0, last + self._check_seconds - now)

    def postpone_check(self, job: Job, seconds: float) -> None:
        """Check the objects of a job after ``seconds``, or at the usual time if that is earlier."""
        self._checked[job.uid] = time.monotonic() + min(seconds - self._check_seconds, 0.0)

    async def write_objects(self, job: Job, attempt: int, *, check: bool = False) -> bool:
        """Create or correct the ConfigMaps of a job and the rights of its launchers. Raises NameInUseError.

        They are read again for each attempt, and with ``check``, because users may have deleted them. Return whether
        they were written or read.
        """
        state = _Written(job.instances, job.template_hash, job.uses_ssh, attempt)
        before = self._written.get(job.uid)
        if not job.has_launcher or (before == state and not check):
            return False
        maps = [manifests.config_map(job, number) for number in range(job.instances)]
        write = self._write if before is None and not check else self._correct
        await asyncio.gather(*(write(each, job.uid) for each in (*maps, *manifests.launcher_rights(job))))
        self._written[job.uid], self._checked[job.uid] = state, time.monotonic()
        return True

    async def renew_credentials(self, job: Job) -> bool:
        """Create the SSH keys of a job, if it has none. Return whether its pods need the keys or a token again.

        Tokens of pods are valid for the service account with the same UID only.
        """
        has_new_keys = await self.create_ssh_keys(job)
        has_new_account = job.uid in self._new_accounts
        self._new_accounts.discard(job.uid)
        return has_new_keys or has_new_account

    async def create_ssh_keys(self, job: Job) -> bool:
        """Create the SSH keys of a job that uses SSH, unless it has keys: their name shows whose they are.

        Return whether they are new. Then pods that exist have other keys.
        """
        if not job.uses_ssh:
            return False
        try:
            await self._client.create(SECRETS, manifests.ssh_keys(job, ssh_keys.create()))
        except ApiError as error:
            if not error.already_exists:
                raise
            return False
        return True

    async def create_pods(
        self, job: Job, instance: int, missing: Iterable[str], partition: Partition, attempt: int
    ) -> bool:
        """Create pods of an instance, its launcher first. Return False if a pod with such a name still exists.

        Raises NameInUseError.
        """
        names_to_create = set(missing) - self.pending(job.name)
        launcher = names.launcher(job.name[1], instance)
        done = True
        if job.has_launcher and launcher in names_to_create:
            done = await self._create_pod(job, pods.launcher(job, instance, partition, attempt, self._options))
        ports = self._ssh_ports(job, instance, attempt)
        workers = [
            pods.worker(job, instance, index, partition, attempt, self._options, ports[index])
            for index, name in enumerate(manifests.worker_names(job, instance))
            if name in names_to_create
        ]
        return all([done, *await asyncio.gather(*(self._create_pod(job, each) for each in workers))])

    async def delete_pods(self, job: Key, found: Iterable[Mapping[str, Any]]) -> None:
        """Delete pods that are not marked as deleted."""
        named = [each["metadata"] for each in found if not each["metadata"].get("deletionTimestamp")]
        await asyncio.gather(*(self._client.delete(PODS, job[0], each["name"], uid=each["uid"]) for each in named))
        for each in named:
            cached = self._cache.get((job[0], each["name"]))
            if cached is not None and cached["metadata"]["uid"] == each["uid"]:
                self._deleted[job].add(each["uid"])

    def _ssh_ports(self, job: Job, instance: int, attempt: int) -> Sequence[int]:
        """Return the SSH ports of the workers of an instance."""
        if not (job.uses_ssh and self._options.shares_ports(job)):
            return [ssh.PORT] * job.shape.workers
        if self._ports is None:
            self._ports = self._used_ports()
        return self._ports.ports(ssh_ports.Instance(job.uid, instance, attempt), job.shape.workers)

    def _used_ports(self) -> ssh_ports.PortBook:
        """Return the ports of the workers that exist."""
        book = ssh_ports.PortBook(self._options.ssh_ports)
        for pod in self._cache:
            labels, job = pod["metadata"].get("labels") or {}, owner(pod)
            port = int(labels.get(reserved.SSH_PORT_LABEL, ssh.PORT))
            if job is not None and port != ssh.PORT:
                attempt = int(labels[reserved.ATTEMPT_LABEL])
                instance = ssh_ports.Instance(job[1], plan.instance_of(pod), attempt)
                book.note(instance, int(labels[reserved.WORKER_LABEL]), port)
        return book

    async def _create_pod(self, job: Job, pod: Object) -> bool:
        try:
            metadata = (await self._client.create(PODS, pod))["metadata"]
        except ApiError as error:
            if not error.already_exists:
                raise
            found = await self._client.find(PODS, job.name[0], pod["metadata"]["name"])
            if found is None:
                return False
            _check_owner(found, job.uid)
            metadata, label = found["metadata"], reserved.ATTEMPT_LABEL
            attempt = (metadata.get("labels") or {}).get(label)
            if attempt is None:
                raise NameInUseError(not_created(found)) from None
            is_same = attempt == pod["metadata"]["labels"][label]
            if not is_same or metadata.get("deletionTimestamp"):
                return False
        cached = self._cache.get((job.name[0], metadata["name"]))
        if cached is None or cached["metadata"]["uid"] != metadata["uid"]:
            self._created[job.name][metadata["name"]] = metadata["uid"], time.monotonic()
        return True

    async def _write(self, desired: Object, uid: str) -> None:
        resource: Resource = _RESOURCES[desired["kind"]]
        try:
            await self._create(resource, desired, uid)
        except ApiError as error:
            if not error.already_exists:
                raise
            await self._correct(desired, uid)

    async def _create(self, resource: Resource, desired: Object, uid: str) -> None:
        await self._client.create(resource, desired)
        if resource is SERVICE_ACCOUNTS:
            self._new_accounts.add(uid)

    async def _correct(self, desired: Object, uid: str) -> None:
        """Correct an object that should exist, or create it."""
        resource, metadata = _RESOURCES[desired["kind"]], desired["metadata"]
        found = await self._client.find(resource, metadata["namespace"], metadata["name"])
        if found is None:
            await self._create(resource, desired, uid)
        else:
            _check_owner(found, uid)
            changed = {name: desired[name] for name in ("data", "rules") if found.get(name) != desired.get(name)}
            if changed:
                await self._client.replace(resource, {**found, **changed})


def _check_owner(found: Object, uid: str) -> None:
    """Raise NameInUseError if an object belongs to no job, or to another one, even with the same name."""
    job = owner(found)
    if job is not None and job[1] == uid:
        return
    raise NameInUseError(conflict(found))


def _marked(pod: Object) -> Object:
    deleted = status.timestamp(time.time() + _UNKNOWN_GRACE_SECONDS)
    return {**pod, "metadata": {"deletionTimestamp": deleted, **pod["metadata"]}}
