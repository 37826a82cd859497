# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that compute the stored line of a setting; `statements` refers to them by name.

A rule takes a `Change` and returns the line to store, or None for the default. It may also change other settings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from openipu.twin.devices.eos.config.grammar import CliError, Match
from openipu.twin.devices.eos.config.language import Statement
from openipu.twin.devices.eos.config.tree import Block, Config, Slot
from openipu.twin.devices.eos.config.users import User, change_user, parse_user
from openipu.twin.devices.eos.ports import vlan_set, vlan_text

EVERY_VLAN = frozenset(range(1, 4095))


@dataclass
class Change:
    """Change of one setting: its place, its statement and the parsed command."""

    config: Config
    block: Block
    rank: int
    statement: Statement
    match: Match
    slot: Slot
    text: str
    engine: str = ""
    entered: str = ""

    @property
    def stored(self) -> str | None:
        """Line that is stored before the change."""
        item = self.block.items.get((self.rank, self.slot))
        return item if isinstance(item, str) else None


def _allowed_vlans(change: Change) -> str | None:
    start = "switchport trunk allowed vlan"
    kept = (change.stored or f"{start} 1-4094")[len(start) :].strip()
    vlans = frozenset() if kept == "none" else vlan_set(kept)
    *verb, value = change.match.words[4:]
    match (verb, value):
        case ([], "all"):
            vlans = EVERY_VLAN
        case ([], "none"):
            vlans = frozenset()
        case ([], _):
            vlans = vlan_set(value)
        case (["add"], _):
            vlans |= vlan_set(value)
        case (["remove"], _):
            vlans -= vlan_set(value)
        case _:
            vlans = EVERY_VLAN - vlan_set(value)
    return None if vlans == EVERY_VLAN else f"{start} {vlan_text(vlans) or 'none'}"


def _channel_group(change: Change) -> str | None:
    change.config.interface(f"Port-Channel{change.match.values[0]}")
    return change.text


def _vlan_name(change: Change) -> str | None:
    number = int(change.block.head.split()[1])
    own = "default" if number == 1 else f"VLAN{number:04d}"
    return None if change.match.values[0] == own else change.text


def _one_address(change: Change) -> str | None:
    for key in [key for key in change.block.items if key[1] in {("ip", "address"), ("ip", "address", "dhcp")}]:
        del change.block.items[key]
    return change.text


def _portfast(change: Change) -> str | None:
    mode = change.match.words[2:]
    if mode == ("normal",):
        return None
    return "spanning-tree portfast network" if mode == ("network",) else "spanning-tree portfast"


def _name_server(change: Change) -> str | None:
    if change.slot[2] != "vrf":
        change.slot = ("ip", "name-server", "vrf", "default", change.slot[2])
    return " ".join(change.slot)


def _dns_domain(change: Change) -> str | None:
    return f"dns domain {change.match.values[0]}"


def _ntp_source(change: Change) -> str | None:
    return f"ntp local-interface {change.match.values[0]}"


def _snmp_community(change: Change) -> str | None:
    return change.text if re.search(r" r[ow]( |$)", change.text) else f"{change.text} ro"


def _banner(change: Change) -> str | None:
    return "\n".join([change.text, *change.entered.rstrip("\n").split("\n"), "EOF"])


def _sequence(change: Change) -> str | None:
    numbered = change.match.values[0].isdigit()
    if numbered:
        number = change.match.values[0]
    else:
        number = str(max((int(key[1][0]) for key in change.block.items), default=0) + 10)
    change.slot = (number,)
    return change.text if numbered else f"{number} {change.text}"


def _qos_map(change: Change) -> str | None:
    """Return the line of a traffic class, without values that map to it by default.

    A value that moves to this class leaves the line of its previous class. Example of a command:
    `qos map dscp 24 25 to traffic-class 3`.
    """
    kind = change.match.words[2]
    read = re.fullmatch(r"([\d ]+) to traffic-class ([0-7])", change.match.values[-1])
    top = 7 if kind == "cos" else 63
    if not read or any(int(value) > top for value in read[1].split()):
        at = len(change.match.words) - 1
        raise CliError(1002, f"Invalid input (at token {at}: '{change.match.values[-1].split()[-1]}')")
    values = {int(value) for value in read[1].split()}
    for key in [key for key in change.block.items if key[1][:3] == ("qos", "map", kind)]:
        line = str(change.block.items.pop(key)).split()
        kept = {int(value) for value in line[3 : line.index("to")]}
        if key[1][3] == read[2]:
            values |= kept
        elif kept - values:
            left = " ".join(str(value) for value in sorted(kept - values))
            change.block.items[key] = f"qos map {kind} {left} to traffic-class {key[1][3]}"
    change.slot = ("qos", "map", kind, read[2])
    defaults = {value for value in values if _default_class(value if kind == "cos" else value // 8) == int(read[2])}
    if values <= defaults:
        return None
    return f"qos map {kind} {' '.join(str(value) for value in sorted(values - defaults))} to traffic-class {read[2]}"


def _default_class(priority: int) -> int:
    """Return the default traffic class of a priority: 0 and 1 are swapped (802.1Q)."""
    return {0: 1, 1: 0}.get(priority, priority)


def _snmp_user(change: Change) -> str | None:
    """Return the line of an SNMPv3 user with localized keys (RFC 3414, 2.6): EOS never prints passwords."""
    words = list(change.match.words)
    tail = change.match.values[-1].split() if len(change.match.values) > 3 else []
    if words[4] == "v3" and tail and tail[0] == "auth":
        if len(tail) not in {3, 6} or tail[1] not in _HASHES or (len(tail) == 6 and tail[3] != "priv"):
            raise CliError(1002, f"Invalid input (at token {len(words) - 1}: '{tail[-1]}')")
        keys = [tail[0], tail[1], _localized(tail[2], tail[1], change.engine)]
        if len(tail) == 6:
            length = {"des": 16, "aes": 16, "aes192": 24, "aes256": 32}.get(tail[4], 16)
            keys += ["priv", tail[4], _localized(tail[5], tail[1], change.engine)[: 2 * length]]
        return " ".join([*words[:5], "localized", change.engine, *keys])
    return change.text


_HASHES = {"md5": "md5", "sha": "sha1", "sha224": "sha224", "sha256": "sha256", "sha384": "sha384", "sha512": "sha512"}


def _localized(password: str, algorithm: str, engine: str) -> str:
    name = _HASHES[algorithm]
    million = 1 << 20
    start = hashlib.new(name, (password.encode() * (million // len(password) + 1))[:million]).digest()
    return hashlib.new(name, start + bytes.fromhex(engine) + start).hexdigest()


def _user(change: Change) -> str | None:
    """Return the line of a user, merged with the stored one. The key for SSH has a line of its own."""
    if change.slot[2:] in {("ssh-key",), ("sshkey",)}:
        change.slot = (*change.slot[:2], "ssh-key")
        return " ".join([*change.slot, change.match.values[-1]])
    stored = change.stored
    user = parse_user(stored) if stored else User(change.match.values[0])
    return change_user(user, change.match.values[-1].split()).line


RULES: dict[str, Callable[[Change], str | None]] = {
    "allowed_vlans": _allowed_vlans,
    "banner": _banner,
    "channel_group": _channel_group,
    "dns_domain": _dns_domain,
    "name_server": _name_server,
    "ntp_source": _ntp_source,
    "one_address": _one_address,
    "portfast": _portfast,
    "qos_map": _qos_map,
    "sequence": _sequence,
    "snmp_community": _snmp_community,
    "snmp_user": _snmp_user,
    "user": _user,
    "vlan_name": _vlan_name,
}
