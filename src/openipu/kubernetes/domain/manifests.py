# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes objects of a job, apart from its pods: ConfigMaps, and the rights of its launchers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openipu.kubernetes.domain import names, reserved, ssh
from openipu.kubernetes.domain.job import Job

API_VERSION = "graphcore.ai/v1alpha1"
HOSTFILE, KUBE_EXEC = "hostfile", "kubexec.sh"

# mpirun calls it like ssh: options, host, command. The host is the name of a worker.
_KUBE_EXEC_SCRIPT = """#!/bin/sh
# Run a command on a worker, for mpirun: kubexec.sh [OPTION]... WORKER COMMAND...
set -eu
while [ "${1#-}" != "$1" ]; do shift; done
worker=$1
shift
exec %(tools)s/kubectl exec "$worker" --container=%(container)s -- /bin/sh -c "$*"
"""


def metadata(job: Job, name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the metadata of an object of a job: it is deleted with the job."""
    owner = {
        "apiVersion": API_VERSION,
        "kind": "IPUJob",
        "name": job.name[1],
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": job.name[0],
        "labels": {reserved.JOB_LABEL: names.label(job.name[1]), **(labels or {})},
        "ownerReferences": [owner],
    }


def worker_names(job: Job, instance: int) -> list[str]:
    """Return the names of the workers of an instance."""
    first = instance * job.shape.workers
    return [names.worker(job.name[1], first + index) for index in range(job.shape.workers)]


def config_map(job: Job, instance: int) -> dict[str, Any]:
    """Return the hostfile of an instance, and the files with which mpirun reaches the workers.

    A worker has one slot for each of its model replicas.
    """
    slots = job.shape.replicas_per_worker
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.config(job.name[1], instance)),
        "data": {
            HOSTFILE: "".join(f"{name} slots={slots}\n" for name in worker_names(job, instance)),
            **(ssh.server_files() if job.uses_ssh else _kube_exec(job)),
        },
    }


def ssh_keys(job: Job, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret with the SSH keys of a job."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(job, names.ssh_keys(job.name[1], job.uid)),
        "type": "Opaque",
        "immutable": True,
        "stringData": dict(files),
    }


def launcher_rights(job: Job) -> list[dict[str, Any]]:
    """Return the service account of the launchers, and its role and binding.

    Launchers may watch pods. Without SSH, they may run commands in the workers of this job only.
    """
    meta = metadata(job, names.account(job.name[1]))
    group = "rbac.authorization.k8s.io"
    rules: list[dict[str, Any]] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    if not job.uses_ssh:
        workers = [name for instance in range(job.instances) for name in worker_names(job, instance)]
        # kubectl starts a command with a POST request for SPDY, or from 1.31 on with a GET request for a WebSocket.
        verbs = ["create", "get"]
        rules.append({"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": verbs})
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": meta["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": meta["name"], "namespace": meta["namespace"]}],
        },
    ]


def _kube_exec(job: Job) -> dict[str, str]:
    container = job.template["spec"]["containers"][0]["name"]
    return {KUBE_EXEC: _KUBE_EXEC_SCRIPT % {"tools": reserved.TOOLS_PATH, "container": container}}
