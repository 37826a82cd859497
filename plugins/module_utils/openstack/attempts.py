# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out steps one by one or some at a time: what is refused fails on its own, and nobody there ends it."""

from __future__ import annotations

import abc
import time
import typing as t

from ..reconcile import Action, Failure, Family, ItemError, SentenceError, Step
from .client import Cloud, CloudError

_PAUSE = 1.0  # seconds between two looks at what takes its time
_VERBS = {
    Action.CREATE: "create",
    Action.CHANGE: "change",
    Action.RECREATE: "make anew",
    Action.DELETE: "remove",
    Action.NONE: "use",
}


class MissingError(Exception):
    """What an object names is not there, because it could not be made."""

    def __init__(self, family: Family, name: str) -> None:
        super().__init__("%s '%s'" % (family.kind.replace("_", " "), name))


class Attempts(abc.ABC):
    """What became of the steps of one plan; a writer of a family is one."""

    def __init__(self, cloud: Cloud, service: str) -> None:
        """``service`` is the one that is written to, unless told otherwise."""
        self.cloud = cloud
        self._service = service
        self.failed: dict[tuple[str, str], ItemError] = {}
        self.removed: set[tuple[str, str]] = set()  # what is to be made anew
        self._fatal: CloudError | None = None
        self.wrote = False  # whether anything was changed at all

    @abc.abstractmethod
    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Carry the steps out; the errors are those of steps that were not."""

    @property
    def errors(self) -> list[ItemError]:
        """Those of the steps that were not carried out."""
        return list(self.failed.values())

    def each(self, steps: list[Step], work: t.Callable[[Step], None]) -> None:
        """Do the work for steps that did not fail before, some at a time."""
        self.cloud.together(lambda step: self.attempt(step, work), steps)

    def attempt(self, step: Step, work: t.Callable[[Step], None]) -> None:
        """Do the work for one step, unless it failed before."""
        if self.given_up(step):
            return
        try:
            work(step)
        except SentenceError as error:
            self.fail(step, error)
        except MissingError as error:
            sentence = "%s was not tried, since %s is not there." % (called(step), error)
            self.failed[place(step)] = ItemError.of(step, sentence, Failure.NOT_TRIED)

    def given_up(self, step: Step) -> bool:
        """Whether the step failed before, or there is nobody to ask any more."""
        where = place(step)
        if self._fatal and where not in self.failed:
            left = Failure.HALF_DONE if where in self.removed else Failure.NOT_TRIED
            self.failed[where] = ItemError.of(step, self._fatal.sentence, left)
        return where in self.failed

    def fail(self, step: Step, error: SentenceError) -> None:
        """Note that a step was refused, or that nobody answered."""
        where = place(step)
        if isinstance(error, CloudError) and error.fatal:
            self._fatal = self._fatal or error  # the first one tells, since the others are of the same cause
            sentence = self._fatal.sentence
        else:
            sentence = "Cannot %s %s: %s" % (_VERBS[step.action], named(step), error.sentence)
        left = Failure.HALF_DONE if where in self.removed else Failure.REFUSED
        self.failed[where] = ItemError.of(step, sentence, left)

    def write(self, method: str, path: str, service: str = "", **options: t.Any) -> t.Any:
        """A request that changes something."""
        answer = self.cloud.request(service or self._service, method, path, **options)
        self.wrote = True
        return answer

    def wait(self, there: t.Callable[[], bool], seconds: float) -> None:
        """Look until it is so. Raises CloudError when that takes longer."""
        deadline = time.monotonic() + seconds
        while not there():
            if time.monotonic() > deadline:
                raise CloudError("it took longer than %g seconds: look at it, and run again." % seconds, 408)
            time.sleep(_PAUSE)

    def remove(self, path: str, service: str = "", **options: t.Any) -> None:
        """Delete something that may be gone already."""
        try:
            self.write("DELETE", path, service, **options)
        except CloudError as error:
            if error.status != 404:
                raise


class Awaiting(Attempts):
    """Of objects that take their time: an earlier run may have ended before they were ready."""

    def settle(self, steps: list[Step]) -> None:
        """Wait for what is as it should be, but still under way; what was read says so."""
        self.each([step for step in steps if (step.before or {}).get("under_way")], self.ready)

    @abc.abstractmethod
    def ready(self, step: Step) -> None:
        """Wait for one of them."""


def of(steps: t.Iterable[Step], family: Family, actions: t.Collection[Action]) -> list[Step]:
    """The steps of one family that do one of these."""
    return [step for step in steps if step.family is family and step.action in actions]


def place(step: Step) -> tuple[str, str]:
    """By what results and errors know a step."""
    return step.family.kind, step.key


def named(step: Step) -> str:
    """The object in a sentence."""
    return "%s '%s'" % (step.family.kind.replace("_", " "), step.key)


def called(step: Step) -> str:
    """The object at the start of one."""
    name = named(step)
    return name[0].upper() + name[1:]
