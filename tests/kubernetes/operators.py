# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator as a process, and the jobs that it runs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openipu.kubernetes.cluster.client import PODS, open_client
from openipu.kubernetes.domain import status as statuses
from tests.integration.vipu_servers import listed
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.program import Program
from tests.kubernetes.proxies import OPERATOR, Proxy, token
from tests.ports import free_port
from tests.waiting import until

SECONDS = 60.0  # for a job to reach a state


@dataclass
class Operator(Program):
    """Process ``ipu-operator`` for the namespace of a test. Pauses are short: restarts follow after 0.1 s."""

    cluster: Cluster
    proxy: Proxy
    options: tuple[str, ...] = ()
    name: str = "operator"
    port: int = field(default_factory=free_port)
    kubeconfig: Path | None = None  # None: that of the cluster
    proxy_url: str = ""  # empty: that of the proxy

    @property
    def log_file(self) -> Path:
        return self.proxy.folder / f"{self.name}.log"

    def start(self, *, leads: bool = True) -> None:
        """Start the process and wait until it leads, or until it is a candidate."""
        file = self.proxy.folder / "operator.token"
        if not file.exists():  # it is valid for an hour
            file.write_text(token(self.cluster, OPERATOR))
        kubeconfig = self.kubeconfig or self.cluster.kubeconfig
        command = ["--kubeconfig", str(kubeconfig), "--namespace", self.cluster.namespace]
        command += ["--watch-namespaces", self.cluster.namespace, "--identity", self.name]
        command += ["--proxy", self.proxy_url or self.proxy.url, "--proxy-token", str(file)]
        command += ["--launcher-image", "launcher:1", "--health-port", str(self.port)]
        command += ["--metrics-port", "0", "--webhook-port", "0", "--watch-seconds", "0.3", "--retry-seconds", "0.3"]
        command += ["--back-off-scale", "0.01", *self.options]
        event = "leading" if leads else "operator starts"
        self.launch("openipu.kubernetes.operator.main", command, lambda: event in self.log)


@dataclass(frozen=True)
class RunningJob:
    """A job at the API server."""

    operator: Operator
    name: str

    @property
    def cluster(self) -> Cluster:
        return self.operator.cluster

    @property
    def thing(self) -> Any:
        return self.cluster.get("ipujob", self.name)

    @property
    def status(self) -> Any:
        return self.thing.get("status") or {}

    def wait(self, state: str) -> Any:
        """Wait until the job is in a state, and return its status."""
        return until(
            lambda: self._status_in(state),
            SECONDS,
            lambda: json.dumps(self.status, indent=1) + self.operator.log[-3000:],
        )

    def _status_in(self, state: str) -> Any:
        status = self.status
        present = statuses.state(status)
        return status if present is not None and present.value == state else None

    def pods(self) -> dict[str, Any]:
        """Return the pods by name."""
        listed = self.cluster.get("pods", selector=f"graphcore.ai/ipujob={self.name}")["items"]
        return {each["metadata"]["name"]: each for each in listed}

    def end(self, pod: str, exit_code: int) -> None:
        """Report that the main container of a pod has ended, as kubelet does."""
        found = until(lambda: self._running(pod), SECONDS, lambda: self.operator.log[-3000:])
        name = found["spec"]["containers"][0]["name"]
        ended = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}
        container = {
            "name": name,
            "image": "",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        status = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "False"}],
        }
        patch_status(self.cluster, pod, status)

    def _running(self, pod: str) -> Any:
        found = self.pods().get(pod)
        return found if found is not None and (found.get("status") or {}).get("phase") == "Running" else None

    def events(self) -> list[tuple[str, str]]:
        """Return reason and message of the events of the job."""
        listed = self.cluster.get("events", fields=f"involvedObject.name={self.name},involvedObject.kind=IPUJob")
        return [(each["reason"], each["message"]) for each in listed["items"]]

    def delete(self) -> None:
        self.cluster.kubectl("delete", "ipujob", self.name, "--timeout=50s")


def submit(operator: Operator, ipujob: dict[str, Any], name: str = "job") -> RunningJob:
    """Create a job."""
    operator.cluster.create({**ipujob, "metadata": {"name": name, "namespace": operator.cluster.namespace}})
    return RunningJob(operator, name)


def partitions(operator: Operator) -> set[str]:
    """Return the ids of the partitions at the V-IPU controller."""
    return listed(operator.proxy.vipu)


def patch_status(cluster: Cluster, name: str, status: dict[str, Any]) -> None:
    """Merge fields into the status of a pod. kubectl 1.20 cannot write sub-resources, so the API is called."""

    async def patch() -> None:
        async with await open_client(str(cluster.kubeconfig)) as client:
            await client.patch(PODS, cluster.namespace, name, {"status": status}, "status")

    asyncio.run(patch())
