# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of tools.hosts for missing requirements and invalid folders, and the contents of its image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openipu.process.background import ProcessError
from tools.hosts import image, site
from tools.hosts.host_environment import HostEnvironment


def test_each_package_is_listed_once_below_a_heading() -> None:
    names = image.packages()
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names)
    text = (Path(image.__file__).parent / "packages.txt").read_text()
    blocks = [block for block in text.split("\n\n") if not all(line.startswith("#") for line in block.splitlines())]
    assert all(block.lstrip().startswith("# ") for block in blocks)


def test_missing_packages_are_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "system_environment", lambda: {"PATH": str(tmp_path)})
    monkeypatch.setattr(site, "_FIXED_PATHS", {})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert set(site.missing()) == set(site.PROGRAMS.values())
    with pytest.raises(ProcessError, match=r"not installed: .*podman.*\. Run: apt install .*podman"):
        site.check_requirements()


def test_hosts_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ProcessError, match="Run the same command as root"):
        site.check_requirements()


def test_commands_need_a_running_environment(tmp_path: Path) -> None:
    environment = HostEnvironment(tmp_path / "none")
    assert not environment.running
    for call in (lambda: environment.command_line(["true"]), environment.variables):
        with pytest.raises(ProcessError, match=r"python -m tools\.hosts up"):
            call()
    assert environment.down() is False


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(ProcessError, match=r"it holds other files\. Choose another folder"):
        HostEnvironment(tmp_path).up(image.Image(tmp_path / "image"))
    with pytest.raises(ProcessError, match=r"it holds no hosts\. Nothing was removed"):
        HostEnvironment(tmp_path).down()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_image_uses_the_apt_settings_for_mirrors_only() -> None:
    used = ['Acquire::http::Proxy "http://192.0.2.1:3142";', 'Acquire::Check-Valid-Until "false";']
    ignored = ['Acquire::IndexTargets::deb::Packages::Optional "0";', 'APT::Architecture "amd64";']
    assert all(image._APT_SETTING.match(line) for line in used)
    assert not any(image._APT_SETTING.match(line) for line in ignored)
