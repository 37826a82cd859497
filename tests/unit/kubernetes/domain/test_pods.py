# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a job, and its other objects."""

from __future__ import annotations

import copy
import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from openipu.kubernetes.domain import job, manifests, pods
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.pods import PodOptions
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers

PARTITION = Partition("p-sample-default-0", "10.1.5.1", 8090, ("ipunode", "node1"))
CONFIG_VOLUME = {"name": "ipujob-config", "configMap": {"name": "sample-config", "defaultMode": 0o555}}
CONFIG_MOUNT = {"name": "ipujob-config", "mountPath": "/etc/mpi", "readOnly": True}
OPTIONS = PodOptions(launcher_image="launcher:1", proxy="http://proxy")


def worker(ipujob: dict[str, Any], index: int = 0, options: PodOptions = OPTIONS, instance: int = 0) -> dict[str, Any]:
    return pods.worker(job.read(ipujob), instance, index, PARTITION, 0, options)


def launcher(ipujob: dict[str, Any], options: PodOptions = OPTIONS) -> dict[str, Any]:
    return pods.launcher(job.read(ipujob), 0, PARTITION, 2, options)


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}


def test_the_template_stays_unchanged():
    ipujob = first_form(workers=workers(container={"env": [{"name": "A", "value": "1"}], "args": ["x"]}))
    before = copy.deepcopy(ipujob)
    worker(ipujob)
    launcher(ipujob)
    assert ipujob == before


def test_a_worker_sleeps_until_the_launcher_uses_it():
    pod = worker(first_form(workers=workers(container={"command": ["train"], "args": ["--fast"]})))
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["sleep", "365d"]
    assert "args" not in container
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_a_worker_without_launcher_runs_its_command():
    pod = worker(second_form(workers=workers(container={"command": ["train"], "args": ["--fast"]})))
    container = pod["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["train"], ["--fast"])


def test_environment_of_workers():
    ipujob = first_form(modelReplicas="8", ipusPerModelReplica="2", workers=workers(4))
    assert variables(worker(ipujob, 3)) == {
        "IPUOF_VIPU_API_HOST": "10.1.5.1",
        "IPUOF_VIPU_API_PORT": "8090",
        "IPUOF_VIPU_API_PARTITION_ID": "p-sample-default-0",
        "IPUOF_VIPU_API_TIMEOUT": "60",
        "IPUOF_VIPU_API_GCD_ID": "3",
        "POPDIST_NUM_TOTAL_REPLICAS": "8",
        "POPDIST_NUM_IPUS_PER_REPLICA": "2",
        "POPDIST_NUM_LOCAL_REPLICAS": "2",
        "POPDIST_UNIFORM_REPLICAS_PER_INSTANCE": "1",
        "POPDIST_REPLICA_INDEX_OFFSET": "6",
        "POPDIST_LOCAL_INSTANCE_INDEX": "0",
    }


@pytest.mark.parametrize(
    ("ipus", "routing", "links"),
    [
        (4, "DNC", ("default", "mesh")),
        (32, "SWNC", ("slidingWindow", "mesh")),
        (32, "BTNC", ("barleyTwist", "mesh")),
        (64, "RINGSWNC", ("slidingWindow", "torus")),
    ],
)
def test_target_options_of_poplar_follow_the_partition(ipus, routing, links):
    """poprun has printed them for 4 IPUs of a mesh, and for 64 of a torus, with one worker each."""
    for count in (1, 4):
        ipujob = first_form(modelReplicas=str(ipus), workers=workers(count))
        pod = pods.worker(job.read(ipujob), 0, 0, replace(PARTITION, routing=routing), 0, OPTIONS)
        assert json.loads(variables(pod)["POPLAR_TARGET_OPTIONS"]) == {
            "ipuLinkDomainSize": str(ipus),
            "ipuLinkConfiguration": links[0],
            "ipuLinkTopology": links[1],
            "gatewayMode": "true",
            "instanceSize": str(ipus // count),
        }


def test_a_user_may_set_other_variables_of_poplar():
    given = {"IPUOF_VIPU_API_TIMEOUT": "5", "IPUOF_LOG_LEVEL": "INFO", "POPLAR_TARGET_OPTIONS": "{}"}
    env = [{"name": name, "value": value} for name, value in given.items()]
    ipujob = first_form(workers=workers(container={"env": env}))
    found = variables(pods.worker(job.read(ipujob), 0, 0, replace(PARTITION, routing="DNC"), 0, OPTIONS))
    assert given.items() <= found.items()


def test_numbers_of_workers_count_through_instances():
    ipujob = first_form(jobInstances=2, modelReplicas="4", workers=workers(2))
    names = [worker(ipujob, index, instance=instance)["metadata"]["name"] for instance in (0, 1) for index in (0, 1)]
    assert names == [f"sample-worker-{number}" for number in range(4)]
    assert manifests.worker_names(job.read(ipujob), 1) == names[2:]


def test_pods_of_a_job_reach_the_ipus():
    for pod in (worker(first_form()), launcher(first_form())):
        spec = pod["spec"]
        assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        assert spec["nodeSelector"] == {"ipunode": "node1"}
    assert worker(first_form())["spec"]["containers"][0]["securityContext"] == {"privileged": True}


def test_without_host_network_the_template_decides():
    options = PodOptions("launcher:1", "http://proxy", host_network=False)
    spec = worker(first_form(workers=workers(dnsPolicy="Default")), options=options)["spec"]
    assert "hostNetwork" not in spec
    assert spec["dnsPolicy"] == "Default"


def test_ipus_as_an_extended_resource():
    options = PodOptions("launcher:1", "http://proxy", ipu_resource=True)
    ipujob = first_form(workers=workers(2, container={"resources": {"limits": {"cpu": "1"}}}))
    assert worker(ipujob, options=options)["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "graphcore.ai/ipu": "2"},
        "requests": {"graphcore.ai/ipu": "2"},
    }
    assert "resources" not in launcher(ipujob, options)["spec"]["containers"][0]


def test_volumes_of_workers_are_mounted_in_the_launcher():
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "nfs-pvc"}}
    mount = {"name": "data", "mountPath": "/mnt/sample"}
    ipujob = first_form(workers=workers(container={"volumeMounts": [mount]}, volumes=[data]))
    for pod in (worker(ipujob), launcher(ipujob)):
        assert data in pod["spec"]["volumes"]
        assert mount in pod["spec"]["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/"])
def test_shared_memory_of_the_template_is_kept(path):
    mount = {"name": "shm", "mountPath": path}
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "10Gi"}}
    spec = worker(first_form(workers=workers(container={"volumeMounts": [mount]}, volumes=[volume])))["spec"]
    assert spec["volumes"] == [volume, CONFIG_VOLUME]
    assert spec["containers"][0]["volumeMounts"] == [mount, CONFIG_MOUNT]


def test_shared_memory_is_mounted_by_default():
    spec = worker(first_form())["spec"]
    assert spec["volumes"] == [CONFIG_VOLUME, {"name": "ipujob-shm", "emptyDir": {"medium": "Memory"}}]
    mounts = [CONFIG_MOUNT, {"name": "ipujob-shm", "mountPath": "/dev/shm"}]
    assert spec["containers"][0]["volumeMounts"] == mounts


def test_workers_have_the_agent_of_mpirun():
    """The daemons of mpirun on workers end if their agent does not exist, although they never call it."""
    settings = variables(launcher(first_form()))
    assert settings["OMPI_MCA_plm_rsh_agent"] == f"{CONFIG_MOUNT['mountPath']}/kubexec.sh"
    assert settings["OMPI_MCA_plm_rsh_no_tree_spawn"] == "true"
    assert CONFIG_MOUNT in worker(first_form())["spec"]["containers"][0]["volumeMounts"]


def test_the_launcher_runs_the_command():
    pod = launcher(first_form(workers=workers(container={"resources": {"limits": {"cpu": "1"}}, "ports": []})))
    container = pod["spec"]["containers"][0]
    assert (container["name"], container["image"]) == ("resnet", "resnet:latest")
    assert container["command"] == ["mpirun", "-np", "1", "train"]
    assert "resources" not in container
    assert pod["spec"]["serviceAccountName"] == "sample-launcher"
    assert variables(pod)["OMPI_MCA_plm_rsh_agent"] == "/etc/mpi/kubexec.sh"
    assert variables(pod)["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"


def test_the_launcher_has_its_own_resources():
    """A quota of memory demands limits of all containers, also of init containers."""
    resources = {"limits": {"cpu": 1, "memory": "1Gi"}}
    ipujob = first_form(launcher={"command": ["train"], "resources": resources})
    for remote_shell in ("KubeExec", "SSH"):
        ipujob["spec"]["launcher"]["remoteShell"] = remote_shell
        spec = launcher(ipujob)["spec"]
        assert [each["resources"] for each in (*spec["containers"], *spec["initContainers"])] == [resources] * 2
    assert "resources" not in worker(ipujob)["spec"]["containers"][0]


def test_an_interactive_launcher_waits():
    pod = launcher(first_form(launcher=None, interactive={"ttl": 3600}))
    assert pod["spec"]["containers"][0]["command"] == ["sleep", "3600"]


def test_variables_of_the_launcher_replace_those_of_the_template():
    given = [{"name": "A", "value": "worker"}, {"name": "B", "value": "worker"}]
    ipujob = first_form(
        launcher={"command": ["train"], "env": [{"name": "B", "value": "launcher"}]},
        workers=workers(container={"env": given}),
    )
    found = variables(launcher(ipujob))
    assert (found["A"], found["B"]) == ("worker", "launcher")


def test_the_launcher_has_the_user_of_the_workers():
    """Files on shared volumes belong to one user. Other rights of workers are not needed."""
    context = {"runAsUser": 1000, "runAsGroup": 100, "capabilities": {"add": ["IPC_LOCK"]}}
    ipujob = first_form(workers=workers(container={"securityContext": context}))
    assert launcher(ipujob)["spec"]["containers"][0]["securityContext"] == {"runAsUser": 1000, "runAsGroup": 100}
    assert worker(ipujob)["spec"]["containers"][0]["securityContext"] == {**context, "privileged": True}


def test_labels_select_the_pods_of_an_attempt():
    ipujob = first_form(workers=workers(metadata={"labels": {"app": "resnet"}, "annotations": {"note": "x"}}))
    metadata = launcher(ipujob)["metadata"]
    assert metadata["labels"] == {
        "app": "resnet",
        "graphcore.ai/ipujob": "sample",
        "graphcore.ai/role": "launcher",
        "graphcore.ai/instance": "0",
        "graphcore.ai/attempt": "2",
        "graphcore.ai/template": job.read(ipujob).template_hash,
        "graphcore.ai/shape": "4-1-4",
    }
    assert metadata["annotations"] == {
        "kubectl.kubernetes.io/default-container": "resnet",
        "kubectl.kubernetes.io/default-logs-container": "resnet",
        "note": "x",
    }
    assert metadata["ownerReferences"][0]["uid"] == "1234-5678"


def test_pull_secrets_are_added_once():
    options = PodOptions("launcher:1", "http://proxy", pull_secrets=("one", "two"))
    spec = worker(first_form(workers=workers(imagePullSecrets=[{"name": "two"}])), options=options)["spec"]
    assert spec["imagePullSecrets"] == [{"name": "two"}, {"name": "one"}]


def test_hostfile_has_a_slot_for_each_replica():
    ipujob = first_form(modelReplicas="4", workers=workers(2))
    data = manifests.config_map(job.read(ipujob), 0)["data"]
    assert data["hostfile"] == "sample-worker-0 slots=2\nsample-worker-1 slots=2\n"


def test_the_launcher_may_run_commands_in_its_workers_only():
    found = manifests.launcher_rights(job.read(first_form(jobInstances=2, workers=workers(2))))
    assert [each["kind"] for each in found] == ["ServiceAccount", "Role", "RoleBinding"]
    execs = [rule for rule in found[1]["rules"] if rule["resources"] == ["pods/exec"]]
    assert execs == [
        {
            "apiGroups": [""],
            "resources": ["pods/exec"],
            "resourceNames": [f"sample-worker-{number}" for number in range(4)],
            "verbs": ["create", "get"],  # get: newer kubectl opens a WebSocket
        }
    ]


def test_kubexec_passes_the_command_of_mpirun(tmp_path):
    """mpirun calls it as it calls ssh. The command is one string for a shell."""
    script = manifests.config_map(job.read(first_form()), 0)["data"]["kubexec.sh"]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    kubectl.chmod(0o755)
    file = tmp_path / "kubexec.sh"
    file.write_text(script.replace("/opt/ipujob", str(tmp_path)))
    file.chmod(0o755)
    done = subprocess.run(
        [file, "-x", "-q", "sample-worker-0", "orted", "-mca", "ess", '"env"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "exec",
        "sample-worker-0",
        "--container=resnet",
        "--",
        "/bin/sh",
        "-c",
        'orted -mca ess "env"',
    ]
