# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of the chart at the control plane of the tests, and a node that completes the pods of their checks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openipu.kubernetes.cluster.client import PODS, Client, Object
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tools.kubernetes import helm

# The webhooks have no Service that the API server could reach: no namespace of the tests is in their scope.
NO_WEBHOOK_CALLS = ("--set", "admissionWebhooks.scope=elsewhere")


class CompletingNode(HollowNode):
    """A hollow node on which the checks of the chart end with success, or with a failure if ``failing``."""

    failing = False

    async def report(self, client: Client, pod: Object, *, waiting: str = "") -> None:
        metadata = pod["metadata"]
        if (metadata.get("labels") or {}).get("app.kubernetes.io/component") != "admission":
            await super().report(client, pod, waiting=waiting)
            return
        status = {"phase": "Failed" if self.failing else "Succeeded", "startTime": metadata["creationTimestamp"]}
        await client.patch(PODS, metadata["namespace"], metadata["name"], {"status": status}, "status")


@dataclass(frozen=True)
class Release:
    """A release in the namespace of a test."""

    cluster: Cluster
    name: str = "gc"

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run Helm in the namespace and return its result, also of a failure."""
        return helm.run(*arguments, "--namespace", self.cluster.namespace, kubeconfig=self.cluster.kubeconfig)

    def helm(self, *arguments: str | Path) -> str:
        """Run Helm in the namespace and return its output."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *settings: str | Path) -> str:
        return self.helm("install", self.name, helm.CHART, "--timeout", "60s", *settings)

    def upgrade(self, *settings: str | Path) -> str:
        return self.helm("upgrade", self.name, helm.CHART, "--timeout", "60s", *settings)

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects of the release as Helm has rendered them, without hooks."""
        return [each for each in yaml.safe_load_all(self.helm("get", "manifest", self.name)) if each]

    def controllers(self) -> str:
        """Return the list of V-IPU controllers."""
        found: str = self.cluster.get("configmap", "gc-ipu-operator-vipu-controllers")["data"]["controllers.yaml"]
        return found


@contextmanager
def uninstalled(cluster: Cluster, name: str = "gc") -> Iterator[Release]:
    """Yield a release that is uninstalled at the end, if it is installed."""
    release = Release(cluster, name)
    try:
        yield release
    finally:
        done = release.run("uninstall", release.name, "--ignore-not-found")
        assert done.returncode == 0, done.stderr


def account_token(cluster: Cluster, account: str) -> str:
    """Return a token of a service account for the API server."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{account}/token"
    found: str = cluster.request("POST", path, request)["status"]["token"]
    return found


def account_kubeconfig(cluster: Cluster, account: str, path: Path) -> Path:
    """Write the configuration of a client that acts as a service account, and return its path."""
    config: Any = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": account_token(cluster, account)}
    path.write_text(yaml.safe_dump(config))
    return path
