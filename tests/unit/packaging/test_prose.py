# SPDX-License-Identifier: GPL-3.0-or-later
"""The prose check measures sentences of Markdown pages and reports placeholders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import prose

WORDS = " ".join(["word"] * 13)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        pytest.param(f"{WORDS}\n{WORDS}.\nNext.", [1], id="two lines"),
        pytest.param(f"Short. Short.\n\nShort.\n{WORDS} `a b c\nd` {WORDS}.", [4], id="a code span is one word"),
        pytest.param(f"* {WORDS}\n  {WORDS}\n* {WORDS}", [1], id="list item"),
        pytest.param(f"{WORDS}.\n{WORDS}.\n\n1. {WORDS}\n2. {WORDS}", [], id="short sentences and items"),
        pytest.param(f"```\n{WORDS} {WORDS}\n```\n| {WORDS} {WORDS} |", [], id="code and tables"),
        pytest.param(f"````\n```\n{WORDS} {WORDS}\n```\n````\n{WORDS} {WORDS}", [6], id="nested fences"),
        pytest.param(f'{WORDS} {WORDS[:-15]} [a](b.md "c d") [e](f.md).', [], id="targets of links"),
    ],
)
def test_long_sentences(page: str, found: list[int]) -> None:
    assert [number for number, _ in prose.long_sentences(page.split("\n"))] == found


@pytest.mark.parametrize(("line", "count"), [("TABLE_OF_SCORES", 1), ("A TABLE", 0), ("table", 0)])
def test_placeholders(line: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(f"# Page\n\n{line}\n")
    assert len(list(prose.problems(page))) == count


WIDE = "a" * 60 + " " + "b" * 60


@pytest.mark.parametrize(
    ("page", "found"),
    [
        pytest.param(f"Short.\n{WIDE}", [2], id="prose"),
        pytest.param(f"* {WIDE}\n1. {WIDE}", [1, 2], id="list items"),
        pytest.param(f"| {WIDE} |\n```\n{WIDE}\n```", [], id="table and code"),
        pytest.param(f"  * [a](https://{'b' * 100})", [], id="link"),
        pytest.param("é" * 50 + " " + "é" * 49, [], id="100 characters, not bytes"),
    ],
)
def test_wide_lines(page: str, found: list[int]) -> None:
    assert [number for number, _ in prose.wide_lines(page.split("\n"))] == found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""Maps a to b."""', 1),
        ('"""Starts, reports and stops runs."""', 1),
        ('"""What a is."""', 1),
        ('"""Map a to b."""', 0),
        ('"""Names and numbers."""', 0),
        ('"""Address of a."""', 0),
        ('T = ("losses", "counter", "How often it was lost.")', 1),
        ('T = ("losses", "counter", "Counts the losses.", (1, 2))', 1),
        ('T = ("up", "gauge", "Whether it is up: 1 or 0.")', 0),
        ('T = ("up", "other", "How it is.")', 0),
    ],
)
def test_openers(source: str, count: int) -> None:
    assert len(list(prose.openers(prose.text_nodes(source)))) == count


def test_all_pages_of_the_root_are_measured() -> None:
    pages = {path.name for path in prose.ROOT.glob("*.md")}
    assert {"SECURITY.md", "CODE_OF_CONDUCT.md"} <= pages
    assert all(prose.PAGES.fullmatch(name) for name in pages)


def test_files_without_a_known_suffix_are_read() -> None:
    names = {path.relative_to(prose.ROOT).as_posix() for path in prose.files([])}
    assert {"Makefile", ".ci/run", "plugins/module_utils/report/page.html.j2"} <= names


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(f'"""First line.\n\n{WORDS}\n{WORDS}.\n"""', [3], id="docstring"),
        pytest.param(f'def a():\n    """{WORDS}\n    {WORDS}.\n    """', [2], id="docstring from its first line"),
        pytest.param(f'class A:\n    """Name.\n\n    * {WORDS}\n    * {WORDS}\n    """', [], id="list in a docstring"),
        pytest.param(f"# {WORDS}\n# {WORDS}.", [1], id="comment"),
        pytest.param(f"a = 1\n# Short.\n# {WORDS}\n# {WORDS}.", [3], id="second sentence of a comment"),
        pytest.param(f"# {WORDS}\n\n# {WORDS}", [], id="two comments"),
        pytest.param(f"a = 1  # {WORDS}\nb = 2  # {WORDS}", [], id="comments after code"),
        pytest.param(f"a = 1  # {WORDS} {WORDS}", [1], id="long comment after code"),
        pytest.param(f'a = """{WORDS}\n{WORDS}"""', [], id="strings are no docstrings"),
        pytest.param(f'"""{WORDS} ``a b\nc`` {WORDS[:-10]}"""', [], id="a code span is one word"),
    ],
)
def test_long_sentences_of_python(
    source: str, found: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(source)
    assert [number for number, message in prose.problems(file) if "sentence" in message] == found


PHRASE = ("without a", "word")


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("page.md", f"Closed\n{PHRASE[0]}\n{PHRASE[1]}.", [2]),
        ("page.md", f"> Closed {PHRASE[0]}\n> {PHRASE[1]}.", [1]),
        ("page.md", f"Closed {PHRASE[0]}\n\n{PHRASE[1].title()}s.", []),
        ("tasks.yml", f"# Closed {PHRASE[0]}\n# {PHRASE[1]}.", [1]),
        ("module.py", f"# Closed {PHRASE[0]}\n# {PHRASE[1]}.", [1]),
        ("module.py", f'"""Closed.\n\nClosed {PHRASE[0]}\n{PHRASE[1]}.\n"""', [3]),
        ("module.py", f'"""Closed {PHRASE[0]}\n{PHRASE[1]}, {prose.QUOTE}\n"""', [1]),
        ("module.py", f'"""Closed {PHRASE[0]} {PHRASE[1]}  # {prose.QUOTE}\n"""', []),
    ],
)
def test_phrases_on_two_lines(
    name: str, source: str, found: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    file = tmp_path / name
    file.write_text(source)
    assert [number for number, _ in prose.problems(file)] == found


def test_only_unchanged_files_without_findings_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {name: tmp_path / "docs" / name for name in ("a.md", "b.md")}
    read: list[str] = []

    def check() -> tuple[list[str], list[str]]:
        """Return the names of the checked files, and the findings."""
        read.clear()
        prose.main()
        return [*read], capsys.readouterr().out.splitlines()

    def recorded(path: Path) -> Iterator[tuple[int, str]]:
        read.append(path.name)
        yield from problems(path)

    problems = prose.problems
    pages["a.md"].parent.mkdir()
    pages["a.md"].write_text("One.\n")
    pages["b.md"].write_text("PLACEHOLDER\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "CLEAN", tmp_path / ".cache" / "prose")
    monkeypatch.setattr(prose, "problems", recorded)
    monkeypatch.setattr(prose, "files", lambda _arguments: sorted(pages.values()))
    monkeypatch.setattr("sys.argv", ["prose.py"])
    finding = "docs/b.md:1: placeholder 'PLACEHOLDER': write the text"
    assert check() == (["a.md", "b.md"], [finding])
    assert check() == (["b.md"], [finding])
    pages["a.md"].write_text("OTHER\n")
    pages["b.md"].write_text("One.\n")
    assert check() == (["a.md", "b.md"], ["docs/a.md:1: placeholder 'OTHER': write the text"])
    # The same content under another name is another file, because rules depend on names.
    pages["b.md"] = pages["b.md"].rename(tmp_path / "docs" / "c.md")
    assert check()[0] == ["a.md", "c.md"]
