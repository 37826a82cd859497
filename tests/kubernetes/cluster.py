# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the control plane of the tests, with kubectl."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CRD = ROOT / "charts/ipu-operator/crds/graphcore.ai_ipujobs.yaml"
EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class Cluster:
    """A control plane, and the namespace of a test."""

    kubectl_program: Path
    kubeconfig: Path
    namespace: str = "default"

    def run(self, *arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return its result, also of a failure."""
        command = [self.kubectl_program, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run kubectl and return its output."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """Return an object, or a list of objects."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def create(self, *objects: dict[str, Any], dry_run: bool = False) -> str:
        """Create objects. With ``dry_run``, the API server checks them only."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        return self.kubectl("create", "--filename=-", *(["--dry-run=server"] if dry_run else []), stdin=listed)

    def apply(self, thing: dict[str, Any]) -> None:
        """Create or change an object."""
        self.kubectl("apply", "--filename=-", stdin=json.dumps(thing))

    def rejection(self, thing: dict[str, Any]) -> str:
        """Return the error of an object that the API server rejects."""
        done = self.run("create", "--filename=-", "--validate=false", stdin=json.dumps(thing))
        assert done.returncode != 0, f"created: {done.stdout}"
        return done.stderr
