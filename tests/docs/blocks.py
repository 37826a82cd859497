# SPDX-License-Identifier: GPL-3.0-or-later
"""Code blocks of the pages.

A comment above a block of commands, ``<!-- not run: reason -->``, excludes it from the tests that run a page.
``<!-- last command fails -->`` states that the last command has another exit status than 0, and
``<!-- last command runs on -->`` that it runs until Ctrl-C. Each ``<!-- before: …  -->`` has commands that a test runs
before the block. Code-hosting sites do not show these comments.

The next block of the language ``text`` in the section of a block of shell commands is its output. A block of the
language ``console`` has commands after a prompt, each with its output. A command whose output has the word *failed* has
another exit status than 0. In outputs, ``…`` is any text, and a line with nothing else stands for any number of lines.
Durations may differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests import ROOT
from tools.documentation.pages import site_pages

SHELL = {"sh", "shell", "bash"}
_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,})(?P<language>[\w+{}-]*) *$")
_MARKS = re.compile(r"(?:^ *<!-- .* -->\s*)+\Z", re.MULTILINE)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")
_BEFORE = re.compile(r"<!-- before: (.+) -->")
_FAILED = re.compile(r"\bfailed\b")
_DURATION = re.compile(r"\b\d+\.\d+ ?s\b")


@dataclass
class Block:
    """A fenced block: page and line of its first line, language, text, and the reason for which it is not run.

    ``before``: commands that run before it. ``output``: of its last command. ``runs_on``: the last one does not end.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""
    fails: bool = False
    output: str = ""
    before: str = ""
    runs_on: bool = False

    @property
    def end(self) -> int:
        """Number of the last line of the block."""
        return self.line + self.text.count("\n")

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return all pages of the site."""
    return sorted(ROOT / name for name in site_pages())


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page. Raises ValueError for a block without an end."""
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        start = _FENCE.match(lines[number])
        number += 1
        if not start:
            continue
        first, indent = number, len(start["indent"])
        while number < len(lines) and lines[number].strip() != start["mark"]:
            number += 1
        if number == len(lines):
            raise ValueError(f"{page}:{first}: the block has no end")
        text = "\n".join(line[indent:] for line in lines[first:number]) + "\n"
        above = _marks(lines[: first - 1])
        reason = _NOT_RUN.search(above)
        yield Block(
            page,
            first,
            start["language"],
            text,
            reason["reason"] if reason else "",
            "<!-- last command fails -->" in above,
            before="\n".join(_BEFORE.findall(above)),
            runs_on="<!-- last command runs on -->" in above,
        )
        number += 1


def _marks(lines: list[str]) -> str:
    """Return the comments at the end of these lines."""
    found = _MARKS.search("\n".join(lines))
    return found[0] if found else ""


def commands(page: Path) -> list[Block]:
    """Return the shell blocks and the commands of console blocks of a page, each with its output if the page has it."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    for block in blocks(page):
        if block.language in SHELL:
            found.append(block)
        elif block.language == "console":
            found += _session(block)
        elif block.language == "text" and found and found[-1].language in SHELL and not found[-1].output:
            between = lines[found[-1].end : block.line - 1]
            found[-1].output = "" if any(line.startswith("#") for line in between) else block.text
    return found


def _session(block: Block) -> Iterator[Block]:
    """Yield the commands of a console block as blocks of their own."""
    parts = re.split("(?m)^[$#] ", block.text)[1:]
    for number, part in enumerate(parts, 1):
        lines = part.splitlines(keepends=True)
        end = next(index for index, line in enumerate(lines) if not line.endswith("\\\n")) + 1
        output = "".join(lines[end:])
        last = number == len(parts)
        fails = bool(_FAILED.search(output)) or (block.fails and last)
        yield replace(block, text="".join(lines[:end]), output=output, fails=fails, runs_on=block.runs_on and last)
        block = replace(block, before="")


def differences(expected: str, output: str) -> list[str]:
    """Return the expected lines that the output does not have in this order."""
    rest = [_normal(line) for line in output.splitlines()]
    missing = []
    for line in expected.splitlines():
        text = _normal(line)
        if text in ("", "…"):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in text.split("…")))
        place = next((index for index, each in enumerate(rest) if pattern.fullmatch(each)), None)
        if place is None:
            missing.append(line)
        else:
            rest = rest[place + 1 :]
    return missing


def _normal(line: str) -> str:
    """Return a line without the parts that may differ: widths of spaces, and durations."""
    return _DURATION.sub("0 s", " ".join(line.split()))
