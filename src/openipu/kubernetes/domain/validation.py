# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of IPUJobs beyond the schema of the custom resource. Each problem is a sentence for the user.

The API server checks pod templates itself, in a dry run of the pods: ``manifests`` creates them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from openipu.kubernetes.domain import exit_codes, job, reserved
from openipu.kubernetes.domain.job import FIRST_FORM, MAX_IPUS, SECOND_FORM, Shape
from openipu.shared.vipu.object_rules import is_power_of_two

_MPI_PROGRAM = re.compile(r"\b(mpirun|mpiexec|orterun)\b")
_INTERFACE_LISTS = ("include", "exclude")
_FIXED_FIELDS = (*FIRST_FORM, *SECOND_FORM, "interactive", "launcher")
_REMEDY = "Delete the job and create it again."


def problems(ipujob: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with an IPUJob that conforms to the schema, nothing if it is valid."""
    spec = ipujob["spec"]
    found = [*_form(spec), *_roles(spec), *_restarts(spec), *_template(spec)]
    # Without all numbers of one form, the size would only repeat the same mistake.
    return found if any(_form(spec)) else [*_sizes(job.shape(spec), second=job.is_second_form(spec)), *found]


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return which changes of a valid IPUJob are not possible."""
    before, after = old["spec"], new["spec"]
    if before.get("suspend"):
        return []  # it has neither pods nor IPUs
    changed = [field for field in _FIXED_FIELDS if before.get(field) != after.get(field)]
    if before["workers"].get("replicas", 1) != after["workers"].get("replicas", 1):
        changed.append("workers.replicas")
    return [
        f"spec.{field} cannot be changed while the job exists, unless it is suspended. {_REMEDY}" for field in changed
    ]


def warnings(ipujob: Mapping[str, Any], *, host_network: bool) -> list[str]:
    """Return warnings about a valid IPUJob. Each one is a sentence for the user."""
    spec = ipujob["spec"]
    launcher, containers = spec.get("launcher") or {}, spec["workers"]["template"]["spec"]["containers"]
    words = " ".join(map(str, launcher.get("command") or ()))
    names = {each.get("name") for each in [*(launcher.get("env") or []), *(containers[0].get("env") or [])]}
    chosen = any(f"btl_tcp_if_{kind}" in words or f"OMPI_MCA_btl_tcp_if_{kind}" in names for kind in _INTERFACE_LISTS)
    if not host_network or job.shape(spec).workers == 1 or not _MPI_PROGRAM.search(words) or chosen:
        return []
    return [
        "spec.launcher.command runs mpirun on several workers without a network interface. Add '--mca "
        "btl_tcp_if_include INTERFACE', so that Open MPI uses the network that connects the workers."
    ]


def _form(spec: Mapping[str, Any]) -> Iterator[str]:
    first = [field for field in FIRST_FORM if spec.get(field) is not None]
    second = [field for field in SECOND_FORM if spec.get(field) is not None]
    if first and second:
        yield (
            f"spec.{first[0]} and spec.{second[0]} belong to different forms. Use modelReplicas with "
            "ipusPerModelReplica, or ipusPerJobInstance."
        )
    elif second:
        if "ipusPerJobInstance" not in second:
            yield f"spec.{second[0]} needs spec.ipusPerJobInstance. Add the number of IPUs of each instance."
        elif spec["workers"].get("replicas", 1) != 1:
            yield (
                "spec.workers.replicas belongs to jobs with modelReplicas. Use workersPerJobInstance with "
                "ipusPerJobInstance."
            )
    elif len(first) < len(FIRST_FORM):
        missing = [field for field in FIRST_FORM if field not in first]
        yield (
            f"spec has no {' and no '.join(missing)}. Set modelReplicas and ipusPerModelReplica, or ipusPerJobInstance."
        )


def _sizes(shape: Shape, *, second: bool) -> Iterator[str]:
    """Yield violations of the rules of partitions. The text names the fields of the form."""
    size = "spec.ipusPerJobInstance" if second else "spec.modelReplicas × spec.ipusPerModelReplica"
    workers = "spec.workersPerJobInstance" if second else "spec.workers.replicas"
    if shape.ipus > MAX_IPUS:
        yield f"{size} is {shape.ipus}, but a partition has at most {MAX_IPUS} IPUs. Use fewer, or more job instances."
    elif not is_power_of_two(shape.ipus):
        yield f"{size} is {shape.ipus}, but the size of a partition is a power of two. Use 1, 2, 4, 8, 16, 32 or 64."
    elif shape.ipus % shape.workers:
        yield (
            f"{size} is {shape.ipus}, which cannot be divided by {workers} ({shape.workers}). Use a power of two of "
            f"at most {shape.ipus} workers."
        )
    elif shape.replicas % shape.workers:
        yield (
            f"spec.modelReplicas is {shape.replicas}, which cannot be divided by {workers} ({shape.workers}). Use the "
            "same number of model replicas in each worker."
        )
    elif shape.ipus % shape.replicas:
        yield (
            f"{size} is {shape.ipus}, which cannot be divided by the {shape.replicas} model replicas "
            "(spec.workersPerJobInstance × spec.modelReplicasPerWorker). Use a power of two of replicas."
        )


def _roles(spec: Mapping[str, Any]) -> Iterator[str]:
    launcher = spec.get("launcher") or {}
    command = launcher.get("command")
    if any(reserved.IPU_RESOURCE in (amounts or {}) for amounts in (launcher.get("resources") or {}).values()):
        yield f"spec.launcher.resources has {reserved.IPU_RESOURCE}, but only workers use IPUs. Remove it."
    if command and spec.get("interactive") is not None:
        yield "spec.interactive and spec.launcher.command exclude each other. An interactive job runs no command."
    elif not command and spec.get("interactive") is None and not job.is_second_form(spec):
        yield "spec.launcher.command is missing. Set the program of the job, or spec.interactive."


def _restarts(spec: Mapping[str, Any]) -> Iterator[str]:
    policy = spec.get("restartPolicy") or {}
    codes = policy.get("exitCodes")
    if policy.get("type") == "ExitCode":
        if not codes:
            yield "spec.restartPolicy.exitCodes is missing, but ExitCode requires it. An example is '1-127,130'."
            return
        try:
            exit_codes.parse(codes)
        except ValueError as error:
            yield f"spec.restartPolicy.exitCodes is invalid: {error}. An example is '1-127,130'."
    elif codes:
        yield "spec.restartPolicy.exitCodes has no effect with this type. Set the type to ExitCode, or remove it."


def _template(spec: Mapping[str, Any]) -> Iterator[str]:
    template = spec["workers"]["template"]
    pod, where = template["spec"], "spec.workers.template"
    for kind in ("labels", "annotations"):
        for name in (template.get("metadata") or {}).get(kind) or {}:
            if name.startswith(reserved.PREFIX):
                yield f"{where}.metadata.{kind} has {name!r}, but the prefix belongs to the operator. Use another name."
    for volume in pod.get("volumes") or []:
        if volume.get("name") in reserved.VOLUMES:
            yield f"{where}.spec.volumes has the name {volume['name']!r}, which the operator uses. Use another name."
    for container in [*(pod.get("initContainers") or []), *pod["containers"]]:
        if container.get("name") in reserved.CONTAINERS:
            yield f"{where}.spec has a container {container['name']!r}, a name of the operator. Use another name."
    for variable in pod["containers"][0].get("env") or []:
        if variable.get("name") in reserved.VARIABLES:
            yield (
                f"{where}.spec.containers[0].env has {variable['name']}, which the operator sets. Remove the variable."
            )
