# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of a switch over eAPI: one connection for all requests, and commits with automatic rollback.

pyeapi implements the protocol. This module adds certificate verification (on by default) and error messages with a
remedy, and ``channel`` a persistent connection.
"""

from __future__ import annotations

import functools
import http.client
import math
import secrets
import ssl
import time
import typing as t
from dataclasses import dataclass, field
from importlib.util import find_spec

from ..reconcile import UserError
from .channel import open_channel
from .running_config import without_secrets

HAS_PYEAPI = find_spec("pyeapi") is not None
_PAUSE = 0.5  # seconds between attempts to reach a switch after a change
_MARGIN = 5  # seconds of the commit timer reserved for the confirmation request
_CONFIRMED = 2  # commands before the save: enable and the commit
_NO_SUCH_COMMAND, _UNAUTHORISED = 1002, 1005
_DIFF = "show session-config diffs"

Command: t.TypeAlias = "str | dict[str, str]"


@dataclass(frozen=True)
class Connection:
    """Address, credentials and TLS settings of a switch; ``timeout`` is in seconds."""

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
        """Host and port for messages."""
        return "%s:%d" % (self.host, self.port or (443 if self.https else 80))


class EosError(UserError):
    """Raised when a request fails.

    Args:
        message: error message.
        lost: whether the response is missing, so that the outcome is unknown.
        reason: short cause, for use in other messages.
        rejected: index of the command that the switch rejected, after it ran the previous ones; None for other errors.
        changed: whether the configuration was changed nevertheless.
    """

    error_code = "OPU400"

    def __init__(
        self,
        message: str,
        lost: bool = False,
        reason: str = "",
        rejected: int | None = None,
        changed: bool = False,
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.changed = changed
        self.reason = reason or message
        self.rejected = rejected


class SessionConflict(EosError):
    """Raised when another session may have been committed at the same time. Nothing of this one remains."""


class Switch:
    """Client of one switch. It connects at the first request."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = 0
        self._channel: t.Any = None

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext | None:
        """TLS context of all connections. Raises EosError."""
        return _context(self.connection) if self.connection.https else None

    def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.transport.disconnect()
            self._channel = None

    def show(self, *commands: str) -> list[str]:
        """Run commands in one request and return their text output. Raises EosError."""
        return [item["output"] for item in self._run(list(commands), "text")]

    def show_json(self, *commands: str) -> list[dict[str, t.Any]]:
        """Run commands in one request and return their JSON output. Raises EosError."""
        return self._run(list(commands), "json")

    def configure(self, commands: t.Sequence[str], confirm: float, save: bool, check_mode: bool) -> str:
        """Change the configuration in one session and return the diff; in check mode only return the diff.

        With ``confirm`` (seconds) the change is confirmed over a new connection. The switch rolls it back unless it
        is confirmed in time. After an error no change and no session remain, as far as possible. Raises EosError;
        SessionConflict when another session was committed first, so that the commands may be outdated.
        """
        session = "openipu-%s" % secrets.token_hex(4)
        try:
            diff = self._stage(session, commands)
            if check_mode or not diff.strip():
                self._run(["configure session %s" % session, "abort"], "text")
                return diff
        except EosError as error:
            raise self._discard_session(session, error) from None
        self._commit(session, confirm, diff)
        if confirm:
            self._confirm(session, confirm, save)
        elif save:
            self._save()
        return diff

    def _stage(self, session: str, commands: t.Sequence[str]) -> str:
        request = ["configure session %s" % session, *commands, _DIFF]
        return str(self._run(request, "text")[-1]["output"])

    def _commit(self, session: str, confirm: float, diff: str) -> None:
        """Commit a session. ``diff`` is its difference to the running configuration when it was staged.

        A session that is committed replaces the whole configuration. So a change that another session made since
        then would be lost. With ``confirm``, the commit is rolled back in that case.
        """
        minutes, seconds = divmod(math.ceil(confirm), 60)
        timer = "commit timer %02d:%02d:%02d" % (*divmod(minutes, 60), seconds) if confirm else "commit"
        deadline = time.monotonic() + confirm + _MARGIN
        try:
            printed = self._run(["configure session %s" % session, _DIFF, timer], "text")[1]["output"]
        except EosError as error:
            if not error.lost:
                cause = self._discard_session(session, error)
                if error.rejected is not None and self._no_timer_runs(confirm or self.connection.timeout):
                    raise SessionConflict(cause.message) from None  # the timer of another session may have ended
                raise cause from None
            raise self._roll_back(session, error, "commit", deadline, bool(confirm)) from None
        if confirm and printed != diff:
            conflict = SessionConflict(
                "Cannot commit the configuration of %s: other sessions were committed at the same time. Nothing was "
                "changed. Run the task again." % self.connection.address
            )
            raise self._discard_session(session, conflict)

    def _no_timer_runs(self, seconds: float) -> bool:
        """Wait until no commit timer runs. Return False if one still runs after ``seconds``."""
        deadline = time.monotonic() + seconds
        while any(one["state"] == "pendingCommitTimer" for one in self._sessions().values()):
            if time.monotonic() + _PAUSE > deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def _confirm(self, session: str, confirm: float, save: bool) -> None:
        """Confirm the commit over a new connection, which proves that the switch can still be managed."""
        start = time.monotonic()
        deadline = start + max(confirm - _MARGIN, confirm / 2)
        commands = ["configure session %s commit" % session, *(["write memory"] if save else [])]
        lost = False
        self.close()
        while True:
            try:
                self._run(commands, "text", timeout=self._time_left(deadline))
            except EosError as error:
                self.close()
                if error.rejected == _CONFIRMED:
                    raise self._unsaved(error) from None
                # An earlier attempt has confirmed it, and only its response was lost.
                if lost and error.rejected is not None and self._state(session) == "completed":
                    if save:
                        self._save()
                    return
                lost = lost or error.lost
                if not error.lost or time.monotonic() + _PAUSE > deadline:
                    raise self._roll_back(session, error, "confirm", start + confirm + _MARGIN, True) from None
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
            "Cannot save the configuration of %s: %s. The running configuration was changed, the startup configuration "
            "was not. Run 'write memory' on the switch." % (self.connection.address, cause.reason.rstrip(".")),
            changed=True,
        )

    def _time_left(self, deadline: float) -> float:
        """Return the timeout of a request that must end at ``deadline``; at least one second."""
        return max(1.0, min(self.connection.timeout, deadline - time.monotonic()))

    def _state(self, session: str) -> str:
        return str(self._sessions().get(session, {}).get("state", ""))

    def _sessions(self) -> dict[str, t.Any]:
        return dict(self.show_json("show configuration sessions")[0]["sessions"])

    def _discard_session(self, session: str, cause: EosError) -> EosError:
        """Abort an uncommitted session, if the switch can be reached, and return the cause for raising."""
        self.close()
        try:
            self._run(["configure session %s abort" % session], "text")
        except EosError as error:
            if cause.lost and error.lost:
                remedy = (
                    " Session '%(name)s' may remain on the switch: delete it with 'configure session %(name)s abort'."
                )
                cause.message += remedy % {"name": session}
        return cause

    def _roll_back(self, session: str, cause: EosError, verb: str, deadline: float, timed: bool) -> EosError:
        """Roll back a commit with unknown outcome, and return an error that states the result.

        The switch itself rolls back when its commit timer expires, and may be unreachable until then.
        """
        result, changed = "The switch rolls back the change when its commit timer expires", False
        while True:
            self.close()
            try:
                self._run(["configure session %s abort" % session], "text", timeout=self._time_left(deadline))
                result = "The change was rolled back"
            except EosError as error:
                if error.lost and time.monotonic() + _PAUSE < deadline:
                    time.sleep(_PAUSE)
                    continue
                if error.rejected is not None:  # the session no longer exists
                    changed = not timed
                    result = "The change was rolled back" if timed else "The change was committed nevertheless"
                elif not timed:
                    result = "It is unknown whether the change was committed"
            self.close()
            return EosError(
                "Cannot %s the configuration of %s: %s. %s. Omit settings that cut off its management, or run the task "
                "again if the network failed." % (verb, self.connection.address, cause.reason.rstrip("."), result),
                lost=True,
                changed=changed,
            )

    def _run(self, commands: t.Sequence[Command], format: str, timeout: float | None = None) -> list[t.Any]:
        if not HAS_PYEAPI:
            raise EosError(
                "Cannot connect to %s: the Python library pyeapi is missing on the host of the task. Install it with "
                "'pip install pyeapi'." % self.connection.address
            )
        from pyeapi import eapilib

        if self._channel is None:
            connection = self.connection
            login = (connection.username, connection.password or "") if connection.username else None
            self._channel = open_channel(connection.host, connection.port, connection.timeout, self._tls, login)
        transport = self._channel.transport
        transport.timeout = timeout or self.connection.timeout
        enable: Command = "enable"
        if self.connection.enable_password:
            enable = {"cmd": "enable", "input": self.connection.enable_password}
        self.requests += 1
        try:
            return list(self._channel.execute([enable, *commands], encoding=format)["result"][1:])
        except eapilib.CommandError as error:
            raise self._rejection(error, ["enable", *commands]) from None
        except eapilib.ConnectionError as error:
            raise self._unreachable(error) from None
        except (http.client.HTTPException, UnicodeError) as error:
            raise self._no_eapi(str(error) or type(error).__name__) from None

    def _rejection(self, error: t.Any, commands: t.Sequence[Command]) -> EosError:
        """Return the error for a rejected command; the number of results before it is its index."""
        index = max(len(error.output or [None]) - 1, 0)
        command = commands[index] if index < len(commands) else commands[-1]
        reason = error.error_text
        if error.output and isinstance(error.output[-1], dict) and error.output[-1].get("errors"):
            reason = " ".join(error.output[-1]["errors"])
        reason = without_secrets(reason.strip().rstrip("."))
        remedy = {
            _NO_SUCH_COMMAND: "The switch has no such command or value: change or omit the option that sets it.",
            _UNAUTHORISED: "%s is not permitted to run it. Set username to another user." % self._user(),
        }.get(int(error.error_code), "Nothing was changed.")
        message = "Cannot run '%s' on %s: %s. %s" % (
            without_secrets(command if isinstance(command, str) else command["cmd"]),
            self.connection.address,
            reason,
            remedy,
        )
        return EosError(message, reason=reason, rejected=index)

    def _user(self) -> str:
        username = self.connection.username
        return "User '%s'" % username if username else "The user of the certificate"

    def _unreachable(self, error: t.Any) -> EosError:
        cause = self._channel.socket_error
        address, connection = self.connection.address, self.connection
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = (cause.verify_message or str(cause)).rstrip(".")
            return EosError(
                "Cannot verify the certificate of %s: %s. Set ca_path to the file of its CA." % (address, reason),
                reason=reason,
            )
        if isinstance(cause, ssl.SSLError):
            reason = (cause.reason or str(cause)).lower().replace("_", " ")
            return EosError(
                "Cannot establish TLS with %s: %s. Check port and client_cert." % (address, reason), reason=reason
            )
        if isinstance(cause, TimeoutError):
            return EosError(
                "Cannot reach %s: no response within %g seconds. Check that it is up, or increase timeout."
                % (address, connection.timeout),
                lost=True,
                reason="no response within %g seconds" % self._channel.transport.timeout,
            )
        if isinstance(cause, OSError):
            return EosError(
                "Cannot reach %s: %s. Check host and port, and that eAPI is enabled (management api http-commands)."
                % (address, (cause.strerror or str(cause)).lower()),
                lost=True,
                reason=(cause.strerror or str(cause)).lower(),
            )
        if "unable to connect" in str(error.message):
            return self._no_eapi("the response is not JSON")
        return EosError(
            "Cannot log in to %s %s: authentication failed. Check username and password."
            % (address, "as '%s'" % connection.username if connection.username else "without username"),
            reason="authentication failed",
        )

    def _no_eapi(self, cause: str) -> EosError:
        message = "Cannot use the eAPI of %s: %s. Check host and port." % (self.connection.address, cause)
        return EosError(message, lost=True, reason=cause)


def _context(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.ca_path)
        if not connection.validate_certs:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key)
    except OSError as error:  # of a file or its content
        files = [path for path in (connection.ca_path, connection.client_cert, connection.client_key) if path]
        raise EosError(
            "Cannot load the certificates for %s from %s: %s. Check the files."
            % (connection.address, ", ".join(files), (error.strerror or str(error)).lower())
        ) from None
    return context
