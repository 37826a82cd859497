# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration sessions: candidates beside the running configuration, committed, confirmed or taken back.

States and JSON keys are those of EOS up to 4.31: `pending`, `pendingCommitTimer`, `completed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openipu.twin.eos.config import Config, diff
from openipu.twin.eos.grammar import CliError

MAX_PENDING = 5
MAX_COMPLETED = 1


@dataclass
class Session:
    """One session."""

    name: str
    config: Config
    user: str
    state: str = "pending"
    before: Config | None = None
    completed: float = 0.0
    deadline: float = 0.0
    commit_user: str = ""


class Sessions:
    """The running configuration of a switch and the sessions that would change it.

    Args:
        running: the configuration to begin with.
        clock: time in seconds since the epoch.
    """

    def __init__(self, running: Config, clock: Callable[[], float]) -> None:
        self.running = running
        self.clock = clock
        self.max_pending = MAX_PENDING
        self._sessions: dict[str, Session] = {}
        self._made = 0

    def enter(self, name: str, user: str) -> Session:
        """The session of that name, opened when there is none; without a name a new one.

        Raises:
            CliError: when there are as many pending sessions as there may be, or when it was completed.
        """
        self._made += not name
        name = name or f"sess-{self._made}"
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
        """The sessions that were opened, and neither committed nor aborted."""
        return [session for session in self._sessions.values() if session.state == "pending"]

    def timed(self) -> Session | None:
        """The session that waits for its confirmation."""
        return next((one for one in self._sessions.values() if one.state == "pendingCommitTimer"), None)

    def named(self, name: str) -> Session:
        """A session that is there.

        Raises:
            CliError: when there is none.
        """
        if name not in self._sessions:
            raise CliError(1000, f"Session {name} does not exist")
        return self._sessions[name]

    def commit(self, session: Session, user: str, timer: float | None = None) -> None:
        """Make a session the running configuration, or confirm it when its timer runs.

        Args:
            session: which.
            user: who commits.
            timer: seconds after which all is as before unless the session is committed again.

        Raises:
            CliError: while the timer of another session runs, or when it was completed.
        """
        _check_open(session, "commit")
        waiting = self.timed()
        if waiting is not None and waiting is not session:
            raise CliError(1000, f"Cannot commit session {session.name}: commit timer of session {waiting.name} runs")
        if waiting is None:
            session.before = self.running
            self.running = session.config.copy()
            session.completed, session.commit_user = self.clock(), user
        if timer is None:
            session.state, session.before = "completed", None
            self._forget_completed()
        else:
            session.state, session.deadline = "pendingCommitTimer", self.clock() + timer

    def abort(self, session: Session) -> None:
        """End a session that was not completed; one whose timer runs is taken back.

        Raises:
            CliError: when it was completed.
        """
        _check_open(session, "abort")
        self.forget(session)

    def forget(self, session: Session) -> None:
        """Drop a session in any state; one whose timer runs is taken back."""
        if session.before is not None:
            self.running, session.before = session.before, None
        self._sessions.pop(session.name, None)

    def expire(self) -> bool:
        """Take back what was not confirmed in time; whether there was such a session."""
        session = self.timed()
        if session is None or self.clock() < session.deadline:
            return False
        self.abort(session)
        return True

    def _forget_completed(self) -> None:
        done = [session for session in self._sessions.values() if session.state == "completed"]
        for session in sorted(done, key=lambda one: one.completed)[:-MAX_COMPLETED]:
            del self._sessions[session.name]

    def diffs(self, session: Session) -> str:
        """What a session would change, as `show session-config diffs` prints it."""
        return diff(self.running, session.config, "system:/running-config", f"session:/{session.name}-session-config")

    def tree(self) -> dict[str, Any]:
        """`show configuration sessions` in JSON."""
        return {
            "sessions": {session.name: self._one(session) for session in self._sessions.values()},
            "maxSavedSessions": MAX_COMPLETED,
            "maxOpenSessions": self.max_pending,
            "mergeOnCommit": False,
            "saveToStartupConfigOnCommit": False,
        }

    @staticmethod
    def _one(session: Session) -> dict[str, Any]:
        found: dict[str, Any] = {"state": session.state}
        if session.completed:
            found["completedTime"] = session.completed
        if session.state == "pendingCommitTimer":
            found["commitBy"] = session.deadline
        return found | {"commitUser": session.commit_user, "description": "", "instances": {}}

    def rows(self) -> list[Session]:
        """All sessions, oldest first."""
        return list(self._sessions.values())


def _check_open(session: Session, verb: str) -> None:
    if session.state == "completed":
        raise CliError(1000, f"Cannot {verb} session {session.name} (session already completed)")
