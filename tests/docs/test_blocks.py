# SPDX-License-Identifier: GPL-3.0-or-later
"""The code blocks of all pages have valid syntax."""

from __future__ import annotations

import ast
import configparser
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import mmdr
import pytest
import yaml

from tests import ROOT

from .blocks import SHELL, Block, blocks, commands, differences, pages
from .test_runs import PAGES
from .unrun import ELSEWHERE, REASONS

PLAIN = {"text"}


def _shell(text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise ValueError(done.stderr)


def _console(text: str) -> None:
    """Check the commands of a session: the lines after a prompt, with their continuations."""
    found, continued = [], False
    for line in text.splitlines():
        if line.startswith(("$ ", "# ")):
            found.append(line[2:])
        elif continued:
            found.append(line.removeprefix("> "))
        continued = bool(found) and line.endswith("\\")
    if not found:
        raise ValueError("a console block has no line with a prompt")
    _shell("\n".join(found))


CHECKS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(SHELL, _shell),
    "console": _console,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "json": json.loads,
    "python": ast.parse,
    "ini": lambda text: configparser.ConfigParser().read_string(text),
    "mermaid": lambda text: mmdr.render(text).svg(),
}


def problem(block: Block) -> str:
    """Return the reason for which a block is invalid, or an empty text."""
    if block.language in PLAIN:
        return ""
    if block.language not in CHECKS:
        return f"{block.place}: the language {block.language!r} is unknown"
    try:
        CHECKS[block.language](block.text)
    except Exception as error:
        return f"{block.place}: {error}"
    return ""


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.parent.name + "/" + page.name)) for page in pages()])
def test_blocks_have_valid_syntax(page: Path) -> None:
    assert [message for block in blocks(page) if (message := problem(block))] == []


@pytest.mark.parametrize(
    ("language", "text"),
    [("sh", "if true"), ("console", "no prompt"), ("yaml", "a: [1"), ("json", "{"), ("", "text"), ("mermaid", "flow")],
)
def test_invalid_blocks_are_found(language: str, text: str) -> None:
    assert problem(Block(Path(__file__), 1, language, text + "\n"))


def test_missing_output_is_found() -> None:
    expected = "Agents  16 of 16 up\n…\nvision  ACTIVE\n"
    assert differences(expected, "other\nAgents 16 of 16 up\nmore\nvision   ACTIVE\n") == []
    assert differences(expected, "Agents 15 of 16 up\nvision ACTIVE\n") == ["Agents  16 of 16 up"]
    assert differences(expected, "vision ACTIVE\nAgents 16 of 16 up\n") == ["vision  ACTIVE"]


def test_the_commands_of_each_page_are_run_or_have_a_reason() -> None:
    found = {str(page.relative_to(ROOT)) for page in pages() if any(not block.not_run for block in commands(page))}
    assert found == {*PAGES, *ELSEWHERE, *REASONS}
    assert len(found) == len(PAGES) + len(ELSEWHERE) + len(REASONS)
    assert [name for name, test in ELSEWHERE.items() if Path(name).name not in (ROOT / test).read_text()] == []


def test_the_commands_of_a_console_block_have_their_outputs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    session = "<!-- before: cd x -->\n```console\n$ a \\\n    b\n$ c 1\nTook 2.5s\ntest failed\n```\n"
    page.write_text(session)
    first, second = commands(page)
    assert (first.text, first.output, first.before, first.fails) == ("a \\\n    b\n", "", "cd x", False)
    assert (second.text, second.output, second.before, second.fails) == ("c 1\n", "Took 2.5s\ntest failed\n", "", True)
    assert differences(second.output, "Took  13.25s\ntest failed\n") == []


def test_the_output_of_a_block_is_in_its_section(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\n# a\nb\n```\n\n## Section\n\n```text\nc\n```\n\n```sh\nd\n```\nIt prints:\n```text\ne\n```\n"
    )
    assert [block.output for block in commands(page)] == ["", "e\n"]


def test_a_block_has_several_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- before: a -->\n<!-- before: b -->\n<!-- last command runs on -->\n\n```sh\nc\nd\n```\n\n```sh\ne\n```\n"
    )
    first, second = commands(page)
    assert (first.before, first.runs_on) == ("a\nb", True)
    assert (second.before, second.runs_on) == ("", False)
