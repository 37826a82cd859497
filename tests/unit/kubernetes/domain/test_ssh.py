# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects with which the pods of a job use SSH."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import job, manifests, pods, ssh, validation
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.pods import PodOptions
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers

PARTITION = Partition("p-sample-default-0", "10.1.5.1", 8090)
OPTIONS = PodOptions(launcher_image="launcher:1", proxy="http://proxy")
SECRET = "sample-ssh-e5957e8506"
LAUNCHER = {"command": ["mpirun"], "remoteShell": "SSH"}


def ssh_job(**spec: Any) -> job.Job:
    ipujob = first_form(launcher=LAUNCHER, **spec)
    assert validation.problems(ipujob) == []
    return job.read(ipujob)


def worker(found: job.Job, port: int = 20007, options: PodOptions = OPTIONS) -> dict[str, Any]:
    return pods.worker(found, 0, 0, PARTITION, 0, options, port)


def launcher(found: job.Job) -> dict[str, Any]:
    return pods.launcher(found, 0, PARTITION, 0, OPTIONS)


def mounted(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the Secret volume of a pod."""
    (found,) = (each["secret"] for each in pod["spec"]["volumes"] if "secret" in each)
    return found


def test_a_worker_runs_an_ssh_server_on_its_port():
    pod = worker(ssh_job(workers=workers(container={"command": ["train"], "args": ["x"]})))
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["/bin/sh", "/etc/mpi/sshd.sh", "$(IPUJOB_ADDRESS)", "20007"]
    assert "args" not in container
    assert container["ports"] == [{"name": "ipujob-ssh", "containerPort": 20007}]
    assert container["startupProbe"]["tcpSocket"] == {"port": 20007}
    assert pod["metadata"]["labels"]["graphcore.ai/ssh-port"] == "20007"
    address = {"name": "IPUJOB_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert address in container["env"]


def test_workers_have_no_key_of_a_user_and_launchers_none_of_a_host():
    found = ssh_job()
    assert mounted(worker(found))["secretName"] == mounted(launcher(found))["secretName"] == SECRET
    assert [each["key"] for each in mounted(worker(found))["items"]] == ["host_key", "authorized_keys"]
    assert [each["key"] for each in mounted(launcher(found))["items"]] == ["identity", "known_hosts"]


def test_only_the_init_container_of_a_launcher_mounts_the_keys():
    spec = launcher(ssh_job())["spec"]
    (init,) = spec["initContainers"]
    assert {"name": "ipujob-ssh", "mountPath": "/etc/ipujob-ssh", "readOnly": True} in init["volumeMounts"]
    assert {"name": "IPUJOB_SSH_KEYS", "value": "/etc/ipujob-ssh"} in init["env"]
    assert "ipujob-ssh" not in {each["name"] for each in spec["containers"][0]["volumeMounts"]}
    assert {"name": "ipujob-tools", "emptyDir": {"medium": "Memory"}} in spec["volumes"]
    assert init["securityContext"]["runAsUser"] not in (0, 1000, 65532, 65534)


def test_mpirun_uses_ssh():
    env = {each["name"]: each["value"] for each in launcher(ssh_job())["spec"]["containers"][0]["env"]}
    assert env["OMPI_MCA_plm_rsh_agent"] == "ssh -F /opt/ipujob/ssh_config"
    assert env["OMPI_MCA_plm_rsh_no_tree_spawn"] == "true"


def test_the_secret_belongs_to_the_job():
    secret = manifests.ssh_keys(ssh_job(), {"identity": "x"})
    assert secret["metadata"]["name"] == SECRET
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "1234-5678"
    assert secret["immutable"] is True


def test_a_launcher_with_ssh_may_not_run_commands_in_pods():
    _, role, _ = manifests.launcher_rights(ssh_job())
    assert [rule["resources"] for rule in role["rules"]] == [["pods"]]


def test_the_config_map_has_the_files_of_its_shell():
    assert set(manifests.config_map(ssh_job(), 0)["data"]) == {"hostfile", "sshd.sh", "session.sh", "sshd_config"}
    assert set(manifests.config_map(job.read(first_form()), 0)["data"]) == {"hostfile", "kubexec.sh"}


def test_jobs_without_launcher_need_no_ssh():
    found = job.read(second_form(launcher={"remoteShell": "SSH"}))
    assert not found.uses_ssh
    assert "ipujob-ssh" not in str(pods.worker(found, 0, 0, PARTITION, 0, OPTIONS))


@pytest.mark.parametrize(
    ("template", "host_network", "shared"), [({}, True, True), ({}, False, False), ({"hostNetwork": True}, False, True)]
)
def test_workers_share_ports_in_the_network_of_hosts(template, host_network, shared):
    options = PodOptions("launcher:1", "http://proxy", host_network=host_network)
    assert options.shares_ports(ssh_job(workers=workers(**template))) is shared


def test_the_configuration_has_an_address_for_each_worker():
    text = ssh.client_config({"a-worker-0": ("10.0.0.1", 20001), "a-worker-1": ("fd00::1", 20002)}, "/opt/ipujob")
    assert text.startswith(
        "Host a-worker-0\n  HostName 10.0.0.1\n  Port 20001\n"
        "Host a-worker-1\n  HostName fd00::1\n  Port 20002\n"
        "Host *\n"
    )
    assert "StrictHostKeyChecking yes" in text


def test_all_workers_have_the_host_key_of_the_job():
    alias, key = ssh.known_hosts("ssh-ed25519 AAAA").rstrip("\n").split(" ", 1)
    assert key == "ssh-ed25519 AAAA"
    assert f"\n  HostKeyAlias {alias}\n" in ssh.client_config({}, "/opt/ipujob")


def test_names_of_the_operator_are_reserved():
    for spec in (
        workers(volumes=[{"name": "ipujob-ssh", "emptyDir": {}}]),
        workers(container={"env": [{"name": "IPUJOB_ADDRESS", "value": "x"}]}),
    ):
        assert len(validation.problems(first_form(launcher=LAUNCHER, workers=spec))) == 1
