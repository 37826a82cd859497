# SPDX-License-Identifier: GPL-3.0-or-later
"""Session of one command: controller, subject and result."""

from __future__ import annotations

import re
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.settings import Settings

if TYPE_CHECKING:
    from openipu.shared.vipu.client import Client

PROGRESS_SECONDS = 5  # between two notes of a command that waits

# Messages of client and controller name the options of Ansible modules.
_OPTIONS = re.compile(
    r"\b(ca_path|client_cert|client_key|insecure_network|api_user_id|api_access_key|(?<=\buse )force)\b"
)


class VipuCommandError(Exception):
    """Raised when a command fails on the client's side."""

    error_code = "OPU701"


def with_options(text: str) -> str:
    """Return a text with the options of command lines in place of those of modules."""
    text = text.replace("Check host and port", "Check --api-host and --api-port")
    return _OPTIONS.sub(lambda option: "--" + option[0].replace("_", "-"), text)


class Session:
    """Session of one command. Use it as a context manager."""

    def __init__(self, settings: Settings, verb: str, noun: str, id: str | None = None, timeout: float = 30.0) -> None:
        """Prepare a session; the first call connects. ``timeout``: seconds for each call."""
        self.settings = settings
        self._verb, self._noun, self._id = verb, noun, id
        self._timeout = timeout

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        if "client" in self.__dict__:
            self.client.close()

    @cached_property
    def client(self) -> Client:
        """Client of the controller. Raises ConfigError."""
        from openipu.shared.vipu.client import Client

        return Client(self.settings.connection(timeout=self._timeout))

    def call(self, service: str, method: str, request: Any, timeout: float = 0) -> Any:
        """Call a method of service ``user``, ``admin``, ``tenant`` or ``version``. Raises VipuError."""
        stub = getattr(self.client, service)
        return self.client.call(getattr(stub, method), request, self.action, timeout)

    @property
    def json(self) -> bool:
        """Return whether the output is JSON."""
        return self.settings.json

    @property
    def action(self) -> str:
        """Action of the command, for messages."""
        return f"{self._verb} {self._noun}" + (f" {self._id!r}" if self._id else "")

    def show(self, value: Any, text: str) -> None:
        """Print the value as JSON, or the text."""
        click.echo(output.as_json(value) if self.json else text)

    def set_subject(self, id: str) -> None:
        """Set the subject of result lines, when it is not the id in the command."""
        self._id = id

    def fail_after_output(self, reason: str, subject: str | None = None) -> NoReturn:
        """Print a failure line and exit with status 1. The JSON output was printed before.

        ``subject`` replaces the subject of the command; if it is empty, no line is printed.
        """
        subject = self._subject if subject is None else subject
        if subject:
            click.echo(output.failure(subject, reason), err=True)
        raise click.exceptions.Exit(1)

    def succeed(self, line: str = "", addition: str = "", **more: Any) -> None:
        """Print the result of a success, or ``line`` in its place.

        ``addition``: text after the result. ``more``: further fields of the JSON output.
        """
        line = line or f"{output.success(self._subject)} {addition}".rstrip()
        self.show({**self._json_subject, "result": "success", **more}, line)

    def fail(self, message: str, error_code: str, code: str = "", hint: str = "", **more: Any) -> None:
        """Print a failure: the result line on standard error, JSON on standard output.

        ``error_code`` is a code of ``openipu.shared.errors``, ``code`` the name of a gRPC status code. ``hint``: end of
        the result line. ``more``: further fields of the JSON output.
        """
        # Drop "Cannot <verb> <object>: ", because the result line names both.
        subject = f"{self._noun} {self._id!r}" if self._id else self._noun
        reason = re.sub(rf"^Cannot [^:']*{re.escape(subject)}: ", "", with_options(message))
        if self.json:
            failure = {"result": "failed", "reason": reason, "code": code, "error_code": error_code}
            click.echo(output.as_json({**self._json_subject, **failure, **more}))
        end = f"{reason.removesuffix('.')}. {hint}" if hint else reason
        click.echo(output.failure(self._subject, end), err=True)

    @property
    def _subject(self) -> str:
        return output.subject(self._verb, self._noun, self._id)

    @property
    def _json_subject(self) -> dict[str, Any]:
        return {"command": f"{self._verb} {self._noun}", "id": self._id}


class Progress:
    """Notes of a command that waits, on standard error: standard output stays as scripts expect it.

    The first one appears after PROGRESS_SECONDS. With JSON output, there are none.
    """

    def __init__(self, session: Session) -> None:
        """Start to count the time."""
        self._silent = session.json
        self._started = self._last = monotonic()

    def note(self, text: str) -> None:
        """Print a text with the elapsed time, unless the last one was printed a moment ago."""
        now = monotonic()
        if self._silent or now - self._last < PROGRESS_SECONDS:
            return
        self._last = now
        click.echo(f"Note: {text} ({now - self._started:.0f} s).", err=True)
