# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch over eAPI: one connection for all requests, and changes that take themselves back.

pyeapi speaks the protocol. What it does not do is done here: certificates are verified unless told
otherwise, the connection is kept between requests, and an error is a sentence with a remedy.
"""

from __future__ import annotations

import functools
import http.client
import logging
import math
import secrets
import ssl
import time
import typing as t
from dataclasses import dataclass, field

from ..reconcile import SentenceError
from .config import without_secrets

try:
    from pyeapi import eapilib
except ImportError:
    HAS_PYEAPI = False
else:
    HAS_PYEAPI = True
    # It writes requests, with whatever secrets are in them, and tracebacks of what becomes a sentence here.
    logging.getLogger(eapilib.__name__).disabled = True

_PAUSE = 0.5  # seconds between two tries to reach a switch that was just changed
_LEFT = 5  # seconds of the commit timer that are left for the confirmation itself
_CONFIRMED = 2  # commands that were carried out before it came to saving: enable, and the commit
_NO_SUCH_COMMAND, _UNAUTHORISED = 1002, 1005

Command: t.TypeAlias = "str | dict[str, str]"


@dataclass(frozen=True)
class Connection:
    """Where a switch is and who asks; ``timeout`` is in seconds."""

    host: str
    port: int | None = None
    https: bool = True
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    enable_password: str | None = field(default=None, repr=False)
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    timeout: float = 30.0

    @property
    def address(self) -> str:
        """For sentences."""
        return "%s:%d" % (self.host, self.port or (443 if self.https else 80))


class EosError(SentenceError):
    """The switch could not be asked, or refused.

    ``lost`` when nobody knows whether it did what it was asked; ``refused`` is the place of the command that it
    would not carry out, and those before it were; ``reason`` is the shortest way to say what happened; and
    ``changed`` tells that the configuration is another now all the same.
    """

    def __init__(
        self,
        sentence: str,
        lost: bool = False,
        reason: str = "",
        refused: int | None = None,
        changed: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.lost = lost
        self.changed = changed
        self.reason = reason or sentence
        self.refused = refused


class Switch:
    """Requests to one switch; nothing is connected before the first."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = 0
        self._channel: t.Any = None

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext | None:
        """For all its connections. Raises EosError."""
        return _context(self.connection) if self.connection.https else None

    def close(self) -> None:
        """Let the connection go."""
        if self._channel is not None:
            self._channel.transport.end()
            self._channel = None

    def show(self, *commands: str) -> list[str]:
        """What these commands print, in one request. Raises EosError."""
        return [item["output"] for item in self._run(list(commands), "text")]

    def facts(self, *commands: str) -> list[dict[str, t.Any]]:
        """What these commands tell as data, in one request. Raises EosError."""
        return self._run(list(commands), "json")

    def configure(self, commands: t.Sequence[str], confirm: float, save: bool, check_mode: bool) -> str:
        """Change the configuration in one session, and give the difference that this made, or would make.

        With ``confirm`` (seconds) the change is confirmed over a connection of its own, and the switch
        takes it back by itself when that does not come in time. When anything goes wrong, nothing stays
        behind. Raises EosError.
        """
        session = "openipu-%s" % secrets.token_hex(4)
        try:
            diff = self._fill(session, commands)
            if check_mode or not diff.strip():
                self._run(["configure session %s" % session, "abort"], "text")
                return diff
        except EosError as error:
            raise self._abandoned(session, error) from None
        self._commit(session, confirm)
        if confirm:
            self._confirm(session, confirm, save)
        elif save:
            self._save()
        return diff

    def _fill(self, session: str, commands: t.Sequence[str]) -> str:
        asked = ["configure session %s" % session, *commands, "show session-config diffs"]
        return str(self._run(asked, "text")[-1]["output"])

    def _commit(self, session: str, confirm: float) -> None:
        minutes, seconds = divmod(math.ceil(confirm), 60)
        timer = "commit timer %02d:%02d:%02d" % (*divmod(minutes, 60), seconds) if confirm else "commit"
        deadline = time.monotonic() + confirm + _LEFT
        try:
            self._run(["configure session %s" % session, timer], "text")
        except EosError as error:
            if not error.lost:
                raise self._abandoned(session, error) from None
            raise self._taken_back(session, error, "fell silent when it was changed", deadline, bool(confirm)) from None

    def _confirm(self, session: str, confirm: float, save: bool) -> None:
        """Over a fresh connection, as the next administrator would come."""
        start = time.monotonic()
        deadline = start + max(confirm - _LEFT, confirm / 2)
        commands = ["configure session %s commit" % session, *(["write memory"] if save else [])]
        lost = False
        self.close()
        while True:
            try:
                self._run(commands, "text", timeout=self._until(deadline))
            except EosError as error:
                self.close()
                if error.refused == _CONFIRMED:
                    raise self._unsaved(error) from None
                # It was confirmed before, and only the answer was lost.
                if lost and error.refused is not None and self._state(session) == "completed":
                    if save:
                        self._save()
                    return
                lost = lost or error.lost
                if not error.lost or time.monotonic() + _PAUSE > deadline:
                    what = "was changed and could not be asked to keep that"
                    raise self._taken_back(session, error, what, start + confirm + _LEFT, True) from None
                time.sleep(_PAUSE)
            else:
                return

    def _save(self) -> None:
        try:
            self._run(["write memory"], "text")
        except EosError as error:
            raise self._unsaved(error) from None

    def _unsaved(self, cause: EosError) -> EosError:
        return EosError(
            "%s was changed and could not save that (%s): until somebody does with 'write memory', it starts with "
            "its old configuration." % (self.connection.address, cause.reason.rstrip(".")),
            changed=True,
        )

    def _until(self, deadline: float) -> float:
        """How long a request may take that has to be over by then; a second at least."""
        return max(1.0, min(self.connection.timeout, deadline - time.monotonic()))

    def _state(self, session: str) -> str:
        sessions: dict[str, t.Any] = self.facts("show configuration sessions")[0]["sessions"]
        return str(sessions.get(session, {}).get("state", ""))

    def _abandoned(self, session: str, cause: EosError) -> EosError:
        """Leave no session behind that was not committed, as far as the switch can be reached."""
        self.close()
        try:
            self._run(["configure session %s abort" % session], "text")
        except EosError as error:
            if cause.lost and error.lost:
                cause.sentence += " A session %s may be left on it: end it with 'configure session %s abort'." % (
                    session,
                    session,
                )
        return cause

    def _taken_back(self, session: str, cause: EosError, what: str, deadline: float, timed: bool) -> EosError:
        """Have a commit taken back that may or may not have come about, and say what became of it.

        The switch does so by itself when its timer runs out, and may well be out of reach until then.
        """
        fate, changed = "and takes the change back by itself", False
        while True:
            self.close()
            try:
                self._run(["configure session %s abort" % session], "text", timeout=self._until(deadline))
                fate = "and the change was taken back"
            except EosError as error:
                if error.lost and time.monotonic() + _PAUSE < deadline:
                    time.sleep(_PAUSE)
                    continue
                if error.refused is not None:  # there is no such session any more
                    changed = not timed
                    fate = "and the change was taken back" if timed else "and the change was made all the same"
                elif not timed:
                    fate = "and nobody knows whether the change was made"
            self.close()
            return EosError(
                "%s %s (%s), %s: leave out what cuts off its management, or run it again if the network was at fault."
                % (self.connection.address, what, cause.reason.rstrip("."), fate),
                lost=True,
                changed=changed,
            )

    def _run(self, commands: t.Sequence[Command], format: str, timeout: float | None = None) -> list[t.Any]:
        if not HAS_PYEAPI:
            raise EosError("The Python library pyeapi is missing on the host of the task: pip install pyeapi.")
        if self._channel is None:
            self._channel = _channel(self.connection, self._tls)
        transport = self._channel.transport
        transport.timeout = timeout or self.connection.timeout
        enable: Command = "enable"
        if self.connection.enable_password:
            enable = {"cmd": "enable", "input": self.connection.enable_password}
        self.requests += 1
        try:
            return list(self._channel.execute([enable, *commands], encoding=format)["result"][1:])
        except eapilib.CommandError as error:
            raise self._refusal(error, ["enable", *commands]) from None
        except eapilib.ConnectionError as error:
            raise self._unreachable(error) from None
        except (http.client.HTTPException, UnicodeError) as error:
            raise EosError(self._no_eapi(str(error) or type(error).__name__), lost=True) from None

    def _refusal(self, error: t.Any, commands: t.Sequence[Command]) -> EosError:
        """The command that was refused, by the number of answers before it, and what the switch says of it."""
        index = max(len(error.output or [None]) - 1, 0)
        command = commands[index] if index < len(commands) else commands[-1]
        said = error.error_text
        if error.output and isinstance(error.output[-1], dict) and error.output[-1].get("errors"):
            said = " ".join(error.output[-1]["errors"])
        said = said.strip().rstrip(".")
        remedy = {
            _NO_SUCH_COMMAND: "it knows no such command or value; change the option that asks for it, or leave it out",
            _UNAUTHORISED: "%s may not do that; use another username" % (self.connection.username or "its user"),
        }.get(int(error.error_code), "nothing was changed")
        sentence = "%s refused '%s': %s (%s)." % (
            self.connection.address,
            without_secrets(command if isinstance(command, str) else command["cmd"]),
            without_secrets(said),
            remedy,
        )
        return EosError(sentence, reason=without_secrets(said), refused=index)

    def _unreachable(self, error: t.Any) -> EosError:
        cause = self._channel.socket_error
        address, connection = self.connection.address, self.connection
        if isinstance(cause, ssl.SSLCertVerificationError):
            return EosError(
                "The certificate of %s cannot be trusted (%s): give its CA with ca_path."
                % (address, (cause.verify_message or str(cause)).rstrip("."))
            )
        if isinstance(cause, ssl.SSLError):
            return EosError(
                "%s and we found no way to speak TLS (%s): check port and client_cert."
                % (address, (cause.reason or str(cause)).lower().replace("_", " "))
            )
        if isinstance(cause, TimeoutError):
            return EosError(
                "%s did not answer within %g seconds: check that it is up, or allow more with timeout."
                % (address, connection.timeout),
                lost=True,
                reason="no answer within %g seconds" % self._channel.transport.timeout,
            )
        if isinstance(cause, OSError):
            return EosError(
                "Cannot reach %s (%s): check host and port, and that eAPI is on (management api http-commands)."
                % (address, (cause.strerror or str(cause)).lower()),
                lost=True,
                reason=(cause.strerror or str(cause)).lower(),
            )
        if "unable to connect" in str(error.message):
            return EosError(self._no_eapi("its answer is no JSON"), lost=True)
        return EosError(
            "%s does not let %s in: check username and password." % (address, connection.username or "anybody unnamed")
        )

    def _no_eapi(self, why: str) -> str:
        return "%s is not the eAPI of a switch (%s): check host and port." % (self.connection.address, why)


def _channel(connection: Connection, context: ssl.SSLContext | None) -> t.Any:
    """pyeapi's connection, on a transport that is kept open.

    Without a username it sends no login at all, for otherwise the switch would not look at a certificate.
    """
    channel = eapilib.EapiConnection()
    if connection.username:
        channel.authentication(connection.username, connection.password or "")
    where: dict[str, t.Any] = {"host": connection.host, "timeout": connection.timeout}
    if context:
        channel.transport = _Secure("/command-api", port=connection.port or 443, context=context, **where)
    else:
        channel.transport = _Plain("/command-api", port=connection.port or 80, **where)
    return channel


def _context(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.ca_path)
        if not connection.validate_certs:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key)
    except OSError as error:  # of a file, or of what is in it
        files = [path for path in (connection.ca_path, connection.client_cert, connection.client_key) if path]
        raise EosError(
            "Cannot use the certificates for %s in %s (%s): check the files."
            % (connection.address, ", ".join(files), (error.strerror or str(error)).lower())
        ) from None
    return context


if HAS_PYEAPI:

    class _Kept:
        """A transport that pyeapi closes after every request, and that stays open all the same.

        It does close when the request failed, and when the switch says so.
        """

        _over = True

        def putrequest(self, *args: t.Any, **more: t.Any) -> None:
            self._over = True
            super().putrequest(*args, **more)  # type: ignore[misc]

        def getresponse(self) -> http.client.HTTPResponse:
            response: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
            self._over = response.will_close
            return response

        def close(self) -> None:
            if self._over:
                super().close()  # type: ignore[misc]

        def end(self) -> None:
            self._over = True
            self.close()

    class _Plain(_Kept, eapilib.HttpConnection):  # type: ignore[misc]
        pass

    class _Secure(_Kept, eapilib.HttpsConnection):  # type: ignore[misc]
        pass
