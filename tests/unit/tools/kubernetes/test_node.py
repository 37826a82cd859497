# SPDX-License-Identifier: GPL-3.0-or-later
"""Node with real pods: requirements, settings, control groups."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from openipu.process.background import ProcessError
from tools.kubernetes import isolation
from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.node import Node
from tools.kubernetes.site import NODE_ADDRESS


def test_a_node_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ProcessError, match=r"^Cannot run a node: namespaces and mounts need root\."):
        isolation.run_isolated(["true"])


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(isolation, "PACKAGES", {"no-such-program": "no-such-package"})
    with pytest.raises(ProcessError, match=r"not installed: no-such-package\. Run: apt install"):
        isolation.check_requirements()


def test_pods_find_the_name_server_of_the_node(tmp_path: Path) -> None:
    node = Node(ControlPlane(tmp_path, address=NODE_ADDRESS), tmp_path, registry="10.99.0.1:5000")
    settings = node._settings()
    assert yaml.safe_load(settings["kubelet.yaml"])["clusterDNS"] == [NODE_ADDRESS]
    assert 'endpoint = ["http://10.99.0.1:5000"]' in settings["containerd.toml"]


def test_pods_are_in_the_control_group_of_their_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(isolation.GROUP_VARIABLE, "/openipu-node-7")
    node = Node(ControlPlane(tmp_path, address=NODE_ADDRESS), tmp_path)
    assert yaml.safe_load(node._settings()["kubelet.yaml"])["cgroupRoot"] == "/openipu-node-7"


@pytest.mark.parametrize("trees", [("memory", "pids"), ()], ids=["version 1", "version 2"])
def test_groups_of_killed_runs_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trees: tuple[str, ...]
) -> None:
    monkeypatch.setattr(isolation, "_GROUPS", tmp_path)
    if not trees:
        (tmp_path / "cgroup.controllers").touch()
    ended = subprocess.Popen(["true"])
    ended.wait()
    own, former = f"openipu-node-{os.getpid()}", f"openipu-node-{ended.pid}"
    folders = [tmp_path / each for each in trees] or [tmp_path]
    for folder in folders:
        for name in (own, former, "kubepods"):
            (folder / name / "kubepods").mkdir(parents=True)
    isolation._remove_unused_groups()
    for folder in folders:
        assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["kubepods", own]
