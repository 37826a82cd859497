# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments, environment variables and terminal input that no program can use.

Python decodes bytes that are no text to surrogates, which cannot be sent, stored or printed. And ranges of numbers
accept ``nan``. So all programs use ``Command``, or ``failures.Program`` for groups, which reject both.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource

_LONGEST = 200  # characters of an argument in a message
_LARGEST = 1e9  # of numbers, most of them seconds; gRPC has no timeouts above 292 years
_SECRETS = re.compile(r"--.*(access-key|community)")  # options whose values no message may have


class Command(click.Command):
    """Command that rejects values that are no text or too large, with one message and exit status 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Characters that its streams cannot encode or decode are escaped."""
        for stream in (sys.stdin, sys.stdout):
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors="backslashreplace")
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for those that cannot be used, and for environment variables."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if ctx.parent is None:
            for before, argument in zip(["", *args], args, strict=False):
                if not is_text(argument):
                    raise click.UsageError(f"Cannot use {_named(before, argument)}: {_reason()}.", ctx)
        rest = super().parse_args(ctx, args)
        for variable in self._used_variables(ctx):
            if not is_text(os.environ.get(variable, "")):  # its value may be a secret
                raise click.UsageError(f"Cannot use the environment variable '{variable}': {_reason()}.", ctx)
        for parameter in self.get_params(ctx):
            value = ctx.params.get(parameter.name or "")
            if isinstance(value, float):
                _check_number(value, ctx, parameter)
        return rest

    def _used_variables(self, ctx: click.Context) -> Iterator[str]:
        """Yield the names of the environment variables that may have set parameters."""
        for parameter in self.get_params(ctx):
            if ctx.get_parameter_source(parameter.name or "") is ParameterSource.ENVIRONMENT:
                names = parameter.envvar or ()
                yield from [names] if isinstance(names, str) else names
                yield f"{ctx.auto_envvar_prefix}_{parameter.name}".upper()


def _check_number(value: float, ctx: click.Context, parameter: click.Parameter) -> None:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.", ctx, parameter)
    if value > _LARGEST:
        raise click.BadParameter(f"{value} is too large. The limit is {_LARGEST:.0f}.", ctx, parameter)


def is_text(value: str) -> bool:
    """Return whether a value has no surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def escaped(value: str) -> str:
    r"""Return a value in printable form, with undecodable bytes as ``\xff``, and cut when it is long."""
    shown = "".join(char if char.isprintable() else _escape(char) for char in value[:_LONGEST])
    return shown if len(value) <= _LONGEST else f"{shown}…"


def _named(before: str, argument: str) -> str:
    """Return what a message calls an argument. ``before``: the argument before it, which may be its option."""
    option, equals, _ = argument.partition("=")
    for secret in (option if equals else "", before):
        if _SECRETS.fullmatch(secret) and is_text(secret):
            return f"the value of '{secret}'"
    return f"the argument '{escaped(argument)}'"


def _escape(char: str) -> str:
    return f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else ascii(char)[1:-1]


def _reason() -> str:
    return f"it is not {sys.getfilesystemencoding().upper()} text. Replace the bytes that are no characters"
