# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command lines of the tools have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.twin.processes import ProcessError

_F = TypeVar("_F", bound=Callable[..., Any])


class Command(click.Command):
    """Tells what is in the way as one sentence, with exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """As click does."""
        try:
            return super().invoke(ctx)
        except ProcessError as error:
            raise click.ClickException(str(error)) from None


class Group(click.Group):
    """Of such commands."""

    command_class = Command


def state_dir(default: Path, what: str) -> Callable[[_F], _F]:
    """The option ``--state-dir``: the folder of what runs, which goes with it."""
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
        default=default,
        help=f"The folder of {what}; removed at the end.",
    )
