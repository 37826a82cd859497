# SPDX-License-Identifier: GPL-3.0-or-later
"""The tool that runs a Kubernetes control plane, as far as it works without one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from openipu.process.background import ProcessError
from tools.kubernetes import programs
from tools.kubernetes.__main__ import main
from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.site import Site


def folder(path: Path, *names: str) -> Path:
    """Return a folder with executable files."""
    for name in names:
        (path / name).write_text('#!/bin/sh\necho "Kubernetes v1.29.3-x"\n')
        (path / name).chmod(0o755)
    return path


def test_given_programs_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder(tmp_path, *programs.GIVEN)))
    assert programs.ensure_programs(lambda _: pytest.fail("nothing is built")) == tmp_path
    assert programs.missing_packages() == []
    assert programs.minor_version(tmp_path) == 29


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [name for name in programs.GIVEN if name not in ("etcd", "kubectl")]
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder(tmp_path, *names)))
    with pytest.raises(ProcessError, match=r"it has no kubectl, etcd\. Add them, or unset the variable\."):
        programs.ensure_programs(print)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.list", "deb http://m bookworm main\n# deb x\n", "deb-src http://m bookworm main\n# deb x\n"),
        ("x.sources", "Types: deb deb-src\nSuites: bookworm\n", "Types: deb-src\nSuites: bookworm\n"),
    ],
)
def test_sources_of_source_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(programs, "apt_sources", lambda: ([tmp_path / name], []))
    programs._write_sources(tmp_path / "sources")
    assert (tmp_path / "sources" / name).read_text() == expected


def test_a_folder_with_other_files_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = CliRunner().invoke(main, ["down", "--state-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert f"Cannot remove {tmp_path}: it holds no control plane. Nothing was removed." in done.output
    with pytest.raises(ProcessError, match="it holds other files"):
        ControlPlane(tmp_path).up(tmp_path)
    assert (tmp_path / "mine").exists()


def test_tokens_are_private_and_name_users(tmp_path: Path) -> None:
    site = Site(tmp_path)
    tokens = site.write_tokens()
    site.write_kubeconfig("admin", tokens["admin"])
    assert [path.stat().st_mode & 0o777 for path in (site.tokens, site.kubeconfig())] == [0o600, 0o600]
    config = yaml.safe_load(site.kubeconfig().read_text())
    assert config["users"][0]["user"]["token"] == tokens["admin"]
    assert "insecure-skip-tls-verify" not in config["clusters"][0]["cluster"]
    assert f'{tokens["admin"]},admin,admin,"system:masters"' in site.tokens.read_text().splitlines()
