# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of the cables of the POD model with the observations of a switch. No I/O.

A device is identified by the MAC addresses that the switch has learnt and by its LLDP name. A device without
either is not reported as misplaced.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from ..natural_order import natural
from ..reconcile import Object


@dataclass(frozen=True)
class Observations:
    """Observations of a switch: link states, members of port-channels, MAC addresses and LLDP neighbours."""

    up: frozenset[str]
    ports: frozenset[str]  # all ports
    members: t.Mapping[str, str]  # port -> its port-channel
    macs: t.Mapping[str, str]  # MAC -> port or port-channel
    names: t.Mapping[str, tuple[str, ...]]  # port -> names of LLDP neighbours


@dataclass(frozen=True)
class Finding:
    """One defective cable: ``wrong_port``, ``link_down`` or ``no_port``."""

    kind: str
    device: str
    connector: str
    port: str
    found: str | None
    reason: str


def observe(status: Object, lldp: Object, macs: Object) -> Observations:
    """Combine ``show interfaces status``, ``show lldp neighbors`` and ``show mac address-table``."""
    ports: Object = status.get("interfaceStatuses", {})
    names: dict[str, list[str]] = {}
    for row in lldp.get("lldpNeighbors", []):
        names.setdefault(row["port"], []).append(_short(row["neighborDevice"]))
    return Observations(
        frozenset(name for name, item in ports.items() if item.get("linkStatus") == "connected"),
        frozenset(ports),
        {name: group for name, item in ports.items() if (group := _channel(item))},
        {row["macAddress"].lower(): row["interface"] for row in macs.get("unicastTable", {}).get("tableEntries", [])},
        {port: tuple(found) for port, found in names.items()},
    )


def check(cables: t.Sequence[Object], observed: Observations) -> list[Object]:
    """Return the findings on cables. A cable has ``device``, ``connector``, ``port`` and, if known, ``macs``."""
    expected: dict[str, set[str]] = {}
    for cable in cables:
        places = expected.setdefault(_short(cable["device"]), set())
        places.update([cable["port"], *_locate(cable, observed).values()])
    discovered: dict[str, list[str]] = {}
    for port in sorted(observed.names, key=natural):
        for name in observed.names[port]:
            discovered.setdefault(name, []).append(port)
    # Ports that have a device as LLDP neighbour, without the expected and located ports of its cables. LLDP does not
    # report the connector, so each missing cable of the device takes one of these ports.
    strays = {
        device: [port for port in discovered.get(device, ()) if port not in ports] for device, ports in expected.items()
    }
    findings = []
    for cable in cables:
        finding = _check(cable, observed, strays)
        if finding:
            findings.append(asdict(finding))
    return findings


def _check(cable: Object, observed: Observations, strays: dict[str, list[str]]) -> Finding | None:
    device, connector, port = cable["device"], cable["connector"], cable["port"]
    end = "%s %s" % (device, connector)

    def finding(kind: str, found: str | None, reason: str) -> Finding:
        return Finding(kind, device, connector, port, found, reason)

    def moved(found: str, how: str) -> Finding:
        return finding(
            "wrong_port", found, "%s is in port %s instead of %s (%s). Move its cable." % (end, found, port, how)
        )

    if port not in observed.ports:
        return finding("no_port", None, "The switch has no port %s for %s." % (port, end))
    here = (port, observed.members.get(port))
    learnt = _locate(cable, observed)
    for mac, location in learnt.items():
        if location not in here:
            return moved(location, "MAC address %s learnt there" % mac)
    neighbours = observed.names.get(port, ())
    if _short(device) not in neighbours and not learnt:
        if strays[_short(device)]:
            return moved(strays[_short(device)].pop(0), "LLDP neighbour there")
        others = [name for name in neighbours if name in strays]
        if others:
            return finding(
                "wrong_port",
                None,
                "%s is in port %s, which belongs to %s (LLDP neighbour there)." % (others[0], port, end),
            )
    if port not in observed.up:
        return finding("link_down", None, "Port %s has no link: check the cable and the power of %s." % (port, end))
    return None


def _locate(cable: Object, observed: Observations) -> dict[str, str]:
    """Return the ports that have learnt the MAC addresses of a cable."""
    return {mac: observed.macs[mac.lower()] for mac in cable.get("macs") or () if mac.lower() in observed.macs}


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _channel(item: Object) -> str | None:
    """Return the port-channel of a port from its status (``in Po1``), or None."""
    explanation = item.get("vlanInformation", {}).get("vlanExplanation", "")
    if explanation.startswith("in Po"):
        return "Port-Channel%s" % explanation[len("in Po") :]
    return None
