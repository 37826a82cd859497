# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs in real pods: mpirun on two workers, exit codes, sessions, release of the IPUs."""

from __future__ import annotations

from pathlib import Path

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.pods.jobs import PROGRAM, SECONDS, delete, job, mpirun, partitions, wait
from tests.pods.terminal import terminal
from tests.waiting import until
from tools.kubernetes.images import WORKER
from tools.kubernetes.site import NODE


def test_each_rank_of_mpirun_receives_its_ipus(cluster: Cluster, vipu: InProcess) -> None:
    cluster.create(job(mpirun(PROGRAM)))
    found = wait(cluster, "job", "Succeeded", "Failed")
    printed = cluster.kubectl("logs", "job-launcher")
    assert found["status"]["launcherStatus"] == "Succeeded", printed
    partition = f"p-job-{cluster.namespace}-0"
    expected = [f"rank {rank} of 4: {partition} GCD {rank // 2} offset {rank // 2 * 2}" for rank in range(4)]
    assert sorted(line for line in printed.splitlines() if line.startswith("rank")) == expected
    assert partition in partitions(vipu)
    delete(cluster)
    assert partition not in partitions(vipu)


def test_a_job_starts_again_after_an_exit_code(cluster: Cluster) -> None:
    program = mpirun("exit 3")
    policy = {"type": "ExitCode", "exitCodes": "3", "backOffLimit": 1}
    cluster.create(job(program, restartPolicy=policy))
    found = wait(cluster, "job", "Failed")
    assert found["status"]["restartCount"] == 1
    assert "ended with exit code 3" in found["status"]["lastMessage"]


def test_logs_of_a_worker_with_two_containers_are_those_of_the_first_one(cluster: Cluster) -> None:
    main = {"name": "main", "image": WORKER, "imagePullPolicy": "Never"}
    other = {**main, "name": "exporter", "command": ["sh", "-c", "echo exporter; sleep 600"]}
    template = {"template": {"spec": {"containers": [main, other]}}}
    cluster.create(job(mpirun("echo main >/proc/1/fd/1; sleep 600"), workers=template))
    wait(cluster, "job", "Running")
    until(lambda: cluster.run("logs", "job-worker-0").stdout == "main\nmain\n", SECONDS)
    assert cluster.kubectl("logs", "job-worker-0", "--container=exporter") == "exporter\n"
    assert cluster.kubectl("exec", "job-worker-0", "--", "printenv", "IPUOF_VIPU_API_GCD_ID") == "0\n"


def test_a_session_has_a_terminal_and_runs_commands_on_the_workers(cluster: Cluster) -> None:
    applied = cluster.kubectl("apply", "--filename", EXAMPLES / "interactive-job.yaml")
    assert applied == "ipujob.graphcore.ai/interactive-sample-job created\n"
    wait(cluster, "interactive-sample-job", "Running")
    options = [f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}"]
    shell = ["exec", "-it", "interactive-sample-job-launcher", "--", "bash"]
    command: list[str | Path] = [cluster.kubectl_program, *options, *shell]
    with terminal(command) as session:
        # The network of the host has the name of the host.
        prompt = rf"root@{NODE}:/public_examples/applications/tensorflow/cnns/training# "
        session.expect(prompt, SECONDS)
        session.type(f"mpirun --allow-run-as-root -np 1 sh -c '{PROGRAM}'")
        printed = session.expect(prompt, SECONDS)
        assert f"\nrank 0 of 1: p-interactive-sample-job-{cluster.namespace}-0 GCD 0 " in printed
        # Launchers reach their workers only.
        session.type("/opt/ipujob/kubectl get secrets")
        assert "secrets is forbidden" in session.expect(prompt, SECONDS)
        session.type("exit 5")
        session.expect("exit code 5", SECONDS)
        assert session.status(SECONDS) == 5
