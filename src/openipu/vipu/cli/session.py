# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of one command: its controller, its subject, its result."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.settings import Settings

if TYPE_CHECKING:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client


# The client's sentences name options as modules have them.
_OPTIONS = re.compile(r"\b(ca_path|client_cert|client_key|api_user_id|api_access_key)\b")


class Failed(Exception):
    """Why a command failed, in one sentence; for what is wrong on this side of the wire."""


class Session:
    """What commands work with. Close it, or use it as a context manager."""

    def __init__(self, settings: Settings, verb: str, noun: str, id: str | None = None, timeout: float = 30.0) -> None:
        """Nothing is opened yet. ``timeout`` in seconds, for each call."""
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
        """The client of the controller; raises ConfigError."""
        from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client

        return Client(self.settings.connection(timeout=self._timeout))

    def call(self, service: str, method: str, request: Any, timeout: float = 0) -> Any:
        """Call ``user``, ``admin``, ``tenant`` or ``version``; raises VipuError."""
        stub = getattr(self.client, service)
        return self.client.call(getattr(stub, method), request, self.action, timeout)

    @property
    def json(self) -> bool:
        """Whether the output is JSON."""
        return self.settings.json

    @property
    def action(self) -> str:
        """What is tried, as sentences say it."""
        return f"{self._verb} {self._noun}" + (f" {self._id!r}" if self._id else "")

    def show(self, value: Any, text: str) -> None:
        """Print an answer: the value as JSON, or the text."""
        click.echo(output.as_json(value) if self.json else text)

    def about(self, id: str) -> None:
        """Speak of this in result lines, where it is not the object that the command was given."""
        self._id = id

    def complain(self, reason: str) -> NoReturn:
        """End with status 1 and the line for people, after an answer that says it all to programs."""
        click.echo(output.failure(self._subject, reason), err=True)
        raise click.exceptions.Exit(1)

    def succeed(self, line: str = "", **more: Any) -> None:
        """Print the result of what was done; ``more`` is for JSON."""
        line = line or output.success(self._subject)
        self.show({**self._json_subject, "result": "success", **more}, line)

    def fail(self, sentence: str, code: str = "") -> None:
        """Print why it was not done: the line for people on standard error, JSON on standard output."""
        # The line names the command and its subject already.
        subject = f"{self._noun} {self._id!r}" if self._id else self._noun
        sentence = _OPTIONS.sub(lambda option: "--" + option[0].replace("_", "-"), sentence)
        reason = re.sub(rf"^Cannot [^:']*{re.escape(subject)}: ", "", sentence)
        if self.json:
            click.echo(output.as_json({**self._json_subject, "result": "failed", "reason": reason, "code": code}))
        click.echo(output.failure(self._subject, reason), err=True)

    @property
    def _subject(self) -> str:
        return output.subject(self._verb, self._noun, self._id)

    @property
    def _json_subject(self) -> dict[str, Any]:
        return {"command": f"{self._verb} {self._noun}", "id": self._id}
