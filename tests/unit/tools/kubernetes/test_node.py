# SPDX-License-Identifier: GPL-3.0-or-later
"""Node with real pods: requirements, settings, and the list of packages in its images."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
import yaml

from openipu.process.background import ProcessError
from tools.kubernetes import images, isolation
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


def test_images_list_their_packages(tmp_path: Path) -> None:
    status = b"Package: python3\nStatus: install ok installed\nVersion: 3.11.2-1\n\nPackage: half\n\n"
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        entry = tarfile.TarInfo("./var/lib/dpkg/status")
        entry.size = len(status)
        archive.addfile(entry, io.BytesIO(status))
    (tmp_path / "site" / "grpcio-1.85.1.dist-info").mkdir(parents=True)
    found = images._package_list(tmp_path, tmp_path / "site")
    assert found == ["pkg:deb/debian/python3@3.11.2-1", "pkg:pypi/grpcio@1.85.1"]


def test_a_changed_source_needs_new_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, source = tmp_path / "programs-1", tmp_path / "source.py"
    source.write_text("1")
    monkeypatch.setattr(images, "_sources", lambda: iter([source]))
    before = images._fingerprint(programs)
    assert images._fingerprint(programs) == before
    source.write_text("2")
    assert images._fingerprint(programs) != before
