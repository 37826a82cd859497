# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failover of a client between several controllers, of which one leads."""

from __future__ import annotations

import copy
import time
import typing as t

from ..errors import ERRORS

# Trailing metadata of our controller with the stable code of an error.
ERROR_CODE_METADATA = "openipu-error-code"
# Trailing metadata of a controller that does not lead, with the address of the one that does.
LEADER_METADATA = "openipu-leader"
NOT_LEADER = "OPU624"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds after all controllers were called
READS = ("Get", "List", "Count", "Check", "Watch")  # begin of the names of calls that change nothing
_NO_RESPONSE = ("UNAVAILABLE", "DEADLINE_EXCEEDED")  # the host may be down
_OWN_CANCELLATIONS = ("Locally cancelled", "Channel closed")  # details of calls that this client ended
# Another program may listen on the address, or its controller needs another certificate.
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification", "is not in peer certificate")
_NOT_SENT = ("failed to connect", "Connection refused", "No route to host", "Network is unreachable", "connect: ")


def split(host: str, port: int) -> list[tuple[str, int]]:
    """Return hosts and ports of a comma-separated list of ``host`` or ``host:port``. A bare IPv6 address has no port.

    Raises ValueError for a port that is not a number.
    """
    found = []
    for part in filter(None, (part.strip() for part in host.split(","))):
        name, colon, number = part.rpartition(":")
        has_port = colon and (part.count(":") == 1 or name.endswith("]"))
        found.append((name, int(number)) if has_port else (part, port))
    return found or [(host, port)]


def was_cancelled(error: t.Any) -> bool:
    """Return whether the controller cancelled a call, for example because it stops."""
    return _was_cancelled(error.code().name, error.details() or "")


def _was_cancelled(code: str, details: str) -> bool:
    return code == "CANCELLED" and not any(sign in details for sign in _OWN_CANCELLATIONS)


def stable_code(error: t.Any) -> str:
    """Return the code that our controller sends with an error.

    Empty for other controllers, local errors, and codes that this release does not know.
    """
    metadata: t.Iterable[tuple[str, t.Any]] = getattr(error, "trailing_metadata", tuple)() or ()
    codes = (str(value) for key, value in metadata if key == ERROR_CODE_METADATA)
    return next((code for code in codes if code in ERRORS), "")


def may_be_made(code: str, details: str, error_code: str) -> bool:
    """Return whether a change may have been made, although its call ended with this error before its timeout.

    ``code`` is the name of the status code, ``error_code`` the stable code of our controller.
    """
    ended = code == "UNAVAILABLE" or _was_cancelled(code, details)
    return ended and not _was_not_made(code, details, error_code)


def _was_not_made(code: str, details: str, error_code: str) -> bool:
    """Return whether a controller that does not lead rejected a call, or none was reached."""
    return error_code == NOT_LEADER or (code == "UNAVAILABLE" and any(sign in details for sign in _NOT_SENT))


class Failover:
    """Choice of the controller to call."""

    def __init__(self, addresses: t.Sequence[str]) -> None:
        """``addresses``: at least one."""
        self._addresses = list(addresses)
        self._current = 0
        self._pause = _FIRST_PAUSE
        self._tried = 0  # since the last success
        self.untrusted = ""
        """Address whose certificate ended the last call, empty for other results."""

    @property
    def address(self) -> str:
        """Address of the controller to call now."""
        return self._addresses[self._current]

    def succeed(self) -> None:
        """Stay with this controller."""
        self._tried, self._pause, self.untrusted = 0, _FIRST_PAUSE, ""

    def fail(self, error: t.Any, method: str, deadline: float) -> bool:
        """Choose another controller after a failed call, and return whether to repeat the call there.

        A change is repeated only when it was surely not made: by a controller that does not lead, or that was not
        reached. A certificate that cannot be verified ends the call, so that it is noticed. ``deadline``: monotonic
        time after which nothing is repeated.
        """
        details = error.details() or ""
        self.untrusted = ""
        if len(self._addresses) < 2 or not (error.code().name in _NO_RESPONSE or was_cancelled(error)):
            return False
        metadata = {key: str(value) for key, value in error.trailing_metadata() or ()}
        leader = metadata.get(LEADER_METADATA, "")
        if any(sign in details for sign in _UNTRUSTED):
            self.untrusted = self.address
        if leader in self._addresses and leader != self.address:
            self._current = self._addresses.index(leader)
        else:
            self._current = (self._current + 1) % len(self._addresses)
        self._tried += 1
        if self.untrusted:
            return False
        not_made = _was_not_made(error.code().name, details, metadata.get(ERROR_CODE_METADATA, ""))
        if not (not_made or method.startswith(READS)):
            return False
        if time.monotonic() >= deadline:
            return False
        # No address has the leader, for example during an election. The call blocks, so this thread waits.
        if self._tried >= len(self._addresses):
            time.sleep(min(self._pause, max(deadline - time.monotonic(), 0)))
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True


class FailoverStub:
    """Stub of a service whose calls go to the present controller. ``find`` returns the stub there."""

    def __init__(self, find: t.Callable[[], t.Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> t.Any:
        """Return a method of the service."""

        def call(request: t.Any, **options: t.Any) -> t.Any:
            return getattr(self._find(), name)(request, **options)

        call.__name__ = name
        return call


class WatchSteps:
    """Steps of a stream of changes that continues at another controller. A step ends with its revision.

    The next controller sends an incomplete step again. With ``hold``, its replies are held back until it is complete.
    """

    def __init__(self, request: t.Any, hold: bool) -> None:
        """``request``: the WatchRequest of the caller, which stays unchanged."""
        self._request, self._hold = copy.deepcopy(request), hold
        self._held: list[t.Any] = []

    def request(self) -> t.Any:
        """Return the request that continues after the last complete step."""
        self._held = []
        return self._request

    def add(self, reply: t.Any) -> list[t.Any]:
        """Return the replies of the step that this one completes. With ``hold``, there are none before its end."""
        self._held.append(reply)
        if reply.revision:
            self._request.since_revision = reply.revision
        elif self._hold:
            return []
        found, self._held = self._held, []
        return found
