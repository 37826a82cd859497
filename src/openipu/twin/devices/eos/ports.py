# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface names of a switch: ports by model, ranges, short forms, and order. Also lists of VLANs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Kinds in the order of `show running-config`, with the short form that EOS prints in tables.
KINDS = {"Port-Channel": "Po", "Ethernet": "Et", "Loopback": "Lo", "Management": "Ma", "Vlan": "Vl"}
_RANK = {kind: rank for rank, kind in enumerate(KINDS)}
_LIMITS = {"Port-Channel": (1, 2000), "Loopback": (0, 1000), "Vlan": (1, 4094)}
_LAG = re.compile(r"\s*p[a-z]*-[a-z]+", re.IGNORECASE)  # `Port-Channel`, and its other spellings
_NAME = re.compile(r"([A-Za-z-]+?)\s*(\d+(?:/\d+)*)")

MODELS: dict[str, tuple[str, ...]] = {
    "DCS-7060CX-32S-F": (*(f"Ethernet{n}/1" for n in range(1, 33)), "Ethernet33", "Ethernet34", "Management1"),
    "DCS-7010T-48-F": (*(f"Ethernet{n}" for n in range(1, 53)), "Management1"),
}


def kind_of(name: str) -> str:
    """Return the kind of an interface: the letters before its number."""
    return name.rstrip("0123456789/")


def numbers_of(name: str) -> tuple[int, ...]:
    """Return the numbers of an interface, module first."""
    return tuple(int(part) for part in name[len(kind_of(name)) :].split("/"))


def natural(name: str) -> tuple[int, tuple[int, ...]]:
    """Return the sort key of an interface in the order of EOS."""
    return _RANK.get(kind_of(name), len(_RANK)), numbers_of(name)


def short(name: str) -> str:
    """Return the short form of EOS for tables: `Et1/1`, `Po1`."""
    kind = kind_of(name)
    return KINDS.get(kind, kind) + name[len(kind) :]


class Ports:
    """Physical ports of one switch. Interfaces of other kinds exist as soon as they are configured."""

    def __init__(self, physical: Iterable[str]) -> None:
        self.physical = tuple(sorted(set(physical), key=natural))
        self._known = frozenset(self.physical)

    @classmethod
    def for_model(cls, model: str) -> Ports:
        """Return the ports of a model.

        Raises:
            ValueError: for an unknown model, whose ports must be given.
        """
        if model not in MODELS:
            raise ValueError(
                f"Cannot list the ports of switch model '{model}': unknown model. Give the list of its ports."
            )
        return cls(MODELS[model])

    def exists(self, name: str) -> bool:
        """Return whether the switch has this port, or can have this interface."""
        if name in self._known:
            return True
        low, high = _LIMITS.get(kind_of(name), (1, 0))
        numbers = numbers_of(name)
        return len(numbers) == 1 and low <= numbers[0] <= high

    def names(self, text: str) -> list[str]:
        """Return the interfaces of a name or range, in order.

        Ranges in the form of EOS: `Ethernet1-8`, `Ethernet1/1-4`, `Ethernet1/1-8/1`, `Ethernet1,3,5-7`. Short
        forms (`Et1`, `ethernet1`) are accepted everywhere, unlike abbreviated commands.

        Raises:
            ValueError: when a name is invalid or the switch has no such port.
        """
        found: list[str] = []
        kind = ""
        before: tuple[int, ...] = ()
        for item in text.split(","):
            kind_with_dash = _LAG.match(item)
            head = kind_with_dash[0] if kind_with_dash else ""
            first, _, last = item[len(head) :].partition("-")
            first = head + first
            match = _NAME.fullmatch(first.strip())
            if match:
                kind = _kind(match[1])
                numbers = match[2]
            elif kind and first.strip().replace("/", "").isdigit():
                numbers = first.strip()
            else:
                raise ValueError(text)
            start = tuple(int(part) for part in numbers.split("/"))
            if len(start) < len(before):
                start = before[: len(before) - len(start)] + start
            before = start
            found += self._between(kind, start, last.strip()) if last else [_join(kind, start)]
        for name in found:
            if not self.exists(name):
                raise ValueError(name)
        return sorted(set(found), key=natural)

    def _between(self, kind: str, start: tuple[int, ...], last: str) -> list[str]:
        match = _NAME.fullmatch(last)
        ends = tuple(int(part) for part in (match[2] if match else last).split("/"))
        if len(ends) < len(start):
            ends = start[: len(start) - len(ends)] + ends
        elif len(start) < len(ends):
            start = start + ends[len(start) :]
        if len(ends) != len(start) or ends < start:
            raise ValueError(last)
        if kind in _LIMITS:
            return [_join(kind, (number,)) for number in range(start[0], ends[0] + 1)]
        ports = [
            name
            for name in self.physical
            if kind_of(name) == kind and len(numbers_of(name)) == len(start) and start <= numbers_of(name) <= ends
        ]
        for end in (start, ends):
            if _join(kind, end) not in ports:
                raise ValueError(_join(kind, end))
        return ports


def _join(kind: str, numbers: Sequence[int]) -> str:
    return kind + "/".join(str(number) for number in numbers)


def _kind(text: str) -> str:
    if text in KINDS:
        return text
    fits = [kind for kind in KINDS if kind.lower().startswith(text.lower())]
    if len(fits) == 1:
        return fits[0]
    raise ValueError(text)


def vlan_set(text: str) -> frozenset[int]:
    """Return the VLANs of a list like `11-13,20`.

    Raises:
        ValueError: when the text is not a list of VLANs 1 to 4094.
    """
    vlans: set[int] = set()
    for item in text.split(","):
        first, dash, last = item.partition("-")
        low, high = int(first), int(last if dash else first)
        if not 1 <= low <= high <= 4094:
            raise ValueError(text)
        vlans.update(range(low, high + 1))
    return frozenset(vlans)


def vlan_text(vlans: Iterable[int]) -> str:
    """Return a list of VLANs in the form of EOS: `11-13,20`."""
    runs: list[list[int]] = []
    for vlan in sorted(vlans):
        if runs and vlan == runs[-1][1] + 1:
            runs[-1][1] = vlan
        else:
            runs.append([vlan, vlan])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
