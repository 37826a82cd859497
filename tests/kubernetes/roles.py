# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the role ``ipu_operator``, as a playbook of a user, and observation of its writes."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import ROOT, Cluster
from tools.kubernetes import helm

MANAGER = "openipu-pod-gc"
ACCESS_KEY = "s3cret-of-the-tests"
_BIN = Path(sys.executable).parent
_RECAP = re.compile(r"^\S+\s*: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=(\d+)", re.MULTILINE)
_SECONDS = 900.0


@dataclass(frozen=True)
class Run:
    """Result of a run. ``text`` is its output in one line."""

    changed: int
    failed: bool
    text: str


@dataclass
class Role:
    """The role at a cluster, with the variables of a test. ``namespace``: that of the release."""

    cluster: Cluster
    folder: Path
    namespace: str
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def release(self) -> Cluster:
        """Cluster with the namespace of the release."""
        return replace(self.cluster, namespace=self.namespace)

    def run(self, *options: str, **variables: Any) -> Run:
        """Run the role on the control node."""
        inventory = self.folder / "inventory.json"
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory.write_text(json.dumps({"all": {"hosts": {"localhost": local}}}))
        play = [{"hosts": "localhost", "gather_facts": False, "roles": ["openipu.pod.ipu_operator"]}]
        playbook = self.folder / "play.json"
        playbook.write_text(json.dumps(play))
        return self.play(playbook, inventory, *options, **variables)

    def play(self, playbook: Path, inventory: Path, *options: str, **variables: Any) -> Run:
        """Run a playbook with the variables and all details in its output, which must never contain the access key."""
        given = {
            "ipu_operator_kubectl": str(self.cluster.kubectl_program),
            "ipu_operator_helm": str(helm.program()),
            "ipu_operator_kubeconfig": str(self.cluster.kubeconfig),
            "ipu_operator_namespace": self.namespace,
            **self.variables,
            **variables,
        }
        extra = self.folder / "variables.json"
        extra.write_text(json.dumps(given))
        done = subprocess.run(
            [_BIN / "ansible-playbook", "-i", inventory, playbook, "-e", f"@{extra}", "-vvv", "--diff", *options],
            env=_environment(self.folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        output = done.stdout + done.stderr
        assert "Traceback" not in output, output
        assert ACCESS_KEY not in output
        assert base64.b64encode(ACCESS_KEY.encode()).decode() not in output
        recap = _RECAP.search(output)
        assert recap, output
        assert (done.returncode != 0) == bool(int(recap[2])), output
        return Run(int(recap[1]), done.returncode != 0, " ".join(output.split()))

    def apply(self, *options: str, **variables: Any) -> int:
        """Run the role, and return the number of changes. It must not fail."""
        done = self.run(*options, **variables)
        assert not done.failed, done.text[-6000:]
        return done.changed

    def rejection(self, *options: str, **variables: Any) -> str:
        """Return the output of a run that fails without a change."""
        before = self.versions()
        done = self.run(*options, **variables)
        assert done.failed
        assert done.changed == 0
        after = self.versions()
        assert after == before, sorted(set(after.items()) ^ set(before.items()))
        return done.text

    def versions(self) -> dict[str, str]:
        """Return the versions of all objects that the role could write. They change with each write."""
        found = {}
        ending = {each["metadata"]["name"] for each in self.cluster.get("namespaces")["items"] if _is_ending(each)}
        for kind in ("namespaces", "customresourcedefinitions", "secrets", "configmaps", "serviceaccounts"):
            for each in self.cluster.get(kind, everywhere=True)["items"]:
                metadata = each["metadata"]
                if _is_of_others(each):
                    continue
                found[f"{kind} {metadata.get('namespace')}/{metadata['name']}"] = metadata["resourceVersion"]
        for kind, version in (("deployments", "generation"), ("ipujobs", "uid")):
            for each in self.cluster.get(kind, everywhere=True)["items"] if kind != "ipujobs" or self.has_crd() else ():
                metadata = each["metadata"]
                if not _is_ending(each) and metadata["namespace"] not in ending:
                    found[f"{kind} {metadata['namespace']}/{metadata['name']}"] = str(metadata[version])
        # The status of nodes changes all the time.
        for each in self.cluster.get("nodes")["items"]:
            metadata = each["metadata"]
            owned = [entry for entry in metadata.get("managedFields", []) if entry["manager"] == MANAGER]
            found[f"node {metadata['name']}"] = json.dumps([metadata.get("labels"), owned])
        return found

    def has_crd(self) -> bool:
        return bool(self.cluster.kubectl("get", "crd", "ipujobs.graphcore.ai", "--ignore-not-found"))

    def labels(self, node: str) -> dict[str, str]:
        """Return the labels of a node."""
        found: dict[str, str] = self.cluster.get("node", node)["metadata"].get("labels") or {}
        return found

    def secrets(self) -> list[dict[str, str]]:
        """Return the data of all Secrets with credentials."""
        selector = "app.kubernetes.io/managed-by=openipu.pod"
        return [each["data"] for each in self.release.get("secrets", selector=selector)["items"]]


def _is_ending(thing: dict[str, Any]) -> bool:
    """Return whether Kubernetes is removing an object, for instance with the namespace of a former test."""
    return "deletionTimestamp" in thing["metadata"]


def _is_of_others(thing: dict[str, Any]) -> bool:
    """Return whether Kubernetes writes an object itself, or another test may still remove it."""
    metadata = thing["metadata"]
    if (
        metadata["name"] in {"kube-root-ca.crt", "default"}
        or thing.get("type") == "kubernetes.io/service-account-token"
    ):
        return True
    return str(metadata.get("namespace") or metadata["name"]).startswith(("kube-", "test-"))


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "KUBE"))}
    return {
        **inherited,
        "PATH": f"{_BIN}:{os.environ['PATH']}",
        "HOME": str(folder),
        "ANSIBLE_HOME": str(folder / ".ansible"),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "true",
        "HELM_NO_PLUGINS": "1",
    }
