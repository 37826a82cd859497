# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm, and what it renders from the chart of the operator."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from openipu.process.background import ProcessError

from .site import CHECKOUT

CHART = CHECKOUT / "charts" / "ipu-operator"
CRD = CHART / "crds" / "graphcore.ai_ipujobs.yaml"
_PROGRAM = CHECKOUT / ".cache" / "helm" / "bin" / "helm"


def program() -> Path:
    """Return the program helm. Raises ProcessError if it is not installed."""
    if not _PROGRAM.exists():
        raise ProcessError("Cannot find Helm. Run: make .cache/helm/.ready")
    return _PROGRAM


def run(*arguments: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm and return its result, also of a failure. Raises ProcessError if it is not installed.

    ``kubeconfig``: configuration for the API server. Without it, Helm reaches no API server.
    """
    home = CHECKOUT / ".cache" / "helm-home"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HELM_NO_PLUGINS": "1",
        "KUBECONFIG": str(kubeconfig or home / "none"),
    }
    return subprocess.run(  # noqa: S603  command of this tool
        [program(), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def template(*arguments: str | Path, release: str = "gc", namespace: str = "default") -> list[dict[str, Any]]:
    """Return the objects of a release that is not installed. Raises ProcessError with the messages of Helm."""
    done = run("template", release, CHART, "--namespace", namespace, *arguments)
    if done.returncode:
        raise ProcessError(f"Cannot render the chart: {done.stderr.strip()}")
    return [each for each in yaml.safe_load_all(done.stdout) if each]
