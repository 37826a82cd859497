# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of the operator: their inputs, their creation time, and their list of packages."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from openipu.process.background import ProcessError
from tools.kubernetes import cache, images, roots

PYTHON = "Package: python3\nStatus: x\nVersion: 3.11.2-1\nDescription: language\n Version: of the text\n"


def archive(path: Path, files: dict[str, str]) -> Path:
    """Return an archive with files."""
    with tarfile.open(path, "w") as written:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            written.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cache for one test."""
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def writer(made: list[Path]) -> Callable[[Path], None]:
    """Return a function that writes an entry of the cache and notes its path."""

    def create(path: Path) -> None:
        path.write_text("content")
        made.append(path)

    return create


def test_an_entry_is_made_once_for_the_same_inputs(tmp_path: Path, folder: Path) -> None:
    source, made = tmp_path / "source.py", list[Path]()
    source.write_text("1")
    first = cache.ensure("image", ["x", source], writer(made), ".tar")
    assert cache.ensure("image", ["x", source], writer(made), ".tar") == first
    assert len(made) == 1 and first.read_text() == "content" and first.parent == folder
    source.write_text("2")
    assert cache.ensure("image", ["x", source], writer(made), ".tar") != first
    assert not list(folder.glob("building-*"))


def test_the_most_recently_used_entries_are_kept(folder: Path) -> None:
    made = list[Path]()
    entries = [cache.ensure("image", [str(number)], writer(made)) for number in range(3)]
    for age, entry in enumerate(entries):
        os.utime(entry, (age, age))
    cache.ensure("image", ["0"], writer(made))  # used again
    last = cache.ensure("image", ["3"], writer(made))
    assert sorted(folder.iterdir()) == sorted([entries[0], entries[2], last])


def test_an_entry_that_cannot_be_made_leaves_nothing(folder: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ProcessError("no space")

    with pytest.raises(ProcessError):
        cache.ensure("image", [], fail)
    assert list(folder.iterdir()) == []


def test_images_list_their_packages(tmp_path: Path) -> None:
    root = archive(tmp_path / "root.tar", {"./var/lib/dpkg/status.d/python3": PYTHON, "./etc/passwd": "root"})
    for each in ("a/grpcio-1.85.1", "b/openipu_pod-0.1.0"):
        (tmp_path / f"{each}.dist-info").mkdir(parents=True)
    found = images._package_list(root, tmp_path / "a", tmp_path / "b")
    assert found == ["pkg:deb/debian/python3@3.11.2-1", "pkg:pypi/grpcio@1.85.1", "pkg:pypi/openipu_pod@0.1.0"]


def test_a_root_file_system_without_records_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="it has no records"):
        roots.unpacked_packages(archive(tmp_path / "root.tar", {"./etc/passwd": "root"}))


def test_the_creation_time_is_that_of_the_commit_or_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    answers = {"log": "0123abc 1700000001\n", "status": " M src/openipu/x.py\n"}
    monkeypatch.setattr(images, "run", lambda command, _: answers[command[3]])
    assert images._revision() == ("0123abc-dirty", "1700000001")
    answers["status"] = ""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    assert images._revision() == ("0123abc", "1600000000")


def test_every_file_of_the_programs_is_an_input() -> None:
    found = {str(path.relative_to(images.CHECKOUT)) for path in images._source_files()}
    assert {
        "images/Containerfile",
        "images/requirements.txt",
        "pyproject.toml",
        "src/openipu/kubernetes/operator/main.py",
        "plugins/module_utils/vipu/contract.py",
    } <= found
    assert not [name for name in found if name.endswith(".pyc")]
