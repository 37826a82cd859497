# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of commands by syntax, and the layout of their output.

The command line looks commands up in these tables. A handler takes a context of its own type and the values
of the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from openipu.twin.devices.eos.config.grammar import CliError, ParseState, compile_syntax, parse

Context = TypeVar("Context")


@dataclass(frozen=True)
class Output:
    """Output of a command.

    Args:
        text: output, or None where the twin does not know the layout of EOS.
        tree: JSON form, or None where EOS has none.
    """

    text: str | None = ""
    tree: dict[str, Any] | None = None


SILENT = Output("", {})
Handler = Callable[[Context, tuple[str, ...]], Output]


@dataclass(frozen=True)
class Command(Generic[Context]):
    """One command: syntax, handler, and whether it needs privileged mode."""

    syntax: str
    handler: Handler[Context]
    privileged: bool


class Commands(Generic[Context]):
    """Set of commands whose handlers take the same type of context."""

    def __init__(self) -> None:
        self._commands: list[Command[Context]] = []

    def add(self, *syntaxes: str, privileged: bool = True) -> Callable[[Handler[Context]], Handler[Context]]:
        """Register the decorated handler under these syntaxes."""

        def declare(handler: Handler[Context]) -> Handler[Context]:
            self._commands += [Command(syntax, handler, privileged) for syntax in syntaxes]
            return handler

        return declare

    def include(self, others: Commands[Context]) -> None:
        """Add the commands of another set."""
        self._commands += others._commands

    def find(self, state: ParseState, privileged: bool) -> tuple[Handler[Context], tuple[str, ...]] | None:
        """Return the handler that matches these words and its values, or None.

        Raises:
            CliError: when the command needs privileged mode.
        """
        for command in self._commands:
            match = parse(compile_syntax(command.syntax), state)
            if match is not None:
                if command.privileged and not privileged:
                    raise CliError(1002, "Invalid input (privileged mode required)")
                return command.handler, match.values
        return None


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], gap: str = " ") -> str:
    """Return a table. Columns have the given width, or that of their widest cell."""
    sizes = [max([width, *(len(row[n]) for row in rows)]) for n, width in enumerate(widths)]
    lines = [gap.join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in rows]
    head = gap.join(cell.ljust(size) for cell, size in zip(heads, sizes, strict=True)).rstrip()
    return "\n".join([head, *lines])
