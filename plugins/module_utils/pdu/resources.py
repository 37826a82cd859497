# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU is configured with, as objects of the reconcile engine, and the variables that change it. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..reconcile import Action, Family, Field, Object, SentenceError, Step
from . import mib, tables
from .client import Oid, Value
from .tables import UNIT, Rows, encoded

_THRESHOLDS = ("low_load", "near_overload", "overload")  # in rising order
_MOST_ROWS = 256  # of a kind; the largest PDUs have 48 outlets
_NOWHERE = "0.0.0.0"  # noqa: S104 - of a trap receiver that is not set
_OUTLET_COLUMNS = ("name", "on_delay", "off_delay", "reboot_duration")
_COMMANDS = {"on": "immediateOn", "off": "immediateOff", "reboot": "immediateReboot"}

SETTING = Family("setting", (Field("value"),))
PHASE = Family("phase", tuple(map(Field, _THRESHOLDS)), key="number")
BANK = Family("bank", tuple(map(Field, _THRESHOLDS)), key="number")
RECEIVER = Family("trap_receiver", (Field("enabled"), Field("community")), key="address")
OUTLET = Family("outlet", tuple(map(Field, (*_OUTLET_COLUMNS, "state", "command"))), key="number")
FAMILIES = (SETTING, PHASE, BANK, RECEIVER, OUTLET)

ROWS: dict[str, Rows] = {
    PHASE.plural: tables.PHASES,
    BANK.plural: tables.BANKS,
    RECEIVER.plural: tables.RECEIVERS,
    OUTLET.plural: tables.OUTLETS,
}

Objects = dict[str, list[Object]]  # by the plural of their family


@dataclass(frozen=True)
class Config:
    """A PDU as it is: ``identity`` and ``sizes`` by the names of ``tables``, and the ``objects`` that were read."""

    address: str
    identity: Object
    sizes: dict[str, int]
    objects: Objects

    @property
    def name(self) -> str:
        """For sentences."""
        settings = {item["id"]: item["value"] for item in self.objects[SETTING.plural]}
        return called(settings.get("name"), self.identity.get("model"), self.address)

    @property
    def switched(self) -> bool:
        """Whether it can turn outlets on and off."""
        return bool(self.identity.get("switched_outlets"))

    def gathered(self) -> Object:
        """In the words of the module's option, without secrets."""
        result: Object = {item["id"]: item["value"] for item in self.objects[SETTING.plural]}
        for family in (PHASE, BANK, RECEIVER, OUTLET):
            names = [family.key, *(f.name for f in family.fields if f.name not in ("community", "command"))]
            items = [item for item in self.objects[family.plural] if item.get("address") != _NOWHERE]
            rows = [{name: item[name] for name in names if name in item} for item in items]
            if rows or family is not OUTLET:
                result[family.plural] = rows
        return result


def head_oids() -> list[Oid]:
    """What is read first: how many rows there are, what the PDU is, and the settings of all of it."""
    sizes = [column.at() for column in tables.SIZES.values()]
    return [*sizes, *tables.oids(tables.IDENTITY), *tables.oids(tables.SETTINGS)]


def sizes(values: t.Mapping[Oid, Value], address: str) -> dict[str, int]:
    """How many rows of each kind there are. Raises SentenceError for what is no PDU that these modules know."""
    found = {name: values.get(column.at()) for name, column in tables.SIZES.items()}
    units = found["units"]
    if not isinstance(units, int):
        raise SentenceError(
            "%s has no rPDU2 tables, so it is no rack PDU of APC's second generation or hides them: check host and "
            "username." % address
        )
    if units > 1:
        raise SentenceError(
            "%s speaks for %d PDUs that share its network port, which cannot be told apart here: give each of them an "
            "address of its own." % (address, units)
        )
    counts = {name: value if isinstance(value, int) else 0 for name, value in found.items()}
    for name, count in counts.items():
        if not 0 <= count <= _MOST_ROWS:
            raise SentenceError(
                "%s says that it has %d %s, which no rack PDU has: check host." % (address, count, name)
            )
    return counts


def called(name: str | None, model: str | None, address: str) -> str:
    """A PDU in sentences."""
    return "%s (%s at %s)" % (name or "The PDU", model or "unknown model", address)


def read(values: t.Mapping[Oid, Value], plurals: t.Collection[str], address: str) -> Config:
    """What was read, with the rows of the kinds named by ``plurals``. Raises SentenceError."""
    counts = sizes(values, address)
    settings = tables.told(tables.SETTINGS, values)
    objects: Objects = {family.plural: [] for family in FAMILIES}
    objects[SETTING.plural] = [{"id": name, "value": value} for name, value in settings.items()]
    for plural in plurals:
        objects[plural] = ROWS[plural].objects(values, counts[plural])
    for item in objects[OUTLET.plural]:
        item["command"] = None  # an outlet has carried out whatever it was told
    for item in objects[RECEIVER.plural]:
        if not item.get("community", "").strip("*"):
            item.pop("community", None)  # the PDU keeps it to itself
    identity = tables.told(tables.IDENTITY, values)
    identity["power_rating"] = tables.kilowatts(identity.get("power_rating"))
    return Config(address, identity, counts, objects)


def wanted(params: Object, there: Config) -> Objects:
    """The objects that the module's option asks for. Raises SentenceError for what this PDU cannot be."""
    if params.get("outlets") and not there.switched:
        raise SentenceError(
            "%s meters its outlets and cannot switch them: leave outlets out, or use a switched model, like an AP89xx."
            % there.name
        )
    settings = [{"id": name, "value": params[name]} for name in tables.SETTINGS if params.get(name) is not None]
    _check_settings(settings, there)
    objects: Objects = {
        SETTING.plural: settings,
        PHASE.plural: _rows(PHASE, params, there, lambda item: there.identity.get("phase_breaker")),
        BANK.plural: _rows(BANK, params, there, lambda item: item.get("breaker")),
        RECEIVER.plural: [_asked(item) for item in params.get("trap_receivers") or ()],
        OUTLET.plural: [_asked(item) for item in params.get("outlets") or ()],
    }
    _check_receivers(objects[RECEIVER.plural], there)
    _check_there(OUTLET, objects[OUTLET.plural], there)
    for item in objects[OUTLET.plural]:
        for name in _OUTLET_COLUMNS:
            if name in item:
                encoded(tables.OUTLETS.columns[name], item[name], _label(OUTLET, item["number"], name))
    return objects


def _asked(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def _check_settings(settings: list[Object], there: Config) -> None:
    now = {item["id"]: item["value"] for item in there.objects[SETTING.plural]}
    for item in settings:
        if item["id"] not in now:
            raise SentenceError("%s has no %s of its own: leave it out." % (there.name, item["id"]))
        column = tables.SETTINGS[item["id"]]
        value = encoded(column, item["value"], item["id"])
        item["value"] = tables.decoded(column, value)
    changed = {**now, **{item["id"]: item["value"] for item in settings}}
    if any(item["id"] in _THRESHOLDS for item in settings):
        _check_order(there.name, changed, there.identity.get("power_rating"), "kW")


def _rows(family: Family, params: Object, there: Config, breaker: t.Callable[[Object], t.Any]) -> list[Object]:
    """Phases or banks with thresholds; an item without number is for all that no item of their own names."""
    items = [_asked(item) for item in params.get(family.plural) or ()]
    general = [item for item in items if "number" not in item]
    if len(general) > 1:
        raise SentenceError(
            "Two items of %s have no number, and so are both for all of them: leave one out." % family.plural
        )
    own = [item for item in items if "number" in item]
    _check_there(family, own, there)
    now = {item["number"]: item for item in there.objects[family.plural]}
    if general:
        named = {item["number"] for item in own}
        own = [{**general[0], **item} for item in own]
        own += [{"number": number, **general[0]} for number in now if number not in named]
    for item in own:
        untold = family.untold(item, now[item["number"]])
        if untold:
            raise SentenceError(
                "%s has no %s of %s %d: leave it out." % (there.name, untold[0], family.kind, item["number"])
            )
        for name in _THRESHOLDS:
            if name in item:
                encoded(ROWS[family.plural].columns[name], item[name], _label(family, item["number"], name))
        changed = {**now[item["number"]], **item}
        what = "%s %d of %s" % (family.kind, item["number"], there.name)
        _check_order(what, changed, breaker(changed), "A")
    return own


def _check_there(family: Family, items: list[Object], there: Config) -> None:
    numbers = [item["number"] for item in there.objects[family.plural]]
    for item in items:
        if item["number"] not in numbers:
            those = "%s to %s" % (min(numbers), max(numbers)) if numbers else "none"
            raise SentenceError("%s has no %s %d: it has %s." % (there.name, family.kind, item["number"], those))


def _check_order(what: str, item: Object, breaker: t.Any, unit: str) -> None:
    values = [item[name] for name in _THRESHOLDS if name in item]
    if values != sorted(values):
        raise SentenceError(
            "The thresholds of %s would be %s: they have to rise in this order."
            % (what, ", ".join("%s %g %s" % (name, item[name], unit) for name in _THRESHOLDS if name in item))
        )
    if breaker and "overload" in item and item["overload"] > breaker:
        raise SentenceError(
            "The overload of %s would be %g %s, and it is made for %g %s: give no more than that."
            % (what, item["overload"], unit, breaker, unit)
        )


def _check_receivers(items: list[Object], there: Config) -> None:
    now = {item["address"] for item in there.objects[RECEIVER.plural]}
    free = len(_free(there))
    for item in items:
        item["address"] = str(tables.address(item["address"], "address of a trap receiver"))
        if item["address"] in now - {_NOWHERE}:
            continue
        if item["address"] == _NOWHERE or "community" not in item:
            raise SentenceError(
                "The new trap receiver %s of %s needs an address and a community: give both."
                % (item["address"], there.name)
            )
        free -= 1
        if free < 0:
            raise SentenceError(
                "%s has no room for the trap receiver %s: all %d are set, so clear one of them in its web page."
                % (there.name, item["address"], there.sizes[RECEIVER.plural])
            )
        item.setdefault("enabled", True)


def _free(there: Config) -> list[Object]:
    """Rows of trap receivers that are not set."""
    return [item for item in there.objects[RECEIVER.plural] if item["address"] == _NOWHERE]


@dataclass(frozen=True)
class Write:
    """A variable to be written: for which object, and ``what`` it is, with its value, in sentences.

    A ``command`` must not be done twice, and whether it was shows elsewhere. A ``secret`` may not be readable.
    """

    family: Family
    key: t.Any
    oid: Oid
    value: Value
    what: str
    command: str = ""
    secret: bool = False


def _label(family: Family, key: t.Any, name: str) -> str:
    return "%s of %s %s" % (name, family.kind.replace("_", " "), key)


def writes(steps: t.Sequence[Step], there: Config) -> list[Write]:
    """What has to be written to carry the steps out: settings before commands."""
    free = _free(there)
    found: list[Write] = []
    for step in steps:
        if step.action is not Action.NONE and step.wanted is not None:
            found += _WRITERS[step.family.kind](step.wanted, step, free)
    settings = [write for write in found if write.family is SETTING]
    now = {item["id"]: item["value"] for item in there.objects[SETTING.plural]}
    asked = {step.key: step.wanted["value"] for step in steps if step.family is SETTING and step.wanted}
    others = [write for write in found if write.family is not SETTING]
    return [*_stepwise(settings, now, asked), *sorted(others, key=lambda write: bool(write.command))]


def _stepwise(found: list[Write], now: Object, asked: Object) -> list[Write]:
    """The writes of thresholds in an order in which they rise after each: an agent may look at each alone."""
    falls = asked.get("near_overload", now.get("near_overload", 0)) < now.get("near_overload", 0)
    return found if falls else found[::-1]


def _setting(item: Object, step: Step, free: list[Object]) -> list[Write]:
    column = tables.SETTINGS[item["id"]]
    value = encoded(column, item["value"], item["id"])
    return [Write(SETTING, item["id"], column.at(UNIT), value, _said(item["id"], column, item["value"]))]


def _thresholds(item: Object, step: Step, free: list[Object]) -> list[Write]:
    before = step.before or {}
    changed = [f.name for f in step.family.fields if f.differs(item, before)]
    return _stepwise([_write(step, before["row"], name, item[name]) for name in changed], before, item)


def _receiver(item: Object, step: Step, free: list[Object]) -> list[Write]:
    if step.before is None:
        row = free.pop(0)
        # What the row has already is not written, lest it count as done when the rest was refused.
        names = [name for name in ("address", "community", "enabled") if item[name] != row.get(name)]
    else:
        row = step.before
        names = [f.name for f in RECEIVER.fields if f.differs(item, row)]
    return [_write(step, row["row"], name, item[name]) for name in names]


def _outlet(item: Object, step: Step, free: list[Object]) -> list[Write]:
    before = step.before or {}
    changed = [f.name for f in OUTLET.fields if f.differs(item, before)]
    found = [_write(step, before["row"], name, item[name]) for name in changed if name in _OUTLET_COLUMNS]
    for name in ("state", "command"):
        if name in changed:
            column = mib.OUTLET_CONTROL["Command"]
            said = "%s of outlet %d" % ("reboot" if name == "command" else "turning %s" % item[name], item["number"])
            value = column.names[_COMMANDS[item[name]]]
            found.append(Write(OUTLET, item["number"], column.at(before["row"]), value, said, command=item[name]))
    return found


def _write(step: Step, row: int, name: str, value: t.Any) -> Write:
    column = ROWS[step.family.plural].columns[name]
    secret = name == "community"
    what = _label(step.family, step.key, name if secret else _said(name, column, value))
    return Write(step.family, step.key, column.at(row), encoded(column, value, what), what, secret=secret)


def _said(name: str, column: mib.Column, value: t.Any) -> str:
    """A field with its value, for sentences."""
    if isinstance(value, bool):
        return "%s %s" % (name, str(value).lower())
    return "%s '%s'" % (name, value) if isinstance(value, str) else "%s %g %s" % (name, value, column.unit)


_WRITERS: dict[str, t.Callable[[Object, Step, list[Object]], list[Write]]] = {
    "setting": _setting,
    "phase": _thresholds,
    "bank": _thresholds,
    "trap_receiver": _receiver,
    "outlet": _outlet,
}
