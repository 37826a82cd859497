# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts' tool says when something is missing or in the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openipu.twin.processes import ProcessError
from tools.hosts import image, site
from tools.hosts.rig import Rig


def test_every_package_is_named_once_below_a_heading() -> None:
    names = image.packages()
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names)
    text = (Path(image.__file__).parent / "packages.txt").read_text()
    blocks = [block for block in text.split("\n\n") if not all(line.startswith("#") for line in block.splitlines())]
    assert all(block.lstrip().startswith("# ") for block in blocks)


def test_what_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "environment", lambda: {"PATH": str(tmp_path)})
    monkeypatch.setattr(site, "_ELSEWHERE", {})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert set(site.missing()) == set(site.PROGRAMS.values())
    with pytest.raises(ProcessError, match=r"Not installed: .*podman.*\. Install with: apt install .*podman"):
        site.check_possible()


def test_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ProcessError, match="run the same command as root"):
        site.check_possible()


def test_nothing_runs_where_no_place_is(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "none")
    assert not rig.running
    for ask in (lambda: rig.inside(["true"]), rig.environment):
        with pytest.raises(ProcessError, match=r"python -m tools\.hosts up"):
            ask()
    assert rig.down() is False


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(ProcessError, match="holds something else: name another folder"):
        Rig(tmp_path).up(image.Image(tmp_path / "image"))
    with pytest.raises(ProcessError, match="holds no hosts: nothing was removed"):
        Rig(tmp_path).down()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_setting_of_the_machines_apt_goes_into_the_image_when_it_is_about_the_mirror() -> None:
    taken = ['Acquire::http::Proxy "http://192.0.2.1:3142";', 'Acquire::Check-Valid-Until "false";']
    left = ['Acquire::IndexTargets::deb::Packages::Optional "0";', 'APT::Architecture "amd64";']
    assert all(image._SETTING.match(line) for line in taken)
    assert not any(image._SETTING.match(line) for line in left)
