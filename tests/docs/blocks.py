# SPDX-License-Identifier: GPL-3.0-or-later
"""Code blocks of the pages.

A comment above a block of shell commands, ``<!-- not run: reason -->``, excludes it from the tests that run a page.
``<!-- last command fails -->`` states that the last command has another exit status than 0. Code-hosting sites do not
show these comments. The next block of the language ``text`` below a block of commands is its output. There, ``…`` is
any text. A line with nothing else stands for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.documentation.pages import site_pages

from .messages import ROOT

SHELL = {"sh", "shell", "bash"}
_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,})(?P<language>[\w+{}-]*) *$")
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")


@dataclass
class Block:
    """A fenced block: page and line of its first line, language, text, and the reason for which it is not run."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""
    fails: bool = False
    output: str = ""

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
        above = next((line for line in reversed(lines[: first - 1]) if line.strip()), "")
        reason = _NOT_RUN.search(above)
        yield Block(
            page,
            first,
            start["language"],
            text,
            reason["reason"] if reason else "",
            "<!-- last command fails -->" in above,
        )
        number += 1


def commands(page: Path) -> list[Block]:
    """Return the shell blocks of a page, each with its output if the page has it."""
    found: list[Block] = []
    for block in blocks(page):
        if block.language in SHELL:
            found.append(block)
        elif block.language == "text" and found and not found[-1].output:
            found[-1].output = block.text
    return found


def differences(expected: str, output: str) -> list[str]:
    """Return the expected lines that the output does not have in this order."""
    rest = [" ".join(line.split()) for line in output.splitlines()]
    missing = []
    for line in expected.splitlines():
        text = " ".join(line.split())
        if text in ("", "…"):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in text.split("…")))
        place = next((index for index, each in enumerate(rest) if pattern.fullmatch(each)), None)
        if place is None:
            missing.append(line)
        else:
            rest = rest[place + 1 :]
    return missing
