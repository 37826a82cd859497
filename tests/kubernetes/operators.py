# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator as a process, and the jobs that it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from openipu.kubernetes.domain import status as statuses
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxies import OPERATOR, START_SECONDS, Proxy, token
from tests.ports import free_port
from tests.waiting import until

SECONDS = 60.0  # for a job to reach a state


@dataclass
class Operator:
    """Process ``ipu-operator`` for the namespace of a test. Pauses are short: restarts follow after 0.1 s."""

    cluster: Cluster
    proxy: Proxy
    options: tuple[str, ...] = ()
    name: str = "operator"
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.proxy.folder / f"{self.name}.log").read_text()

    def start(self, *, leads: bool = True) -> None:
        """Start the process and wait until it leads, or until it is a candidate."""
        file = self.proxy.folder / "operator.token"
        file.write_text(token(self.cluster, OPERATOR))
        command = [sys.executable, "-m", "openipu.kubernetes.operator.main"]
        command += ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.cluster.namespace]
        command += ["--watch-namespaces", self.cluster.namespace, "--identity", self.name]
        command += ["--proxy", self.proxy.url, "--proxy-token", str(file), "--launcher-image", "launcher:1"]
        command += ["--health-port", str(self.port), "--watch-seconds", "0.3", "--retry-seconds", "0.3"]
        command += ["--back-off-scale", "0.01", *self.options]
        with (self.proxy.folder / f"{self.name}.log").open("ab") as log:
            process = self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(
            lambda: process.poll() is not None or ("leading" if leads else "operator starts") in self.log,
            START_SECONDS,
            lambda: self.log,
        )
        assert process.poll() is None, self.log

    def kill(self) -> None:
        """Kill the process, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """Stop the process and return its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)


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
        listed = self.cluster.get("pods", "--selector", f"graphcore.ai/ipujob={self.name}")["items"]
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
        patch_status(self.cluster, "pods", pod, status)

    def _running(self, pod: str) -> Any:
        found = self.pods().get(pod)
        return found if found is not None and (found.get("status") or {}).get("phase") == "Running" else None

    def events(self) -> list[tuple[str, str]]:
        """Return reason and message of the events of the job."""
        listed = self.cluster.get(
            "events", f"--field-selector=involvedObject.name={self.name},involvedObject.kind=IPUJob"
        )
        return [(each["reason"], each["message"]) for each in listed["items"]]

    def delete(self) -> None:
        self.cluster.kubectl("delete", "ipujob", self.name, "--timeout=50s")


def patch_status(cluster: Cluster, plural: str, name: str, status: dict[str, Any]) -> None:
    """Merge fields into the status of a pod. kubectl 1.20 cannot write sub-resources, so the API is called."""
    import asyncio

    from openipu.kubernetes.cluster.client import Resource, open_client

    async def patch() -> None:
        async with await open_client(str(cluster.kubeconfig)) as client:
            await client.patch(Resource("v1", plural), cluster.namespace, name, {"status": status}, "status")

    asyncio.run(patch())
