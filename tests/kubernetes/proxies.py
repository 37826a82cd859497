# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU proxy as a process, and its callers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.vipu_servers import Client
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.program import Program
from tests.ports import free_port

OPERATOR = "ipu-operator"  # service account


@dataclass
class Proxy(Program):
    """Process ``gc-proxy`` with its tracker in the namespace of a test. ``vipu``: the first V-IPU controller."""

    cluster: Cluster
    folder: Path
    vipu: Client
    options: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    kubeconfig: Path | None = None  # None: that of the cluster

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def controllers(self) -> Path:
        """File with the V-IPU controllers."""
        return self.folder / "controllers.yaml"

    @property
    def log_file(self) -> Path:
        return self.folder / "proxy.log"

    def start(self) -> None:
        """Start the process and wait until it serves."""
        kubeconfig = self.kubeconfig or self.cluster.kubeconfig
        command = ["--kubeconfig", str(kubeconfig), "--namespace", self.cluster.namespace]
        command += ["--controllers", str(self.controllers), "--credentials", str(self.folder / "credentials")]
        command += ["--port", str(self.port), "--survey-seconds", "0.2", "--sweep-seconds", "0.5", *self.options]
        self.launch("openipu.kubernetes.proxy.main", command, self.serves)

    def serves(self) -> bool:
        try:
            return self.call("GET", "/health") == (200, {"status": "ok"})
        except OSError:
            return False

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        """Make a request and return status and answer."""
        request = urllib.request.Request(self.url + path, method=method)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def as_operator(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Make a request with the token of the operator."""
        return self.call(method, path, body, token(self.cluster, OPERATOR))

    def records(self) -> dict[str, Any]:
        """Return the records of the tracker."""
        data = self.cluster.get("configmap", "ipu-partitions-tracker").get("data") or {}
        return {id: json.loads(text) for id, text in data.items()}


def token(cluster: Cluster, account: str, audience: str = "gc-proxy", pod: dict[str, Any] | None = None) -> str:
    """Return a token of a service account, as kubelet mounts it. ``pod``: the pod to which it is bound."""
    spec: dict[str, Any] = {"audiences": [audience]}
    if pod is not None:
        metadata = pod["metadata"]
        spec["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{account}/token"
    found: str = cluster.request("POST", path, request)["status"]["token"]
    return found
