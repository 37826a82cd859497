# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of a PDU as objects of the reconcile engine, and the variables to write. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..reconcile import Action, Family, Field, Object, Step, UserError
from . import mib, tables
from .session import Oid, Value
from .smi import Column
from .tables import UNIT, Rows, encode

_THRESHOLDS = ("low_load", "near_overload", "overload")  # in rising order
_MAX_ROWS = 256  # of one kind; the largest PDUs have 48 outlets
_UNSET_ADDRESS = "0.0.0.0"  # noqa: S104 - of an unset trap receiver
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
    """Actual configuration: ``identity`` and ``sizes`` by their names in ``tables``, and the ``objects`` read."""

    address: str
    identity: Object
    sizes: dict[str, int]
    objects: Objects

    @property
    def name(self) -> str:
        """Name of the PDU in messages."""
        settings = {item["id"]: item["value"] for item in self.objects[SETTING.plural]}
        return display_name(settings.get("name"), self.identity.get("model"), self.address)

    @property
    def switched(self) -> bool:
        """True if it can turn outlets on and off."""
        return bool(self.identity.get("switched_outlets"))

    def gathered(self) -> Object:
        """Return the configuration in the format of the module's option, without secrets."""
        result: Object = {item["id"]: item["value"] for item in self.objects[SETTING.plural]}
        for family in (PHASE, BANK, RECEIVER, OUTLET):
            names = [family.key, *(f.name for f in family.fields if f.name not in ("community", "command"))]
            items = [item for item in self.objects[family.plural] if item.get("address") != _UNSET_ADDRESS]
            rows = [{name: item[name] for name in names if name in item} for item in items]
            if rows or family is not OUTLET:
                result[family.plural] = rows
        return result


def base_oids() -> list[Oid]:
    """Return the variables of the first request: numbers of rows, identity, and settings of the whole PDU."""
    sizes = [column.at() for column in tables.SIZES.values()]
    return [*sizes, *tables.oids(tables.IDENTITY), *tables.oids(tables.SETTINGS)]


def row_counts(values: t.Mapping[Oid, Value], address: str) -> dict[str, int]:
    """Return the number of rows of each kind. Raises UserError for an unsupported device."""
    found = {name: values.get(column.at()) for name, column in tables.SIZES.items()}
    units = found["units"]
    if not isinstance(units, int):
        raise UserError(
            "Cannot use %s as a PDU: it has no rPDU2 tables. It is not an APC rack PDU of the second generation, or "
            "the user has no access to them. Check host and username." % address
        )
    if units > 1:
        raise UserError(
            "Cannot use %s: its agent serves %d PDUs on one network port, which this module cannot distinguish. Give "
            "each PDU its own address." % (address, units)
        )
    counts = {name: value if isinstance(value, int) else 0 for name, value in found.items()}
    for name, count in counts.items():
        if not 0 <= count <= _MAX_ROWS:
            raise UserError(
                "Cannot use %s: it reports %d %s, more than any rack PDU has. Check host." % (address, count, name)
            )
    return counts


def display_name(name: str | None, model: str | None, address: str) -> str:
    """Return the name of a PDU in messages."""
    return "%s (%s at %s)" % (name or "The PDU", model or "unknown model", address)


def parse_config(values: t.Mapping[Oid, Value], plurals: t.Collection[str], address: str) -> Config:
    """Return the configuration from variables, with the rows of the kinds in ``plurals``. Raises UserError."""
    counts = row_counts(values, address)
    settings = tables.decode_row(tables.SETTINGS, values)
    objects: Objects = {family.plural: [] for family in FAMILIES}
    objects[SETTING.plural] = [{"id": name, "value": value} for name, value in settings.items()]
    for plural in plurals:
        objects[plural] = ROWS[plural].objects(values, counts[plural])
    for item in objects[OUTLET.plural]:
        item["command"] = None  # outlets do not report past commands
    for item in objects[RECEIVER.plural]:
        if not item.get("community", "").strip("*"):
            item.pop("community", None)  # hidden by the PDU
    identity = tables.decode_row(tables.IDENTITY, values)
    identity["power_rating"] = tables.kilowatts(identity.get("power_rating"))
    return Config(address, identity, counts, objects)


def desired_objects(params: Object, actual: Config) -> Objects:
    """Return the desired objects of the module's option. Raises UserError for values invalid on this PDU."""
    if params.get("outlets") and not actual.switched:
        raise UserError(
            "Cannot set outlets on %s: this model cannot switch its outlets. Omit outlets, or use a switched model, "
            "like an AP89xx." % actual.name
        )
    settings = [{"id": name, "value": params[name]} for name in tables.SETTINGS if params.get(name) is not None]
    _check_settings(settings, actual)
    objects: Objects = {
        SETTING.plural: settings,
        PHASE.plural: _rows(PHASE, params, actual, lambda item: actual.identity.get("phase_breaker")),
        BANK.plural: _rows(BANK, params, actual, lambda item: item.get("breaker")),
        RECEIVER.plural: [_set_options(item) for item in params.get("trap_receivers") or ()],
        OUTLET.plural: [_set_options(item) for item in params.get("outlets") or ()],
    }
    _check_receivers(objects[RECEIVER.plural], actual)
    _check_exists(OUTLET, objects[OUTLET.plural], actual)
    for item in objects[OUTLET.plural]:
        for name in _OUTLET_COLUMNS:
            if name in item:
                encode(tables.OUTLETS.columns[name], item[name], _label(OUTLET, item["number"], name))
    return objects


def _set_options(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def _check_settings(settings: list[Object], actual: Config) -> None:
    now = {item["id"]: item["value"] for item in actual.objects[SETTING.plural]}
    for item in settings:
        if item["id"] not in now:
            raise UserError("Cannot set %s on %s: the model does not have it. Omit it." % (item["id"], actual.name))
        column = tables.SETTINGS[item["id"]]
        value = encode(column, item["value"], item["id"])
        item["value"] = tables.decode(column, value)
    changed = {**now, **{item["id"]: item["value"] for item in settings}}
    if any(item["id"] in _THRESHOLDS for item in settings):
        _check_order(actual.name, changed, actual.identity.get("power_rating"), "kW")


def _rows(family: Family, params: Object, actual: Config, breaker: t.Callable[[Object], t.Any]) -> list[Object]:
    """Return phases or banks with thresholds; an item without number applies to all without their own item."""
    items = [_set_options(item) for item in params.get(family.plural) or ()]
    general = [item for item in items if "number" not in item]
    if len(general) > 1:
        raise UserError(
            "Cannot set %s: two items have no number, so both apply to all of them. Remove one." % family.plural
        )
    own = [item for item in items if "number" in item]
    _check_exists(family, own, actual)
    now = {item["number"]: item for item in actual.objects[family.plural]}
    if general:
        named = {item["number"] for item in own}
        own = [{**general[0], **item} for item in own]
        own += [{"number": number, **general[0]} for number in now if number not in named]
    for item in own:
        unreported = family.unreported(item, now[item["number"]])
        if unreported:
            raise UserError(
                "Cannot set %s of %s %d on %s: the PDU does not have it. Remove it."
                % (unreported[0], family.title, item["number"], actual.name)
            )
        for name in _THRESHOLDS:
            if name in item:
                encode(ROWS[family.plural].columns[name], item[name], _label(family, item["number"], name))
        changed = {**now[item["number"]], **item}
        label = "%s %d of %s" % (family.title, item["number"], actual.name)
        _check_order(label, changed, breaker(changed), "A")
    return own


def _check_exists(family: Family, items: list[Object], actual: Config) -> None:
    numbers = [item["number"] for item in actual.objects[family.plural]]
    for item in items:
        if item["number"] not in numbers:
            existing = "%s to %s" % (min(numbers), max(numbers)) if numbers else "none"
            raise UserError(
                "Cannot set %s %d on %s: it has %s. Correct the number, or remove it."
                % (family.title, item["number"], actual.name, existing)
            )


def _check_order(label: str, item: Object, breaker: t.Any, unit: str) -> None:
    values = [item[name] for name in _THRESHOLDS if name in item]
    if values != sorted(values):
        raise UserError(
            "Cannot set the thresholds of %s to %s: they must be in ascending order."
            % (label, ", ".join("%s %g %s" % (name, item[name], unit) for name in _THRESHOLDS if name in item))
        )
    if breaker and "overload" in item and item["overload"] > breaker:
        raise UserError(
            "Cannot set overload of %s to %g %s: the rating is %g %s. Set at most the rating."
            % (label, item["overload"], unit, breaker, unit)
        )


def _check_receivers(items: list[Object], actual: Config) -> None:
    now = {item["address"] for item in actual.objects[RECEIVER.plural]}
    free = len(_free(actual))
    for item in items:
        item["address"] = str(tables.address(item["address"], "address of a trap receiver"))
        if item["address"] in now - {_UNSET_ADDRESS}:
            continue
        if item["address"] == _UNSET_ADDRESS or "community" not in item:
            raise UserError(
                "Cannot add trap receiver %s to %s: it needs an address and a community. Set both."
                % (item["address"], actual.name)
            )
        free -= 1
        if free < 0:
            raise UserError(
                "Cannot add trap receiver %s to %s: all %d receivers are in use. Remove one in the web "
                "interface of the PDU." % (item["address"], actual.name, actual.sizes[RECEIVER.plural])
            )
        item.setdefault("enabled", True)


def _free(actual: Config) -> list[Object]:
    """Return the rows of unset trap receivers."""
    return [item for item in actual.objects[RECEIVER.plural] if item["address"] == _UNSET_ADDRESS]


@dataclass(frozen=True)
class Write:
    """A variable to write, with its object. ``description`` names variable and value in messages.

    A ``command`` must not run twice; other variables show whether it ran. A ``secret`` may be unreadable.
    """

    family: Family
    key: t.Any
    oid: Oid
    value: Value
    description: str
    command: str = ""
    secret: bool = False


def _label(family: Family, key: t.Any, name: str) -> str:
    return "%s of %s %s" % (name, family.title, key)


def writes(steps: t.Sequence[Step], actual: Config) -> list[Write]:
    """Return the variables to write for the steps: settings before commands."""
    free = _free(actual)
    found: list[Write] = []
    for step in steps:
        if step.action is not Action.NONE and step.desired is not None:
            found += _WRITERS[step.family.kind](step.desired, step, free)
    settings = [write for write in found if write.family is SETTING]
    now = {item["id"]: item["value"] for item in actual.objects[SETTING.plural]}
    changes = {step.key: step.desired["value"] for step in steps if step.family is SETTING and step.desired}
    others = [write for write in found if write.family is not SETTING]
    return [*_in_valid_order(settings, now, changes), *sorted(others, key=lambda write: bool(write.command))]


def _in_valid_order(found: list[Write], now: Object, changes: Object) -> list[Write]:
    """Order the writes of thresholds so that they are ascending after each: an agent may check each separately."""
    falls = changes.get("near_overload", now.get("near_overload", 0)) < now.get("near_overload", 0)
    return found if falls else found[::-1]


def _setting(item: Object, step: Step, free: list[Object]) -> list[Write]:
    column = tables.SETTINGS[item["id"]]
    value = encode(column, item["value"], item["id"])
    return [Write(SETTING, item["id"], column.at(UNIT), value, _describe(item["id"], column, item["value"]))]


def _thresholds(item: Object, step: Step, free: list[Object]) -> list[Write]:
    before = step.before or {}
    changed = [f.name for f in step.family.fields if f.differs(item, before)]
    return _in_valid_order([_write(step, before["row"], name, item[name]) for name in changed], before, item)


def _receiver(item: Object, step: Step, free: list[Object]) -> list[Write]:
    if step.before is None:
        row = free.pop(0)
        # Skip values that the row already has: they must not count as written if the request fails.
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
            description = "%s %s of outlet %d" % (name, item[name], item["number"])
            value = column.names[_COMMANDS[item[name]]]
            found.append(
                Write(OUTLET, item["number"], column.at(before["row"]), value, description, command=item[name])
            )
    return found


def _write(step: Step, row: int, name: str, value: t.Any) -> Write:
    column = ROWS[step.family.plural].columns[name]
    secret = name == "community"
    label = _label(step.family, step.key, name if secret else _describe(name, column, value))
    return Write(step.family, step.key, column.at(row), encode(column, value, label), label, secret=secret)


def _describe(name: str, column: Column, value: t.Any) -> str:
    """Return a field with its value, for messages."""
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
