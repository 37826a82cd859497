# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a job: workers from the template, and launchers with the image and volumes of the workers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openipu.kubernetes.domain import environment, manifests, names, reserved, ssh, ssh_ports
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job

_SLEEP = ["sleep", "365d"]  # a worker waits for the launcher; both coreutils and busybox know days
_SLEEP_GRACE_SECONDS = 1  # sleep ignores SIGTERM as first process of a container, and the programs never receive it
_DEFAULT_CONTAINER = ("kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container")
_SCRIPT_MODE, _KEY_MODE = 0o555, 0o444
_SSH_START_SECONDS = 60  # for an SSH server to listen

# ssh rejects keys of its own user that others may read. So the user of the init container, which delivers them, is one
# that no image has.
_INIT_USER = 65530
_USER_FIELDS = ("runAsUser", "runAsGroup", "runAsNonRoot")
_TOKEN = {"audience": reserved.PROXY_AUDIENCE, "path": "token", "expirationSeconds": 3600}


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Settings of the operator for all pods.

    ``launcher_image``: image of the init container of launchers. ``proxy``: URL of the V-IPU proxy.
    ``ipu_resource``: pods request their IPUs as an extended resource, because nodes advertise it.
    ``ssh_ports``: for SSH servers in the network of hosts. ``log_format``: of the init containers.
    """

    launcher_image: str
    proxy: str
    launcher_pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    host_network: bool = True
    ipu_resource: bool = False
    ssh_ports: ssh_ports.PortRange = ssh_ports.DEFAULT_RANGE
    log_format: str = "text"

    def shares_ports(self, job: Job) -> bool:
        """Return whether the workers of a job use the network of their hosts."""
        return self.host_network or bool(job.template["spec"].get("hostNetwork"))


def worker(
    job: Job,
    instance: int,
    index: int,
    partition: Partition,
    attempt: int,
    options: PodOptions,
    ssh_port: int = ssh.PORT,
) -> dict[str, Any]:
    """Return a worker. ``index``: its number in the instance, from 0. ``attempt``: restarts of the job so far."""
    number = instance * job.shape.workers + index
    template = copy.deepcopy(dict(job.template))
    pod = _basic_pod(template.get("metadata") or {}, template["spec"], partition, options)
    container = pod["containers"][0]
    if job.has_launcher:
        container["command"] = list(_SLEEP)
        container.pop("args", None)
        pod["restartPolicy"] = "Never"
        pod["terminationGracePeriodSeconds"] = _SLEEP_GRACE_SECONDS
        pod.setdefault("automountServiceAccountToken", False)
        # mpirun passes the name of its agent to the daemons on workers, and they end if it does not exist.
        _mount(container, reserved.CONFIG_VOLUME, reserved.CONFIG_PATH, read_only=True)
        pod["volumes"].append(_config_volume(job, instance))
        if job.uses_ssh:
            _serve_ssh(job, pod, ssh_port)
    else:
        pod.setdefault("restartPolicy", "Never")
    _add_environment(container, environment.worker(job.shape, partition, index))
    _mount_shared_memory(pod, container)
    container["securityContext"] = {**(container.get("securityContext") or {}), "privileged": True}
    if options.ipu_resource:
        _request_ipus(container, job.shape.ipus_per_worker)
    labels = {
        reserved.ROLE_LABEL: reserved.WORKER_ROLE,
        reserved.INSTANCE_LABEL: str(instance),
        reserved.WORKER_LABEL: str(number),
        reserved.ATTEMPT_LABEL: str(attempt),
        reserved.TEMPLATE_LABEL: job.template_hash,
        reserved.SHAPE_LABEL: str(job.shape),
        **({reserved.SSH_PORT_LABEL: str(ssh_port)} if job.uses_ssh else {}),
    }
    return _pod(job, names.worker(job.name[1], number), labels, template.get("metadata") or {}, pod)


def launcher(job: Job, instance: int, partition: Partition, attempt: int, options: PodOptions) -> dict[str, Any]:
    """Return the launcher of an instance. Its init container waits for the workers and resets the partition."""
    template = copy.deepcopy(dict(job.template))
    source = template["spec"]
    main = source["containers"][0]
    spec = {key: value for key, value in source.items() if key not in ("initContainers", "containers", "affinity")}
    container = {
        key: main[key] for key in ("name", "image", "imagePullPolicy", "workingDir", "env", "envFrom") if key in main
    }
    container["volumeMounts"] = list(main.get("volumeMounts") or [])
    user = {key: value for key, value in (main.get("securityContext") or {}).items() if key in _USER_FIELDS}
    if user:
        container["securityContext"] = user
    container["command"] = list(job.command) if job.ttl is None else ["sleep", str(job.ttl)]
    _set_resources(container, job)
    spec["containers"] = [container]
    pod = _basic_pod(template.get("metadata") or {}, spec, partition, options)
    pod["restartPolicy"] = "Never"
    if job.ttl is not None:
        pod["terminationGracePeriodSeconds"] = _SLEEP_GRACE_SECONDS
    pod["serviceAccountName"] = names.account(job.name[1])
    pod["automountServiceAccountToken"] = True
    _set_environment(container, job.launcher_env)
    _add_environment(container, _mpi_environment(job))
    _mount_shared_memory(pod, container)
    _mount(container, reserved.CONFIG_VOLUME, reserved.CONFIG_PATH, read_only=True)
    _mount(container, reserved.TOOLS_VOLUME, reserved.TOOLS_PATH, read_only=True)
    pod["volumes"] += [
        _config_volume(job, instance),
        {"name": reserved.TOOLS_VOLUME, "emptyDir": {"medium": "Memory"} if job.uses_ssh else {}},
        {"name": reserved.TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": _TOKEN}]}},
    ]
    pod["initContainers"] = [_init_container(job, instance, partition, options)]
    if job.uses_ssh:
        _deliver_ssh_keys(job, pod)
    labels = {
        reserved.ROLE_LABEL: reserved.LAUNCHER_ROLE,
        reserved.INSTANCE_LABEL: str(instance),
        reserved.ATTEMPT_LABEL: str(attempt),
        reserved.TEMPLATE_LABEL: job.template_hash,
        reserved.SHAPE_LABEL: str(job.shape),
    }
    return _pod(job, names.launcher(job.name[1], instance), labels, template.get("metadata") or {}, pod)


def _basic_pod(
    metadata: Mapping[str, Any], spec: dict[str, Any], partition: Partition, options: PodOptions
) -> dict[str, Any]:
    """Return a pod specification with the settings that all pods of jobs need."""
    spec["volumes"] = list(spec.get("volumes") or [])
    if options.host_network:
        spec["hostNetwork"] = True
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if partition.node_label:
        key, value = partition.node_label
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), key: value}
    if options.pull_secrets:
        given = list(spec.get("imagePullSecrets") or [])
        known = {each.get("name") for each in given}
        spec["imagePullSecrets"] = [*given, *({"name": name} for name in options.pull_secrets if name not in known)]
    return spec


def _pod(
    job: Job, name: str, labels: dict[str, str], template_metadata: Mapping[str, Any], spec: dict[str, Any]
) -> dict[str, Any]:
    metadata = manifests.metadata(job, name, {**(template_metadata.get("labels") or {}), **labels})
    main = spec["containers"][0]["name"]
    metadata["annotations"] = {
        **dict.fromkeys(_DEFAULT_CONTAINER, main),
        **(template_metadata.get("annotations") or {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _init_container(job: Job, instance: int, partition: Partition, options: PodOptions) -> dict[str, Any]:
    container = {
        "name": reserved.INIT_CONTAINER,
        "image": options.launcher_image,
        "imagePullPolicy": options.launcher_pull_policy,
        "env": [
            {"name": "IPUJOB_NAMESPACE", "value": job.name[0]},
            {"name": "IPUJOB_NAME", "value": job.name[1]},
            {"name": "IPUJOB_WORKERS", "value": " ".join(manifests.worker_names(job, instance))},
            {"name": "IPUJOB_PARTITION", "value": partition.id},
            {"name": "IPUJOB_PROXY", "value": options.proxy},
            {"name": "IPUJOB_TOOLS", "value": reserved.TOOLS_PATH},
            {"name": "IPUJOB_LOG_FORMAT", "value": options.log_format},
        ],
        "volumeMounts": [
            {"name": reserved.TOOLS_VOLUME, "mountPath": reserved.TOOLS_PATH},
            {"name": reserved.TOKEN_VOLUME, "mountPath": reserved.TOKEN_PATH, "readOnly": True},
        ],
    }
    _set_resources(container, job)
    return container


def _set_resources(container: dict[str, Any], job: Job) -> None:
    """Set the resources of a launcher. Quotas demand them of all containers, and count the init container only once."""
    if job.launcher_resources:
        container["resources"] = copy.deepcopy(dict(job.launcher_resources))


def _mpi_environment(job: Job) -> dict[str, str]:
    """Return the settings of Open MPI. Its launcher may be root, as in the images for IPUs."""
    variables = {
        "OMPI_MCA_orte_default_hostfile": f"{reserved.CONFIG_PATH}/{manifests.HOSTFILE}",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",  # hosts are names of pods, which may contain dots
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_no_tree_spawn": "true",  # only the launcher may start programs on workers
    }
    if job.uses_ssh:
        variables["OMPI_MCA_plm_rsh_agent"] = f"ssh -F {reserved.TOOLS_PATH}/{ssh.CLIENT_CONFIG}"
    else:
        variables["OMPI_MCA_plm_rsh_agent"] = f"{reserved.CONFIG_PATH}/{manifests.KUBE_EXEC}"
    return variables


def _serve_ssh(job: Job, pod: dict[str, Any], port: int) -> None:
    """Run an SSH server in a worker. In the network of hosts, its port is reserved on the node."""
    container = pod["containers"][0]
    container["command"] = ssh.server_command(port)
    address = {"name": reserved.ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container["env"] = [*(container.get("env") or []), address]
    container["ports"] = [*(container.get("ports") or []), {"name": reserved.SSH_VOLUME, "containerPort": port}]
    # The launcher waits until its workers are ready. A readiness probe would write to the log of sshd for ever.
    container["startupProbe"] = {
        "tcpSocket": {"port": port},
        "periodSeconds": 1,
        "failureThreshold": _SSH_START_SECONDS,
    }
    _mount(container, reserved.SSH_VOLUME, reserved.SSH_PATH, read_only=True)
    pod["volumes"].append(_ssh_volume(job, ssh.HOST_KEY, ssh.AUTHORIZED_KEYS))


def _deliver_ssh_keys(job: Job, pod: dict[str, Any]) -> None:
    """Give the keys of a launcher to its init container, which delivers them with the addresses of the workers."""
    (init,) = pod["initContainers"]
    init["env"].append({"name": "IPUJOB_SSH_KEYS", "value": reserved.SSH_PATH})
    init["securityContext"] = {"runAsUser": _INIT_USER, "runAsGroup": _INIT_USER}
    _mount(init, reserved.SSH_VOLUME, reserved.SSH_PATH, read_only=True)
    pod["volumes"].append(_ssh_volume(job, ssh.IDENTITY, ssh.KNOWN_HOSTS))


def _config_volume(job: Job, instance: int) -> dict[str, Any]:
    source = {"name": names.config(job.name[1], instance), "defaultMode": _SCRIPT_MODE}
    return {"name": reserved.CONFIG_VOLUME, "configMap": source}


def _ssh_volume(job: Job, *files: str) -> dict[str, Any]:
    source = {
        "secretName": names.ssh_keys(job.name[1], job.uid),
        "defaultMode": _KEY_MODE,
        "items": [{"key": each, "path": each} for each in files],
    }
    return {"name": reserved.SSH_VOLUME, "secret": source}


def _set_environment(container: dict[str, Any], variables: Iterable[Mapping[str, Any]]) -> None:
    """Set variables. They replace those of the template with the same name."""
    given = {each["name"]: each for each in container.get("env") or []}
    container["env"] = list({**given, **{each["name"]: dict(each) for each in variables}}.values())


def _add_environment(container: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Add the variables that the user has not set."""
    given = list(container.get("env") or [])
    known = {each["name"] for each in given}
    container["env"] = [
        *given,
        *({"name": name, "value": value} for name, value in variables.items() if name not in known),
    ]


def _mount_shared_memory(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """Mount shared memory without the limit of 64 MB of containers, unless the template mounts it."""
    mounts = container.setdefault("volumeMounts", [])
    if any(each["mountPath"].rstrip("/") == reserved.SHM_PATH for each in mounts):
        return
    _mount(container, reserved.SHM_VOLUME, reserved.SHM_PATH)
    pod["volumes"].append({"name": reserved.SHM_VOLUME, "emptyDir": {"medium": "Memory"}})


def _mount(container: dict[str, Any], volume: str, path: str, *, read_only: bool = False) -> None:
    container.setdefault("volumeMounts", []).append(
        {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}
    )


def _request_ipus(container: dict[str, Any], ipus: int) -> None:
    """Request IPUs as an extended resource. Its request and limit must be equal."""
    resources = container.setdefault("resources", {})
    for kind in ("requests", "limits"):
        resources[kind] = {**(resources.get(kind) or {}), reserved.IPU_RESOURCE: str(ipus)}
