# SPDX-License-Identifier: GPL-3.0-or-later
"""The init container of a launcher as a process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.operators import SECONDS, RunningJob
from tests.kubernetes.program import Program
from tests.kubernetes.proxies import token


@dataclass
class InitContainer(Program):
    """Process ``gc-launcher`` of a job. ``pod``: the pod that it pretends to be. ``options``: additional ones."""

    job: RunningJob
    folder: Path
    pod: str = "job-launcher"
    options: tuple[str, ...] = ()

    @property
    def log_file(self) -> Path:
        return self.folder / "init-container.log"

    @property
    def tools(self) -> Path:
        """Folder with what the init container delivers."""
        return self.folder / "tools"

    def start(self) -> None:
        """Start the process with the environment of the container."""
        cluster, pods = self.job.cluster, self.job.pods()
        caller, file = pods[self.pod], self.folder / "pod.token"
        file.write_text(token(cluster, caller["spec"]["serviceAccountName"], pod=caller))
        mounts = {"IPUJOB_TOOLS", "IPUJOB_SSH_KEYS"}  # given as options
        environment = pods["job-launcher"]["spec"]["initContainers"][0]["env"]
        os_environment = {each["name"]: each["value"] for each in environment if each["name"] not in mounts}
        command = ["--kubeconfig", str(cluster.kubeconfig), "--token", str(file), "--tools", str(self.tools)]
        command += ["--kubectl", str(cluster.kubectl_program), *self.options]
        self.launch("openipu.kubernetes.launcher.main", command, lambda: True, os_environment)

    def wait(self) -> int:
        """Wait until the process ends, and return its exit status."""
        assert self.process is not None
        return self.process.wait(SECONDS)
