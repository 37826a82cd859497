# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one engine of all modules: plan, apply, report. Pure but for the writer that it is given.

A family says what its objects are compared by; ``plan`` compares what is wanted with what is there;
``converge`` has a writer carry the plans out, unless in check mode, and makes the module's result.
Wanted objects are dicts in which None asks for nothing.
"""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass, field

Object = dict[str, t.Any]


class Mode(enum.Enum):
    """How a field of a wanted object is compared with the actual one."""

    STRICT = "strict"  # equal; lists in the same order
    SET = "set"  # lists with the same members in any order
    SERVER_DEFAULTED = "server_defaulted"  # strict, but zero and empty ask for nothing either
    WRITE_ONLY = "write_only"  # cannot be read back: sent when the object is made, never a change


@dataclass(frozen=True)
class Field:
    """One field of a family's objects. An immutable one can only be changed by making the object anew."""

    name: str
    mode: Mode = Mode.STRICT
    immutable: bool = False
    view: t.Callable[[t.Any], t.Any] | None = None  # what of the value is compared; all of it without
    instead_of: str = ""  # another field that says the same in another way: asking for this one gives that one up

    def asked(self, wanted: Object) -> bool:
        """Whether the wanted object says anything about the field."""
        value = wanted.get(self.name)
        if self.mode is Mode.WRITE_ONLY or value is None:
            return False
        return not (self.mode is Mode.SERVER_DEFAULTED and not value)

    def differs(self, wanted: Object, actual: Object) -> bool:
        """Whether the wanted object asks for another value than the actual one has.

        What the actual object does not tell at all cannot be compared, and so is no difference.
        """
        if not self.asked(wanted) or self.name not in actual:
            return False
        ours, theirs = wanted[self.name], actual[self.name]
        if self.view:
            ours, theirs = self.view(ours), self.view(theirs)
        if self.mode is Mode.SET:
            return ours != theirs and set(ours) != set(theirs or ())  # a set of all VLANs takes its time
        return bool(ours != theirs)


@dataclass(frozen=True)
class Family:
    """The objects of one kind: ``kind`` names one of them in sentences, ``key`` is their identity."""

    kind: str
    fields: tuple[Field, ...]
    key: str = "id"

    @property
    def plural(self) -> str:
        """The name of a list of them, in options and in results."""
        return self.kind + "s"

    def untold(self, wanted: Object, actual: Object) -> list[str]:
        """The fields that the wanted object says something about and the actual one does not tell."""
        return [f.name for f in self.fields if f.asked(wanted) and f.name not in actual]


class Action(enum.Enum):
    """What has to be done to one object."""

    CREATE = "create"
    CHANGE = "change"
    RECREATE = "recreate"
    DELETE = "delete"
    NONE = "none"


@dataclass(frozen=True)
class Step:
    """One object of a plan: the actual object, if any, and the one that is wanted, if any."""

    family: Family
    key: str
    action: Action
    before: Object | None = None
    wanted: Object | None = None

    @property
    def after(self) -> Object | None:
        """The object as it will be, as far as the plan can tell."""
        if self.action is Action.DELETE or self.wanted is None:
            return None
        fields = [f for f in self.family.fields if f.asked(self.wanted)]
        asked = {f.name: self.wanted[f.name] for f in fields}
        kept = {} if self.before is None or self.action is Action.RECREATE else dict(self.before)
        for f in fields:
            if f.differs(self.wanted, kept):
                kept.pop(f.instead_of, None)
        return {self.family.key: self.key, **kept, **asked}

    @property
    def whole(self) -> Object:
        """The object to be written, with every field that is known: a writer replaces, it does not patch."""
        names = [self.family.key, *(f.name for f in self.family.fields)]
        known = {**(self.wanted or {}), **(self.after or {})}
        return {name: known[name] for name in names if known.get(name) is not None}


class SentenceError(Exception):
    """Something went wrong that a user can cure; ``sentence`` names object, place and remedy."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class PlanError(SentenceError):
    """What is wanted cannot be planned."""


class Failure(enum.Enum):
    """What is left of a step that failed."""

    REFUSED = "refused"  # nothing changed
    NOT_TRIED = "not tried"  # another step was refused before it, or the whole batch was
    HALF_DONE = "half done"  # removed, and not made anew
    MISSING = "missing"  # it would be refused, for want of something that may be there by then


@dataclass(frozen=True)
class ItemError:
    """One object that could not be written, and why, in a sentence."""

    kind: str
    key: str
    sentence: str
    failure: Failure = Failure.REFUSED

    @classmethod
    def of(cls, step: Step, sentence: str, failure: Failure = Failure.REFUSED) -> ItemError:
        """The error of a step; the sentence says why, and what half is done is told here."""
        if failure is Failure.HALF_DONE:
            sentence = "%s '%s' was removed and is not made anew: %s" % (
                step.family.kind.capitalize(),
                step.key,
                sentence,
            )
        return cls(step.family.kind, step.key, sentence, failure)


Writer = t.Callable[[list[Step]], list[ItemError]]


def plan(
    family: Family,
    wanted: t.Sequence[Object],
    actual: t.Iterable[Object],
    absent: t.Iterable[str] = (),
    prune: t.Callable[[Object], bool] | None = None,
    recreate: bool = False,
) -> list[Step]:
    """What has to be done so that all wanted objects are there as they are wanted.

    ``absent`` lists keys that must not be there; ``prune`` says which of the actual objects that
    nobody wants may be deleted. Raises PlanError for a key wanted twice and, unless ``recreate``, for
    a change of an immutable field. Steps stand in the order of the wanted objects, deletions last.
    """
    there = {item[family.key]: item for item in actual}
    _check_keys(family, wanted)
    steps = [_step(family, item, there.get(item[family.key]), recreate) for item in wanted]
    keys = {item[family.key] for item in wanted}
    gone = dict.fromkeys(key for key in absent if key in there and key not in keys)
    if prune:
        gone.update(dict.fromkeys(key for key, item in there.items() if key not in keys and prune(item)))
    return steps + [Step(family, key, Action.DELETE, before=there[key]) for key in gone]


def _check_keys(family: Family, wanted: t.Sequence[Object]) -> None:
    first: dict[t.Any, int] = {}
    for index, item in enumerate(wanted):
        key = item[family.key]
        if first.setdefault(key, index) != index:
            raise PlanError(
                "%s '%s' stands twice, at %s[%d] and %s[%d]: leave one out."
                % (family.kind.capitalize(), key, family.plural, first[key], family.plural, index)
            )


def _step(family: Family, wanted: Object, actual: Object | None, recreate: bool) -> Step:
    key = wanted[family.key]
    if actual is None:
        return Step(family, key, Action.CREATE, wanted=wanted)
    changed = [f for f in family.fields if f.differs(wanted, actual)]
    if not changed:
        return Step(family, key, Action.NONE, before=actual, wanted=wanted)
    fixed = [f for f in changed if f.immutable]
    if fixed and not recreate:
        name = fixed[0].name
        raise PlanError(
            "%s '%s' has %s %s and cannot be changed to %s: set recreate to make it anew, or remove it first."
            % (family.kind.capitalize(), key, name, _shown(actual.get(name)), _shown(wanted[name]))
        )
    return Step(family, key, Action.RECREATE if fixed else Action.CHANGE, before=actual, wanted=wanted)


def _shown(value: t.Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Report:
    """What a run did, or would do: the common part of every module's result."""

    changed: bool = False
    done: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # kind's plural -> verb -> keys
    diff: dict[str, t.Any] | None = None
    errors: list[ItemError] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether anything could not be written."""
        return bool(self.errors)

    @property
    def message(self) -> str:
        """All errors as text; what was not tried for want of something else says nothing of its own."""
        told = [error for error in self.errors if error.failure is not Failure.NOT_TRIED] or self.errors
        return " ".join(dict.fromkeys(error.sentence for error in told))

    def result(self) -> dict[str, t.Any]:
        """As a module returns it."""
        result: dict[str, t.Any] = {"changed": self.changed, **self.done}
        if self.diff is not None:
            result["diff"] = self.diff
        if self.errors:
            result.update(failed=True, msg=self.message)
            result["errors"] = [{"kind": e.kind, "id": e.key, "msg": e.sentence} for e in self.errors]
        return result


_VERBS = {
    Action.CREATE: "created",
    Action.CHANGE: "updated",
    Action.RECREATE: "recreated",
    Action.DELETE: "removed",
    Action.NONE: "unchanged",
}


def nothing_done() -> dict[str, list[str]]:
    """What a result says of a kind of which there was nothing to look at."""
    return {verb: [] for verb in _VERBS.values()}


def converge(
    steps: list[Step], writer: Writer, check_mode: bool, diff: bool, foreteller: Writer | None = None
) -> Report:
    """Carry the steps out with the writer, in one call and only when there is something to do.

    In check mode the writer is not called, but the foreteller, if there is one, which says what the writer
    would and changes nothing.
    """
    work = [step for step in steps if step.action is not Action.NONE]
    report = Report()
    ask = foreteller if check_mode else writer
    if work and ask:
        report.errors = ask(work)
    failed = {(error.kind, error.key) for error in report.errors}
    achieved = [step for step in steps if (step.family.kind, step.key) not in failed]
    for step in steps:
        report.done.setdefault(step.family.plural, nothing_done())
    for step in achieved:
        report.done[step.family.plural][_VERBS[step.action]].append(step.key)
    half_done = any(error.failure is Failure.HALF_DONE for error in report.errors)
    report.changed = half_done or any(step.action is not Action.NONE for step in achieved)
    if diff:
        report.diff = _diff([step for step in achieved if step.action is not Action.NONE])
    return report


def _diff(steps: list[Step]) -> dict[str, t.Any]:
    """Before and after of what changes, by kind and key, sorted; what cannot be read back is left out."""
    before: dict[str, dict[str, Object]] = {}
    after: dict[str, dict[str, Object]] = {}
    for step in sorted(steps, key=lambda step: (step.family.plural, step.key)):
        names = [step.family.key, *(f.name for f in step.family.fields if f.mode is not Mode.WRITE_ONLY)]
        for side, item in ((before, step.before), (after, step.after)):
            if item is not None:
                shown = {name: _sorted(step.family, name, item[name]) for name in names if item.get(name) is not None}
                side.setdefault(step.family.plural, {})[step.key] = shown
    return {"before": before, "after": after}


def _sorted(family: Family, name: str, value: t.Any) -> t.Any:
    """A value as a diff shows it: what has no order, in one."""
    modes = {f.name: f.mode for f in family.fields}
    return sorted(value) if modes.get(name) is Mode.SET else value
