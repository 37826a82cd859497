# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands by their syntax: what modules of commands declare, and how the command line finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openipu.twin.eos.grammar import CliError, Reading, compiled, read

if TYPE_CHECKING:
    from openipu.twin.eos.cli import Cli


@dataclass(frozen=True)
class Output:
    """What a command prints, and its JSON form; None when EOS has none for it."""

    text: str = ""
    tree: dict[str, Any] | None = None


SILENT = Output("", {})
Handler = Callable[["Cli", tuple[str, ...]], Output]


@dataclass(frozen=True)
class Command:
    """One command: syntax, what it does, and whether `enable` comes first."""

    syntax: str
    handler: Handler
    privileged: bool


class Commands:
    """A set of commands."""

    def __init__(self) -> None:
        self._commands: list[Command] = []

    def add(self, *syntaxes: str, privileged: bool = True) -> Callable[[Handler], Handler]:
        """Declare a command under its syntaxes."""

        def declare(handler: Handler) -> Handler:
            self._commands += [Command(syntax, handler, privileged) for syntax in syntaxes]
            return handler

        return declare

    def include(self, others: Commands) -> None:
        """Take over the commands of another set."""
        self._commands += others._commands

    def find(self, reading: Reading, privileged: bool) -> tuple[Handler, tuple[str, ...]] | None:
        """The command that these words are, with its values.

        Raises:
            CliError: when it is one that `enable` must come before.
        """
        for command in self._commands:
            match = read(compiled(command.syntax), reading)
            if match is not None:
                if command.privileged and not privileged:
                    raise CliError(1002, "Invalid input (privileged mode required)")
                return command.handler, match.values
        return None


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], gap: str = " ") -> str:
    """Rows under heads, in columns as wide as given or as their widest cell."""
    sizes = [max([width, *(len(row[n]) for row in rows)]) for n, width in enumerate(widths)]
    lines = [gap.join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in rows]
    head = gap.join(cell.ljust(size) for cell, size in zip(heads, sizes, strict=True)).rstrip()
    return "\n".join([head, *lines])
