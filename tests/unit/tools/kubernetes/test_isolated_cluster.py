# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane and its node as a background process, as far as they work without root."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from openipu.process.background import ProcessError
from tools.kubernetes import isolated_cluster, isolation
from tools.kubernetes.__main__ import main
from tools.kubernetes.isolated_cluster import IsolatedCluster


def test_a_node_needs_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.os, "geteuid", lambda: 1000)
    done = CliRunner().invoke(main, ["up", "--node", "--state-dir", str(tmp_path / "state")])
    assert done.exit_code == 1
    assert "Cannot run a node: namespaces and mounts need root. Run the same command as root." in done.output
    assert not (tmp_path / "state").exists()


def test_a_node_that_does_not_run_cannot_be_entered(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match=r"it does not run\. Start it with python -m tools\.kubernetes up --node\."):
        IsolatedCluster(tmp_path).entered(["true"])


def test_a_node_leaves_other_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_cluster, "check_requirements", lambda: None)
    monkeypatch.setattr(isolated_cluster, "ensure_images", lambda *_: {})
    monkeypatch.setattr(isolated_cluster.programs, "ensure_programs", lambda _: tmp_path)
    (tmp_path / "mine").touch()
    with pytest.raises(ProcessError, match="it holds other files"):
        IsolatedCluster(tmp_path).up(print)
    assert not IsolatedCluster(tmp_path).down()
    assert (tmp_path / "mine").exists()
