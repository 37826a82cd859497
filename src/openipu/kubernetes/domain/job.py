# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPUJob as the operator uses it, read from either published form of its specification.

The first form has ``modelReplicas``, ``ipusPerModelReplica`` and ``workers.replicas``, the second one
``ipusPerJobInstance``, ``workersPerJobInstance`` and ``modelReplicasPerWorker``. ``jobInstances`` belongs to both,
because ``kubectl scale`` writes it. Forms are never converted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from openipu.kubernetes.domain import exit_codes
from openipu.kubernetes.domain.names import Name

MAX_IPUS = 64  # in a partition
_HASH_LENGTH = 10

FIRST_FORM = ("modelReplicas", "ipusPerModelReplica")
SECOND_FORM = ("ipusPerJobInstance", "workersPerJobInstance", "modelReplicasPerWorker")


class RestartPolicy(Enum):
    """Cases in which a job starts again after its launcher has ended."""

    NEVER = "Never"
    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    EXIT_CODE = "ExitCode"


class CleanPodPolicy(Enum):
    """Pods that are deleted after the end of a job."""

    NONE = "None"
    WORKERS = "Workers"
    ALL = "All"


class RemoteShell(Enum):
    """Means with which a launcher starts programs on workers."""

    KUBE_EXEC = "KubeExec"
    SSH = "SSH"


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of one instance of a job."""

    ipus: int
    workers: int
    replicas: int  # of the model, in all workers together

    def __str__(self) -> str:
        return f"{self.ipus}-{self.workers}-{self.replicas}"

    @property
    def ipus_per_replica(self) -> int:
        """Number of IPUs of each replica of the model."""
        return self.ipus // self.replicas

    @property
    def ipus_per_worker(self) -> int:
        """Number of IPUs of each worker. Each worker is a graph compilation domain of the partition."""
        return self.ipus // self.workers

    @property
    def replicas_per_worker(self) -> int:
        """Number of replicas of the model in each worker."""
        return self.replicas // self.workers


@dataclass(frozen=True, slots=True)
class Restarts:
    """Restart policy with its limit. ``exit_codes``: only with ``RestartPolicy.EXIT_CODE``."""

    policy: RestartPolicy
    limit: int
    exit_codes: frozenset[int] = frozenset()

    def permitted(self, exit_code: int, count: int) -> bool:
        """Return whether a job starts again after this exit code of its launcher and ``count`` restarts."""
        if count >= self.limit:
            return False
        match self.policy:
            case RestartPolicy.NEVER:
                return False
            case RestartPolicy.ALWAYS:
                return True
            case RestartPolicy.ON_FAILURE:
                return exit_code != 0
            case RestartPolicy.EXIT_CODE:
                return exit_code in self.exit_codes


@dataclass(frozen=True, slots=True)
class Job:
    """A valid IPUJob. ``template``: the pod template of the workers, as given, and a hash that differs with it."""

    name: Name
    uid: str
    generation: int
    instances: int
    shape: Shape
    template: Mapping[str, Any]
    template_hash: str
    command: tuple[str, ...]  # of the launcher; empty: it has none
    launcher_env: tuple[Mapping[str, Any], ...]
    launcher_resources: Mapping[str, Any]
    remote_shell: RemoteShell
    ttl: int | None  # seconds of an interactive session, None for other jobs
    restarts: Restarts
    clean_pods: CleanPodPolicy
    rolling_update: bool
    suspended: bool

    @property
    def has_launcher(self) -> bool:
        """Return whether a launcher starts the program. Otherwise, workers run their own commands."""
        return bool(self.command) or self.ttl is not None

    @property
    def node_selector(self) -> Mapping[str, str]:
        """Return the labels that the template demands of nodes."""
        return self.template["spec"].get("nodeSelector") or {}

    @property
    def uses_ssh(self) -> bool:
        """Return whether the launcher reaches the workers with SSH."""
        return self.has_launcher and self.remote_shell is RemoteShell.SSH


def read(ipujob: Mapping[str, Any]) -> Job:
    """Return a job that ``validation.problems`` has found to be valid, with the defaults of the schema."""
    metadata, spec = ipujob["metadata"], ipujob["spec"]
    launcher, policy = spec.get("launcher") or {}, spec.get("restartPolicy") or {}
    interactive = spec.get("interactive")
    return Job(
        name=(metadata.get("namespace", ""), metadata["name"]),
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        instances=spec.get("jobInstances", 1),
        shape=shape(spec),
        template=spec["workers"]["template"],
        template_hash=_hash(spec["workers"]["template"]),
        command=tuple(launcher.get("command") or ()),
        launcher_env=tuple(launcher.get("env") or ()),
        launcher_resources=launcher.get("resources") or {},
        remote_shell=RemoteShell(launcher.get("remoteShell", "KubeExec")),
        ttl=None if interactive is None else interactive.get("ttl", 3600),
        restarts=Restarts(
            RestartPolicy(policy.get("type", "Never")),
            policy.get("backOffLimit", 3),
            exit_codes.parse(policy["exitCodes"]) if policy.get("exitCodes") else frozenset(),
        ),
        clean_pods=CleanPodPolicy(spec.get("cleanPodPolicy", "None")),
        rolling_update=spec["workers"].get("strategy") == "RollingUpdate",
        suspended=bool(spec.get("suspend", False)),
    )


def _hash(template: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:_HASH_LENGTH]


def is_second_form(spec: Mapping[str, Any]) -> bool:
    """Return whether a specification has a field of the second form."""
    return any(spec.get(field) is not None for field in SECOND_FORM)


def shape(spec: Mapping[str, Any]) -> Shape:
    """Return the size of an instance. It may violate the rules of ``validation``."""
    if is_second_form(spec):
        workers = int(spec.get("workersPerJobInstance") or 1)
        replicas = workers * int(spec.get("modelReplicasPerWorker") or 1)
        return Shape(int(spec.get("ipusPerJobInstance") or 0), workers, replicas)
    replicas = int(spec.get("modelReplicas") or 0)
    return Shape(replicas * int(spec.get("ipusPerModelReplica") or 0), spec["workers"].get("replicas", 1), replicas)
