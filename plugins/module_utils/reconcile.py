# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine of all modules: plan, apply, report. Pure except for the writer that the caller passes.

A family declares the fields of its objects. ``plan`` compares the desired with the actual objects.
``converge`` applies the plan with a writer, except in check mode, and builds the report.
Objects are dicts. A field that is None in a desired object stays unchanged.

Modules of all families use this engine. So check mode, diff mode, ``prune`` and errors per object work the same in
all of them. Options of objects must not have defaults, since an omitted setting stays unchanged.
"""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass, field

Object = dict[str, t.Any]


class Mode(enum.Enum):
    """Way to compare a field of a desired object with the actual one."""

    STRICT = "strict"  # equal; lists in the same order
    SET = "set"  # lists with the same members in any order
    SERVER_DEFAULTED = "server_defaulted"  # strict, but zero and empty values stay unchanged too
    WRITE_ONLY = "write_only"  # cannot be read back: sent on creation, never a change


@dataclass(frozen=True)
class Field:
    """One field of a family's objects. An immutable field changes only when the object is created again."""

    name: str
    mode: Mode = Mode.STRICT
    immutable: bool = False
    view: t.Callable[[t.Any], t.Any] | None = None  # the part of the value to compare; None compares the whole value
    replaces: str = ""  # an alternative field: setting this field drops the value of that one
    member: t.Callable[[t.Any], t.Any] | None = None  # identity of a member of a list, whose diff omits equal members

    def is_set(self, desired: Object) -> bool:
        """Return whether the desired object sets the field."""
        value = desired.get(self.name)
        if self.mode is Mode.WRITE_ONLY or value is None:
            return False
        return not (self.mode is Mode.SERVER_DEFAULTED and not value)

    def differs(self, desired: Object, actual: Object) -> bool:
        """Return whether the desired value of the field differs from the actual one.

        A field that the actual object does not report cannot be compared and counts as equal.
        """
        if not self.is_set(desired) or self.name not in actual:
            return False
        ours, theirs = desired[self.name], actual[self.name]
        if self.view:
            ours, theirs = self.view(ours), self.view(theirs)
        if self.mode is Mode.SET:
            return ours != theirs and set(ours) != set(theirs or ())  # equal lists are cheaper than sets
        return bool(ours != theirs)


@dataclass(frozen=True)
class Family:
    """The objects of one kind: ``kind`` is its name in results, ``key`` is the field that identifies an object."""

    kind: str
    fields: tuple[Field, ...]
    key: str = "id"

    @property
    def title(self) -> str:
        """Name of the kind in messages."""
        return self.kind.replace("_", " ")

    @property
    def plural(self) -> str:
        """Name of a list of such objects in options and results."""
        return self.kind + "s"

    def unreported(self, desired: Object, actual: Object) -> list[str]:
        """Return the fields that the desired object sets and the actual object does not report."""
        return [f.name for f in self.fields if f.is_set(desired) and f.name not in actual]


class Action(enum.Enum):
    """Change that one object needs."""

    CREATE = "create"
    CHANGE = "change"
    RECREATE = "recreate"
    DELETE = "delete"
    NONE = "none"


@dataclass(frozen=True)
class Step:
    """One object of a plan: the actual and the desired object, each None when there is none."""

    family: Family
    key: str
    action: Action
    before: Object | None = None
    desired: Object | None = None

    @property
    def changed_fields(self) -> list[Field]:
        """Fields whose actual value differs from the desired one; empty for an object to create or delete."""
        before, desired = self.before, self.desired
        if before is None or desired is None:
            return []
        return [f for f in self.family.fields if f.differs(desired, before)]

    @property
    def after(self) -> Object | None:
        """Object after the change, as far as it can be predicted; None after a deletion."""
        if self.action is Action.DELETE or self.desired is None:
            return None
        fields = [f for f in self.family.fields if f.is_set(self.desired)]
        values = {f.name: self.desired[f.name] for f in fields}
        kept = {} if self.before is None or self.action is Action.RECREATE else dict(self.before)
        for f in fields:
            if f.differs(self.desired, kept):
                kept.pop(f.replaces, None)
        return {self.family.key: self.key, **kept, **values}

    @property
    def full_object(self) -> Object:
        """Object to write, with all known fields: writers replace objects, they do not patch them."""
        names = [self.family.key, *(f.name for f in self.family.fields)]
        known = {**(self.desired or {}), **(self.after or {})}
        return {name: known[name] for name in names if known.get(name) is not None}


OBJECTS_NOT_WRITTEN = "OPU102"


class UserError(Exception):
    """Failure that the user can fix. Its ``message`` names object, place and remedy."""

    error_code = "OPU100"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PlanError(UserError):
    """Raised when the desired objects cannot be planned."""

    error_code = "OPU101"


class Failure(enum.Enum):
    """Effect of a failed step."""

    REJECTED = "rejected"  # nothing changed
    FAILED = "failed"  # the object may be changed in part
    BLOCKED = "blocked"  # nothing changed, because another client was writing; it has ended since
    NOT_TRIED = "not tried"  # an earlier step or the whole batch was rejected
    HALF_DONE = "half done"  # changed in part, such as removed, but not created again
    INCOMPLETE = "incomplete"  # changed, but an effect beyond the object is missing
    MISSING = "missing"  # validation failed: a referenced object is missing, but may exist before the real run


@dataclass(frozen=True)
class ItemError:
    """One object that could not be written, and the message with the cause."""

    kind: str
    key: str
    message: str
    failure: Failure = Failure.REJECTED
    error_code: str = UserError.error_code
    unknown: bool = False  # the last change of the object had no response, and may have been made

    @classmethod
    def of(
        cls,
        step: Step,
        message: str,
        failure: Failure = Failure.REJECTED,
        error_code: str = UserError.error_code,
        unknown: bool = False,
    ) -> ItemError:
        """Return the error of a step. For HALF_DONE, the message also states that the object was removed."""
        if failure is Failure.HALF_DONE:
            name = "%s '%s'" % (step.family.title, step.key)
            cause = message.removeprefix("Cannot create %s: " % name)
            message = "Cannot recreate %s: it was removed and could not be created again: %s" % (name, cause)
        return cls(step.family.kind, step.key, message, failure, error_code, unknown)


Writer = t.Callable[[list[Step]], list[ItemError]]


def plan(
    family: Family,
    desired: t.Sequence[Object],
    actual: t.Iterable[Object],
    absent: t.Iterable[str] = (),
    prune: t.Callable[[Object], bool] | None = None,
    recreate: bool = False,
) -> list[Step]:
    """Return the steps that turn the actual objects into the desired ones.

    ``absent`` lists keys to delete. ``prune`` selects the actual objects without a desired one that are
    deleted too. Raises PlanError for a duplicate key and, unless ``recreate``, for a change of an
    immutable field. Steps are in the order of the desired objects, deletions last.
    """
    existing = {item[family.key]: item for item in actual}
    _check_keys(family, desired)
    steps = [_step(family, item, existing.get(item[family.key]), recreate) for item in desired]
    keys = {item[family.key] for item in desired}
    deleted = dict.fromkeys(key for key in absent if key in existing and key not in keys)
    if prune:
        deleted.update(dict.fromkeys(key for key, item in existing.items() if key not in keys and prune(item)))
    return steps + [Step(family, key, Action.DELETE, before=existing[key]) for key in deleted]


def _check_keys(family: Family, desired: t.Sequence[Object]) -> None:
    first: dict[t.Any, int] = {}
    for index, item in enumerate(desired):
        key = item[family.key]
        if first.setdefault(key, index) != index:
            raise PlanError(
                "Cannot plan %s '%s': it is listed twice, at %s[%d] and %s[%d]. Remove one of them."
                % (family.title, key, family.plural, first[key], family.plural, index)
            )


def _step(family: Family, desired: Object, actual: Object | None, recreate: bool) -> Step:
    key = desired[family.key]
    if actual is None:
        return Step(family, key, Action.CREATE, desired=desired)
    unchanged = Step(family, key, Action.NONE, before=actual, desired=desired)
    changed = unchanged.changed_fields
    if not changed:
        return unchanged
    fixed = [f for f in changed if f.immutable]
    if fixed and not recreate:
        name = fixed[0].name
        raise PlanError(
            "Cannot change %s of %s '%s' from %s to %s: the field is immutable. Set recreate to remove the object and "
            "create it again, or remove it first."
            % (name, family.title, key, format_value(actual.get(name)), format_value(desired[name]))
        )
    return Step(family, key, Action.RECREATE if fixed else Action.CHANGE, before=actual, desired=desired)


def format_value(value: t.Any) -> str:
    """Return the value of a field as messages show it."""
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Report:
    """Changes that a run made, or would make: the common part of every module's result."""

    changed: bool = False
    done: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # plural of the kind -> verb -> keys
    diff: dict[str, t.Any] | None = None
    errors: list[ItemError] = field(default_factory=list)
    cause: UserError | None = None  # the cause of the errors, if they do not contain it

    @property
    def failed(self) -> bool:
        """Return whether any object could not be written."""
        return bool(self.errors)

    @property
    def message(self) -> str:
        """All errors as text, without those of steps that were not tried because another step failed."""
        if self.cause:
            return self.cause.message
        return " ".join(dict.fromkeys(error.message for error in self._causes))

    @property
    def error_code(self) -> str:
        """Code of the errors in the message, OPU102 if their codes differ."""
        if self.cause:
            return self.cause.error_code
        codes = {error.error_code for error in self._causes}
        return codes.pop() if len(codes) == 1 else OBJECTS_NOT_WRITTEN

    @property
    def _causes(self) -> list[ItemError]:
        return [error for error in self.errors if error.failure is not Failure.NOT_TRIED] or self.errors

    def result(self) -> dict[str, t.Any]:
        """Return the report in the form that modules return."""
        result: dict[str, t.Any] = {"changed": self.changed, **self.done}
        if self.diff is not None:
            result["diff"] = self.diff
        if self.errors:
            result.update(failed=True, msg=self.message, error_code=self.error_code)
            result["errors"] = [
                {"kind": e.kind, "id": e.key, "msg": e.message, "error_code": e.error_code} for e in self.errors
            ]
        return result


_VERBS = {
    Action.CREATE: "created",
    Action.CHANGE: "updated",
    Action.RECREATE: "recreated",
    Action.DELETE: "removed",
    Action.NONE: "unchanged",
}


def empty_result() -> dict[str, list[str]]:
    """Return the result of one kind without any objects."""
    return {verb: [] for verb in _VERBS.values()}


def converge(
    steps: list[Step], writer: Writer, check_mode: bool, diff: bool, validator: Writer | None = None
) -> Report:
    """Apply the steps with the writer, in one call and only when a step changes an object.

    In check mode the validator, if given, is called instead. It returns the errors that the writer would
    return and changes nothing.
    """
    work = [step for step in steps if step.action is not Action.NONE]
    call = validator if check_mode else writer
    return build_report(steps, call(work) if work and call else [], diff)


def build_report(steps: list[Step], errors: list[ItemError], diff: bool, wrote: bool = False) -> Report:
    """Return the report of applied steps, of which those with an error failed.

    ``wrote`` marks the result as changed even when all steps failed: a writer may change part of an object.
    """
    failed = {(error.kind, error.key) for error in errors}
    achieved = [step for step in steps if (step.family.kind, step.key) not in failed]
    changes = [step for step in achieved if step.action is not Action.NONE]
    done = {step.family.plural: empty_result() for step in steps}
    for step in achieved:
        done[step.family.plural][_VERBS[step.action]].append(step.key)
    partly = any(error.failure in (Failure.HALF_DONE, Failure.INCOMPLETE) for error in errors)
    return Report(wrote or partly or bool(changes), done, _diff(changes) if diff else None, errors)


def _diff(steps: list[Step]) -> dict[str, t.Any]:
    """Return the changed objects before and after, by kind and key, sorted, without write-only fields."""
    before: dict[str, dict[str, Object]] = {}
    after: dict[str, dict[str, Object]] = {}
    for step in sorted(steps, key=lambda step: (step.family.plural, step.key)):
        names = [step.family.key, *(f.name for f in step.family.fields if f.mode is not Mode.WRITE_ONLY)]
        for side, item, other in ((before, step.before, step.after), (after, step.after, step.before)):
            if item is not None:
                values = _without_common_members(step.family, item, other or {})
                shown = {
                    name: _sorted(step.family, name, values[name]) for name in names if values.get(name) is not None
                }
                side.setdefault(step.family.plural, {})[step.key] = shown
    return {"before": before, "after": after}


def _without_common_members(family: Family, item: Object, other: Object) -> Object:
    """Return an object for a diff, whose long lists have only the members that the other side does not have."""
    values = dict(item)
    for f in family.fields:
        if f.member and values.get(f.name) is not None and other.get(f.name) is not None:
            common = {f.member(each) for each in other[f.name]}
            values[f.name] = [each for each in values[f.name] if f.member(each) not in common]
    return values


def _sorted(family: Family, name: str, value: t.Any) -> t.Any:
    """Return a value for a diff: a list that is compared as a set is sorted."""
    modes = {f.name: f.mode for f in family.fields}
    return sorted(value) if modes.get(name) is Mode.SET else value
