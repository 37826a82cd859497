# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of programs: printed as ``Error OPU612: message``, with exit status 1."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from typing import IO, Any

import click

from openipu.process.arguments import Command
from openipu.shared.errors import ERRORS

INVALID_OPTION = "OPU619"
_ENDPOINT_NOT_AVAILABLE = "OPU615"
_SYSTEM_CALL_FAILED = "OPU620"
_BIND_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)


class EndpointError(OSError):
    """Raised when a program cannot use an address, port, socket or network interface, with a message for users."""

    error_code = _ENDPOINT_NOT_AVAILABLE


class ProgramError(click.ClickException):
    """Error with a stable code, see ``openipu.shared.errors``."""

    def __init__(self, message: str, error_code: str = INVALID_OPTION) -> None:
        super().__init__(message)
        if error_code not in ERRORS:
            raise KeyError(error_code)
        self.error_code = error_code

    def show(self, file: IO[Any] | None = None) -> None:
        """Print code and message."""
        click.echo(f"Error {self.error_code}: {self.format_message()}", file=file, err=file is None)


def program_error(error: BaseException) -> ProgramError:
    """Return the error of a program for an exception. An exception without a code is an invalid option."""
    return ProgramError(str(error), getattr(error, "error_code", None) or _code(error))


class Program(Command, click.Group):
    """Command group that reports output which cannot be written, for example to a full disk.

    Like all of its commands, it rejects arguments and environment variables that are no text.
    """

    command_class = Command

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if not is_output_error(error):
                raise
            _discard_output()
            reason = str(error.strerror).lower()
            message = f"Cannot write the output: {reason}. If the command made changes, they remain."
            with contextlib.suppress(OSError):  # standard error may be on the same disk
                ProgramError(message, _SYSTEM_CALL_FAILED).show()
            sys.exit(1)


def is_output_error(error: OSError) -> bool:
    """Return whether ``click.echo`` raised an error, so that it is one of the output and not of another file."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _discard_output() -> None:
    """Drop the rest of the output, which Python would write at the exit and report as an exception."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _code(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return INVALID_OPTION
    # EACCES has a file name unless it comes from bind: only root may use ports below 1024.
    bind = error.errno in _BIND_ERRORS or (error.errno == errno.EACCES and error.filename is None)
    return _ENDPOINT_NOT_AVAILABLE if bind else _SYSTEM_CALL_FAILED
