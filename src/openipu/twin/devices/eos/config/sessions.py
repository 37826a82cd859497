# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration sessions: candidate configurations that are committed, confirmed or rolled back.

States and JSON keys are those of EOS up to 4.31: `pending`, `pendingCommitTimer`, `completed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.config.tree import Config, diff

MAX_PENDING = 5
MAX_COMPLETED = 1


@dataclass
class Session:
    """One session.

    Args:
        name: its name.
        config: candidate configuration.
        user: user who opened it.
        state: `pending`, `pendingCommitTimer` or `completed`.
        before: running configuration before the commit, until the commit is confirmed.
        completed: time of the commit in seconds since the epoch; 0 before it.
        deadline: end of the commit timer in seconds since the epoch.
        commit_user: user who committed it.
    """

    name: str
    config: Config
    user: str
    state: str = "pending"
    before: Config | None = None
    completed: float = 0.0
    deadline: float = 0.0
    commit_user: str = ""


class Sessions:
    """Running configuration of a switch and its configuration sessions.

    Args:
        running: initial configuration.
        clock: time in seconds since the epoch.
        booted: start of the switch; EOS gives deadlines relative to it.
    """

    def __init__(self, running: Config, clock: Callable[[], float], booted: float = 0.0) -> None:
        self.running = running
        self.clock = clock
        self.booted = booted
        self.on_change: Callable[[], None] = _nothing  # called before and after each change of `running`
        self.max_pending = MAX_PENDING
        self._sessions: dict[str, Session] = {}
        self._unnamed = 0

    def enter(self, name: str, user: str) -> Session:
        """Return the session of this name, opened if necessary; an empty name opens a new session.

        Raises:
            CliError: when the maximum number of sessions is pending, or the session is completed.
        """
        self._unnamed += not name
        name = name or f"sess-{self._unnamed}"
        session = self._sessions.get(name)
        if session is None:
            if len(self.pending()) >= self.max_pending:
                raise CliError(
                    1000,
                    "Maximum number of pending sessions has been reached. Please commit or abort previous sessions "
                    "before creating a new one.",
                )
            session = self._sessions[name] = Session(name, self.running.copy(), user)
        _check_open(session, "enter")
        return session

    def pending(self) -> list[Session]:
        """Return the sessions that are neither committed nor aborted."""
        return [session for session in self._sessions.values() if session.state == "pending"]

    def unconfirmed(self) -> Session | None:
        """Return the session whose commit timer runs, or None."""
        return next((one for one in self._sessions.values() if one.state == "pendingCommitTimer"), None)

    def get(self, name: str) -> Session:
        """Return a session by name.

        Raises:
            CliError: when it does not exist.
        """
        if name not in self._sessions:
            raise CliError(1000, f"Session {name} does not exist")
        return self._sessions[name]

    def commit(self, session: Session, user: str, timer: float | None = None) -> None:
        """Make a session the running configuration, or confirm it while its timer runs.

        Args:
            session: session to commit.
            user: user who commits.
            timer: seconds after which the commit is rolled back unless the session is committed again; None for
                no rollback.

        Raises:
            CliError: while the timer of another session runs, or when the session is completed.
        """
        _check_open(session, "commit")
        unconfirmed = self.unconfirmed()
        if unconfirmed is not None and unconfirmed is not session:
            raise CliError(
                1000, f"Cannot commit session {session.name}: commit timer of session {unconfirmed.name} runs"
            )
        if unconfirmed is None:
            session.before = self.running
            self.replace(session.config.copy())
            session.completed, session.commit_user = self.clock(), user
        if timer is None:
            session.state, session.before = "completed", None
            self._delete_completed()
        else:
            session.state, session.deadline = "pendingCommitTimer", self.clock() + timer

    def abort(self, session: Session) -> None:
        """Delete a session that is not completed; roll back its commit if its timer runs.

        Raises:
            CliError: when it is completed.
        """
        _check_open(session, "abort")
        self.delete(session)

    def delete(self, session: Session) -> None:
        """Delete a session in any state; roll back its commit if its timer runs."""
        if session.before is not None:
            self.replace(session.before)
            session.before = None
        self._sessions.pop(session.name, None)

    def replace(self, config: Config) -> None:
        """Make a configuration the running one at once (`configure replace`)."""
        self.on_change()
        self.running = config
        self.on_change()

    def expire(self) -> bool:
        """Roll back a commit whose timer has expired; return whether there was one."""
        session = self.unconfirmed()
        if session is None or self.clock() < session.deadline:
            return False
        self.abort(session)
        return True

    def _delete_completed(self) -> None:
        done = [session for session in self._sessions.values() if session.state == "completed"]
        for session in sorted(done, key=lambda one: one.completed)[:-MAX_COMPLETED]:
            del self._sessions[session.name]

    def diffs(self, session: Session) -> str:
        """Return the difference of a session to the running configuration (`show session-config diffs`)."""
        return diff(self.running, session.config, "system:/running-config", f"session:/{session.name}-session-config")

    def tree(self) -> dict[str, Any]:
        """Return the JSON form of `show configuration sessions`."""
        return {
            "sessions": {session.name: self._one(session) for session in self._sessions.values()},
            "maxSavedSessions": MAX_COMPLETED,
            "maxOpenSessions": self.max_pending,
            "mergeOnCommit": False,
            "saveToStartupConfigOnCommit": False,
        }

    def _one(self, session: Session) -> dict[str, Any]:
        found: dict[str, Any] = {"state": session.state}
        if session.completed:
            found["completedTime"] = session.completed
        if session.state == "pendingCommitTimer":
            found["commitBy"] = session.deadline - self.booted
        return found | {"commitUser": session.commit_user, "description": "", "instances": {}}

    def all(self) -> list[Session]:
        """Return all sessions, oldest first."""
        return list(self._sessions.values())


def _nothing() -> None:
    """Do nothing."""


def _check_open(session: Session, verb: str) -> None:
    if session.state == "completed":
        raise CliError(1000, f"Cannot {verb} session {session.name} (session already completed)")
