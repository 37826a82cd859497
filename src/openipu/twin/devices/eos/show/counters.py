# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about the counters of interfaces."""

from __future__ import annotations

from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.counters import NOTHING, Rates, rates_of
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.ports import kind_of, short
from openipu.twin.devices.eos.show.context import ShowContext, selected

COMMANDS = Commands[ShowContext]()
# Counters of errors by the key of eAPI, with their heads in the table. No link of the twin is faulty.
_ERRORS = {
    "fcsErrors": "FCS",
    "alignmentErrors": "Align",
    "symbolErrors": "Symbol",
    "inErrors": "Rx",
    "frameTooShorts": "Runts",
    "frameTooLongs": "Giants",
    "outErrors": "Tx",
}


def totals(context: ShowContext, interface: Interface) -> Rates:
    """Return frames and octets of an interface; those of a port-channel are the sums of its active members."""
    counters = context.switch.counters
    if kind_of(interface.name) == "Port-Channel":
        members = [port for port in context.switch.forwarding.members(interface.name) if port.bundled]
        return sum((counters.of(port.name).totals for port in members), NOTHING)
    return counters.of(interface.name).totals


def detail(context: ShowContext, interface: Interface) -> dict[str, Any]:
    """Return the counters in the JSON form of `show interfaces`."""
    counted, counter = totals(context, interface), context.switch.counters.of(interface.name)
    return {
        "inOctets": int(counted.octets_in),
        "inUcastPkts": 0,
        "inMulticastPkts": int(counted.frames_in),
        "inBroadcastPkts": 0,
        "inTotalPkts": int(counted.frames_in),
        "inDiscards": 0,
        "totalInErrors": 0,
        "inputErrorsDetail": dict.fromkeys(
            ("runtFrames", "giantFrames", "fcsErrors", "alignmentErrors", "symbolErrors", "rxPause"), 0
        ),
        "outOctets": int(counted.octets_out),
        "outUcastPkts": 0,
        "outMulticastPkts": int(counted.frames_out),
        "outBroadcastPkts": 0,
        "outTotalPkts": int(counted.frames_out),
        "outDiscards": 0,
        "totalOutErrors": 0,
        "outputErrorsDetail": dict.fromkeys(("collisions", "lateCollisions", "deferredTransmissions", "txPause"), 0),
        "linkStatusChanges": counter.changes,
        "counterRefreshTime": context.switch.clock(),
    }


def _counted(context: ShowContext, values: tuple[str, ...]) -> list[Interface]:
    context.switch.counters.settle()
    kinds = {"Ethernet", "Management", "Port-Channel"}
    return [one for one in selected(context.switch.forwarding, values) if kind_of(one.name) in kinds]


@COMMANDS.add("show interfaces counters", "show interfaces INTFS counters", privileged=False)
def _counters(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = {one.name: detail(context, one) for one in _counted(context, values)}

    def part(direction: str, word: str) -> str:
        keys = [f"{word}{kind}" for kind in ("Octets", "UcastPkts", "MulticastPkts", "BroadcastPkts")]
        heads = ("Port", *(f"{direction}{kind}" for kind in ("Octets", "UcastPkts", "McastPkts", "BcastPkts")))
        return table(
            heads, [[short(name), *(str(item[key]) for key in keys)] for name, item in found.items()], [18] * 5
        )

    keys = ("Octets", "UcastPkts", "MulticastPkts", "BroadcastPkts", "Discards")
    tree = {
        name: {f"{way}{key}": item[f"{way}{key}"] for way in ("in", "out") for key in keys}
        for name, item in found.items()
    }
    return Output(f"{part('In', 'in')}\n\n{part('Out', 'out')}", {"interfaces": tree})


@COMMANDS.add("show interfaces counters errors", "show interfaces INTFS counters errors", privileged=False)
def _errors(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = _counted(context, values)
    rows = [[short(one.name), *["0"] * len(_ERRORS)] for one in found]
    tree = {one.name: dict.fromkeys(_ERRORS, 0) for one in found}
    return Output(table(("Port", *_ERRORS.values()), rows, [12] * 8), {"interfaceErrorCounters": tree})


@COMMANDS.add("show interfaces counters discards", "show interfaces INTFS counters discards", privileged=False)
def _discards(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = _counted(context, values)
    rows = [[short(one.name), "0", "0"] for one in found]
    tree = {one.name: {"inDiscards": 0, "outDiscards": 0} for one in found}
    text = table(
        ("Port", "InDiscards", "OutDiscards"),
        [*rows, ["---------", "---------", "---------"], ["Totals", "0", "0"]],
        (13, 18, 18),
    )
    return Output(text, {"inDiscardsTotal": 0, "outDiscardsTotal": 0, "interfaces": tree})


@COMMANDS.add("show interfaces counters rates", "show interfaces INTFS counters rates", privileged=False)
def _rates(context: ShowContext, values: tuple[str, ...]) -> Output:
    forwarding = context.switch.forwarding
    rows, tree = [], {}
    for one in _counted(context, values):
        members = [port for port in forwarding.members(one.name) if port.bundled] or [one]
        rates = sum((rates_of(port, forwarding) for port in members), NOTHING)
        bits_in, bits_out = 8 * rates.octets_in, 8 * rates.octets_out
        used = [100 * bits / one.bandwidth if one.bandwidth else 0.0 for bits in (bits_in, bits_out)]
        tree[one.name] = {
            "description": one.description,
            "interval": 300,
            "inBpsRate": bits_in,
            "inPktsRate": used[0],
            "inPpsRate": rates.frames_in,
            "outBpsRate": bits_out,
            "outPktsRate": used[1],
            "outPpsRate": rates.frames_out,
            "lastUpdateTimestamp": context.switch.clock(),
        }
        rows.append(
            [
                short(one.name),
                one.description,
                "5:00",
                f"{bits_in / 10**6:.1f}",
                f"{used[0]:.1f}%",
                f"{rates.frames_in / 1000:.0f}",
                f"{bits_out / 10**6:.1f}",
                f"{used[1]:.1f}%",
                f"{rates.frames_out / 1000:.0f}",
            ]
        )
    heads = ("Port", "Name", "Intvl", "In Mbps", "%", "In Kpps", "Out Mbps", "%", "Out Kpps")
    return Output(table(heads, rows, (9, 11, 8, 8, 7, 7, 8, 7, 8)), {"interfaces": tree})
