# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain pods with IPUs: pods with the annotation ``graphcore.ai/ipu: "N"``, apart from any IPUJob.

The webhook injects an init container, which waits until the operator has reserved a partition at a V-IPU controller
of the node of the pod. Then it writes the IPUoF configuration of the partition for the other containers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from openipu.kubernetes.domain import reserved
from openipu.kubernetes.domain.job import MAX_IPUS
from openipu.kubernetes.domain.pods import PodOptions
from openipu.shared.vipu.object_rules import is_power_of_two

STATUS_ANNOTATION, INJECTED = f"{reserved.PREFIX}status", "injected"
ROLE = "pod"  # value of the role label, with which the operator finds the pods

INIT_CONTAINER = "ipu-init"
CONFIG_VOLUME, TOKEN_VOLUME = "ipu-config", "ipu-token"
CONFIG_FOLDER, TOKEN_FOLDER = "/run/ipuof", "/run/ipu-token"
CONFIG_FILE = f"{CONFIG_FOLDER}/ipuof.conf"
CONFIG_VARIABLE = "IPUOF_CONFIG_PATH"
VARIABLES = "IPU_POD"  # prefix of the variables of the init container
_IPUS_VARIABLE = f"{VARIABLES}_IPUS"

_SIZES = "Use 1, 2, 4, 8, 16, 32 or 64."
_ANNOTATION = f"The annotation {reserved.IPU_RESOURCE}"
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"  # of a static pod, which only kubelet can change
_USER = 65532  # of the images
# Equal requests and limits, so that pods with guaranteed resources keep their guarantee.
_RESOURCES = {"cpu": "250m", "memory": "128Mi"}


def is_requested(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has the annotation. All other pods stay untouched."""
    annotations = pod["metadata"].get("annotations") or {}
    has_containers = bool(pod["spec"].get("containers"))  # the API server rejects pods without
    return has_containers and reserved.IPU_RESOURCE in annotations and _MIRROR_ANNOTATION not in annotations


def problems(pod: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a pod with the annotation. Each problem is a sentence for the user."""
    text = pod["metadata"]["annotations"][reserved.IPU_RESOURCE]
    if not (text.isascii() and text.isdecimal()):
        return [f"{_ANNOTATION} is {text!r}, which is no number of IPUs. {_SIZES}"]
    if int(text) > MAX_IPUS:
        return [f"{_ANNOTATION} is {text}, but a partition has at most {MAX_IPUS} IPUs. Use fewer."]
    if not is_power_of_two(int(text)):
        return [f"{_ANNOTATION} is {text}, but the size of a partition is a power of two. {_SIZES}"]
    return [*_wrong_limits(pod["spec"], int(text)), *_reserved_names(pod)]


def inject(pod: Mapping[str, Any], options: PodOptions) -> dict[str, Any]:
    """Return a valid pod with its init container, volumes and variables. A second injection changes nothing."""
    result = copy.deepcopy(dict(pod))
    ipus = int(result["metadata"]["annotations"][reserved.IPU_RESOURCE])
    metadata, spec = result["metadata"], result["spec"]
    containers = _users(spec["containers"])
    if _is_injected(pod):
        _remove_injection(spec)
    metadata["annotations"][STATUS_ANNOTATION] = INJECTED
    metadata["labels"] = {**(metadata.get("labels") or {}), reserved.ROLE_LABEL: ROLE}
    for each in containers:
        each["env"] = [*(each.get("env") or []), {"name": CONFIG_VARIABLE, "value": CONFIG_FILE}]
        mount = {"name": CONFIG_VOLUME, "mountPath": CONFIG_FOLDER, "readOnly": True}
        each["volumeMounts"] = [*(each.get("volumeMounts") or []), mount]
        context = each.get("securityContext") or {}
        if context.get("privileged") is None and context.get("allowPrivilegeEscalation") is None:
            each["securityContext"] = {**context, "privileged": True}
    _set_resource(spec["containers"], ipus, advertised=options.ipu_resource)
    spec["initContainers"] = [_init_container(ipus, options), *(spec.get("initContainers") or [])]
    spec["volumes"] = [*(spec.get("volumes") or []), *_volumes()]
    if options.host_network:
        spec["hostNetwork"] = True
        if spec.get("dnsPolicy", "ClusterFirst") == "ClusterFirst":
            spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    given = spec.get("imagePullSecrets") or []
    missing = [name for name in options.pull_secrets if {"name": name} not in given]
    if missing:
        spec["imagePullSecrets"] = [*given, *({"name": name} for name in missing)]
    return result


def ipus(pod: Mapping[str, Any]) -> int | None:
    """Return the number of IPUs of an injected pod, None for other pods.

    The init container has it, because users cannot change it there after the creation of the pod.
    """
    for container in pod["spec"].get("initContainers") or []:
        if container["name"] == INIT_CONTAINER:
            for variable in container.get("env") or []:
                if variable["name"] == _IPUS_VARIABLE and str(variable.get("value", "")).isdecimal():
                    return int(variable["value"])
    return None


def _wrong_limits(spec: Mapping[str, Any], ipus: int) -> Iterator[str]:
    for container in spec.get("initContainers") or []:
        if _limit(container):
            yield (
                f"Init container {container['name']} has a limit of {reserved.IPU_RESOURCE}. Move the limit to the "
                "container that uses the IPUs."
            )
    limits = [each for each in map(_limit, spec["containers"]) if each]
    total = sum(int(each) for each in limits if each.isdecimal())
    if limits and total != ipus:
        yield (
            f"{_ANNOTATION} is {ipus}, but the limits {reserved.IPU_RESOURCE} of the containers request {total}. Use "
            "the same number."
        )


def _reserved_names(pod: Mapping[str, Any]) -> Iterator[str]:
    """Yield names of the operator. A pod that was read from the API server and is created again may have them."""
    if _is_injected(pod):
        return
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        if container["name"] == INIT_CONTAINER:
            yield f"spec has a container {INIT_CONTAINER!r}, a name of the operator. Use another name."
        if any(each["name"] == CONFIG_VARIABLE for each in container.get("env") or []):
            yield f"Container {container['name']} sets {CONFIG_VARIABLE}, which the operator sets. Remove the variable."
    for volume in spec.get("volumes") or []:
        if volume["name"] in (CONFIG_VOLUME, TOKEN_VOLUME):
            yield f"spec.volumes has the name {volume['name']!r}, which the operator uses. Use another name."


def _is_injected(pod: Mapping[str, Any]) -> bool:
    return bool((pod["metadata"].get("annotations") or {}).get(STATUS_ANNOTATION) == INJECTED)


def _users(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the containers that use the IPUs: those that a first injection has chosen, those with a limit, or all."""
    chosen = [each for each in containers if any(_is_config(mount) for mount in each.get("volumeMounts") or [])]
    return chosen or [each for each in containers if _limit(each)] or containers


def _is_config(mount: Mapping[str, Any]) -> bool:
    return bool(mount["name"] == CONFIG_VOLUME)


def _remove_injection(spec: dict[str, Any]) -> None:
    """Remove what an earlier injection has added."""
    _remove_named(spec, "initContainers", INIT_CONTAINER)
    _remove_named(spec, "volumes", CONFIG_VOLUME, TOKEN_VOLUME)
    for container in spec["containers"]:
        _remove_named(container, "env", CONFIG_VARIABLE)
        _remove_named(container, "volumeMounts", CONFIG_VOLUME)


def _remove_named(fields: dict[str, Any], field: str, *names: str) -> None:
    if fields.get(field):
        fields[field] = [each for each in fields[field] if each["name"] not in names]


def _limit(container: Mapping[str, Any]) -> str:
    limits = (container.get("resources") or {}).get("limits") or {}
    return str(limits.get(reserved.IPU_RESOURCE, ""))


def _set_resource(containers: list[dict[str, Any]], ipus: int, *, advertised: bool) -> None:
    """Request the IPUs as an extended resource exactly if nodes advertise it. Otherwise, no node would suit the pod."""
    if advertised and any(map(_limit, containers)):
        return
    if advertised:
        resources = containers[0].setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources[kind] = {**(resources.get(kind) or {}), reserved.IPU_RESOURCE: str(ipus)}
        return
    for container in containers:
        for kind in ("requests", "limits"):
            ((container.get("resources") or {}).get(kind) or {}).pop(reserved.IPU_RESOURCE, None)


def _init_container(ipus: int, options: PodOptions) -> dict[str, Any]:
    return {
        "name": INIT_CONTAINER,
        "image": options.launcher_image,
        "imagePullPolicy": options.launcher_pull_policy,
        "args": ["pod"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [
            {"name": _IPUS_VARIABLE, "value": str(ipus)},
            {"name": f"{VARIABLES}_PROXY", "value": options.proxy},
            {"name": f"{VARIABLES}_TOKEN", "value": f"{TOKEN_FOLDER}/token"},
            {"name": f"{VARIABLES}_FILE", "value": CONFIG_FILE},
            {"name": f"{VARIABLES}_LOG_FORMAT", "value": options.log_format},
        ],
        "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
        "securityContext": {
            "runAsUser": _USER,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": CONFIG_VOLUME, "mountPath": CONFIG_FOLDER},
            {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True},
        ],
    }


def _volumes() -> list[dict[str, Any]]:
    token = {"audience": reserved.PROXY_AUDIENCE, "path": "token", "expirationSeconds": 3600}
    return [
        {"name": CONFIG_VOLUME, "emptyDir": {}},
        {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}},
    ]
