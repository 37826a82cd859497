# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared parts of the command lines of the tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.process.background import ProcessError
from openipu.process.failures import program_error

_F = TypeVar("_F", bound=Callable[..., Any])


class Command(click.Command):
    """Command that prints a ``ProcessError`` as one message and exits with status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ProcessError as error:
            raise program_error(error) from None


class Group(click.Group):
    """Group of such commands."""

    command_class = Command


def state_dir(default: Path, content: str) -> Callable[[_F], _F]:
    """Return the option ``--state-dir``. ``content`` names the objects whose files are in the folder."""
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
        default=default,
        help=f"Folder for the files of {content}; deleted at the end.",
    )
