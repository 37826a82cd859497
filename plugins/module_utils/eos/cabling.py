# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether devices are in the ports where they belong, from what a switch sees of them. Pure.

A device is known by the MAC addresses that the switch has learnt, and by the name that it tells with
LLDP. Who has said nothing yet was not seen, which is no reason to call anything wrong.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass

from ..reconcile import Object


@dataclass(frozen=True)
class Seen:
    """What a switch sees: ports that are up, those of each port-channel, and who was heard where."""

    up: frozenset[str]
    known: frozenset[str]  # all ports
    members: t.Mapping[str, str]  # port -> its port-channel
    macs: t.Mapping[str, str]  # MAC -> port or port-channel
    names: t.Mapping[str, tuple[str, ...]]  # port -> names heard there by LLDP


@dataclass(frozen=True)
class Finding:
    """One cable that is not as it should be: ``wrong_port``, ``link_down`` or ``no_port``."""

    kind: str
    device: str
    connector: str
    port: str
    found: str | None
    reason: str


def seen(status: Object, lldp: Object, macs: Object) -> Seen:
    """From what ``show interfaces status``, ``show lldp neighbors`` and ``show mac address-table`` tell."""
    ports: Object = status.get("interfaceStatuses", {})
    names: dict[str, list[str]] = {}
    for row in lldp.get("lldpNeighbors", []):
        names.setdefault(row["port"], []).append(_short(row["neighborDevice"]))
    return Seen(
        frozenset(name for name, item in ports.items() if item.get("linkStatus") == "connected"),
        frozenset(ports),
        {name: group for name, item in ports.items() if (group := _channel(item))},
        {row["macAddress"].lower(): row["interface"] for row in macs.get("unicastTable", {}).get("tableEntries", [])},
        {port: tuple(heard) for port, heard in names.items()},
    )


def check(cables: t.Sequence[Object], what: Seen) -> list[Object]:
    """Every cable that is wrong. A cable has ``device``, ``connector``, ``port``, and ``macs`` where they are known."""
    own: dict[str, set[str]] = {}
    for cable in cables:
        places = own.setdefault(_short(cable["device"]), set())
        places.update([cable["port"], *_learnt(cable, what).values()])
    heard: dict[str, list[str]] = {}
    for port in sorted(what.names, key=_natural):
        for name in what.names[port]:
            heard.setdefault(name, []).append(port)
    # Where a device speaks and none of its cables belongs, or is known to be. It does not say by which connector:
    # one place for each of its cables that are missing.
    strays = {device: [port for port in heard.get(device, ()) if port not in ports] for device, ports in own.items()}
    findings = []
    for cable in cables:
        finding = _check(cable, what, strays)
        if finding:
            findings.append(asdict(finding))
    return findings


def _check(cable: Object, what: Seen, strays: dict[str, list[str]]) -> Finding | None:
    device, connector, port = cable["device"], cable["connector"], cable["port"]
    end = "%s %s" % (device, connector)

    def finding(kind: str, found: str | None, reason: str) -> Finding:
        return Finding(kind, device, connector, port, found, reason)

    def moved(found: str, how: str) -> Finding:
        return finding(
            "wrong_port", found, "%s is in %s (%s) and belongs in %s: move its cable." % (end, found, how, port)
        )

    if port not in what.known:
        return finding("no_port", None, "The switch has no %s, where %s belongs." % (port, end))
    here = (port, what.members.get(port))
    learnt = _learnt(cable, what)
    for mac, there in learnt.items():
        if there not in here:
            return moved(there, "MAC %s was learnt there" % mac)
    heard = what.names.get(port, ())
    if _short(device) not in heard and not learnt:
        if strays[_short(device)]:
            return moved(strays[_short(device)].pop(0), "it said so by LLDP")
        others = [name for name in heard if name in strays]
        if others:
            return finding(
                "wrong_port", None, "%s is in %s, where %s belongs (it said so by LLDP)." % (others[0], port, end)
            )
    if port not in what.up:
        return finding(
            "link_down", None, "There is no link at %s: check the cable of %s, and whether it is on." % (port, end)
        )
    return None


def _learnt(cable: Object, what: Seen) -> dict[str, str]:
    """Where the MACs of a cable were learnt."""
    return {mac: what.macs[mac.lower()] for mac in cable.get("macs") or () if mac.lower() in what.macs}


def _natural(port: str) -> list[t.Any]:
    """Names with numbers in them in the order of the numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", port)]


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _channel(item: Object) -> str | None:
    """The port-channel that a port is in, as its status says it: ``in Po1``."""
    explanation = item.get("vlanInformation", {}).get("vlanExplanation", "")
    if explanation.startswith("in Po"):
        return "Port-Channel%s" % explanation[len("in Po") :]
    return None
