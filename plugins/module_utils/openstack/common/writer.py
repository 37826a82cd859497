# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes of writers: a rejected step fails alone, and an unreachable cloud ends all steps."""

from __future__ import annotations

import abc
import threading
import time
import typing as t

from ...reconcile import Action, Failure, Family, ItemError, Step, UserError
from .client import OVER_QUOTA, Cloud, CloudError, RejectedError
from .steps import step_id, step_name

_POLL_INTERVAL = 1.0  # seconds
_VERBS = {
    Action.CREATE: "create",
    Action.CHANGE: "change",
    Action.RECREATE: "recreate",
    Action.DELETE: "remove",
    Action.NONE: "use",
}


class MissingError(Exception):
    """Raised when a referenced object does not exist, for instance because its creation failed."""

    def __init__(self, family: Family, name: str) -> None:
        super().__init__("%s '%s'" % (family.title, name))


class StepWriter(abc.ABC):
    """Writer of the steps of one plan, and their errors."""

    def __init__(self, cloud: Cloud, service: str) -> None:
        """Write to ``service`` unless a request names another one."""
        self.cloud = cloud
        self._service = service
        self.failed: dict[tuple[str, str], ItemError] = {}
        self.removed: set[tuple[str, str]] = set()  # objects that are removed and not yet created again
        self._fatal: CloudError | None = None
        self.wrote = False  # whether any request changed something
        self.created_ids: dict[tuple[str, str], str] = {}  # by kind and key
        self._writes = threading.Condition()
        self._writing = 0  # requests in progress
        self._full: set[str] = set()  # paths with an exceeded quota

    @abc.abstractmethod
    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""

    @property
    def errors(self) -> list[ItemError]:
        """Errors of the failed steps."""
        return list(self.failed.values())

    def for_each(self, steps: list[Step], work: t.Callable[[Step], None]) -> None:
        """Call ``work`` for each step that has not failed, concurrently."""
        self.cloud.map(lambda step: self.attempt(step, work), steps)

    def attempt(self, step: Step, work: t.Callable[[Step], None]) -> None:
        """Call ``work`` for a step that has not failed, and record its error."""
        if self.is_skipped(step):
            return
        try:
            work(step)
        except UserError as error:
            self.fail(step, error)
        except MissingError as error:
            if step.action is Action.DELETE:
                message = "Cannot remove %s: %s does not exist. Run the task again." % (step_name(step), error)
            else:
                parts = (_VERBS[step.action], step_name(step), error)
                message = "Cannot %s %s: %s does not exist. See the other errors, or create it first." % parts
            self.failed[step_id(step)] = ItemError.of(step, message, Failure.NOT_TRIED)

    def is_skipped(self, step: Step) -> bool:
        """Return whether to skip a step: it failed, or the cloud is unreachable, which is recorded as its error."""
        id = step_id(step)
        if self._fatal and id not in self.failed:
            effect = Failure.HALF_DONE if id in self.removed else Failure.NOT_TRIED
            self.failed[id] = ItemError.of(step, self._fatal.message, effect, self._fatal.error_code)
        return id in self.failed

    def fail(self, step: Step, error: UserError) -> None:
        """Record the error of a step."""
        id = step_id(step)
        if isinstance(error, CloudError) and error.fatal:
            self._fatal = self._fatal or error  # later ones have the same cause
            message = self._fatal.message
        else:
            message = "Cannot %s %s: %s" % (_VERBS[step.action], step_name(step), error.message)
        conflict = isinstance(error, RejectedError) and error.may_be_conflict
        effect = Failure.REJECTED if conflict else Failure.FAILED
        if id in self.removed:
            effect = Failure.HALF_DONE
        self.failed[id] = ItemError.of(step, message, effect, error.error_code)

    def write(self, method: str, path: str, service: str = "", **options: t.Any) -> t.Any:
        """Send a request that changes something, and return the body of the response.

        Repeat a request that exceeds a quota when no other one is in progress: until a request ends, Neutron counts
        its objects and its reservation. If the quota is full, do not repeat later requests of this path.
        """
        with self._writes:
            self._writing += 1
        try:
            return self._write_once(service, method, path, options)
        except CloudError as error:
            if error.kind != OVER_QUOTA or path in self._full:
                raise
        finally:
            with self._writes:
                self._writing -= 1
                self._writes.notify_all()
        with self._writes:
            self._writes.wait_for(lambda: not self._writing)
            try:
                return self._write_once(service, method, path, options)
            except CloudError as error:
                if error.kind == OVER_QUOTA:
                    self._full.add(path)
                raise

    def _write_once(self, service: str, method: str, path: str, options: dict[str, t.Any]) -> t.Any:
        body = self.cloud.request(service or self._service, method, path, **options)
        self.wrote = True
        return body

    def wait(self, is_done: t.Callable[[], bool], seconds: float) -> None:
        """Poll until ``is_done`` returns True. Raises CloudError after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                raise CloudError("timeout after %g seconds. Check its state, and run the task again." % seconds, 408)
            time.sleep(_POLL_INTERVAL)

    def remove(self, path: str, service: str = "", **options: t.Any) -> None:
        """Delete an object, if it exists."""
        try:
            self.write("DELETE", path, service, **options)
        except CloudError as error:
            if error.status != 404:
                raise


class WaitingWriter(StepWriter):
    """Writer of objects that become ready some time after the request."""

    def settle(self, steps: list[Step]) -> None:
        """Wait for unchanged objects that were ``under_way`` when read: an earlier run may have ended too soon."""
        self.for_each([step for step in steps if (step.before or {}).get("under_way")], self.wait_ready)

    @abc.abstractmethod
    def wait_ready(self, step: Step) -> None:
        """Wait until one object is ready. Raises CloudError."""
