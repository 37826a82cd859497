# SPDX-License-Identifier: GPL-3.0-or-later
"""Grammar of faults: verbs with their arguments, for the command line, for files and for programs. No I/O.

A fault is a line of a verb and its arguments: ``unplug ag03:7`` or ``version ag08 Virm 1.5.1``.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from openipu.shared.pod.topology import INTERNAL_LINKS
from openipu.shared.vipu.cluster_test.cable_names import PREFIXES, port_name

INTERNAL = "internal"  # start of the names of the links inside a machine
_KINDS = {**{kind: kind for kind in PREFIXES}, "IPU-Cluster": "IPU-Link"}  # by their names in outputs
_PRINTED_PORTS = (
    re.compile(r"(?P<agent>[^\s:]+):(?P<number>\d+) \[(?P<kind>\S+)\]"),  # vipu-admin
    re.compile(r"(?P<agent>[^\s:]+) \((?P<kind>\S+) Port (?P<number>\d+)\)"),  # vipu-admin, for misplaced cables
    re.compile(r"(?P<agent>[^\s:]+) (?P<kind>\S+) port (?P<number>\d+)"),  # the rack report of earlier releases
)
_CABLE = re.compile(r"(?:\S+ cable )?(?P<first>.+?) <--> (?P<other>.+)")
_SYNC_CABLE = re.compile(r"(?P<agent>[^\s:]+):(?P<number>\d+) <--> \d+:\S+.*")  # of the Sync-Link test
_LOOSE_END = re.compile(r".*cable .+: not plugged in at (?P<port>\S+)\.")  # of ``twin faults``
_MISPLACED = re.compile(r".*cable .+: in \S+ instead of \S+\.")


class FaultError(ValueError):
    """Raised for an invalid or impossible fault, with a one-line message."""

    error_code = "OPU801"


@dataclass(frozen=True)
class Verb:
    """Arguments and effect of one kind of fault."""

    takes: str  # names of the arguments; [brackets]: optional; ellipsis: repeatable
    does: str

    def fits(self, count: int) -> bool:
        """Return whether the verb accepts this number of arguments."""
        words = self.takes.split()
        needed = sum(not word.startswith("[") for word in words)
        return count >= needed and ("…" in self.takes or count <= len(words))


VERBS = {
    "unplug": Verb("PORT", "pull the cable out of a port"),
    "plug": Verb("PORT", "plug the loose cable end of a port back in"),
    "move": Verb("PORT TO", "move the end of a cable to a free port"),
    "swap": Verb("PORT PORT", "exchange the cables in two ports"),
    "break": Verb("PORT|AGENT:internalN", "break the cable in a port, or a link inside a machine"),
    "errors": Verb(
        "PORT|AGENT:internalN COUNT", "make an IPU-Link correct COUNT errors, now and in every traffic test"
    ),
    "version": Verb("AGENT COMPONENT VERSION", "change the version of a component"),
    "versions": Verb("AGENT COMPONENT=VERSION…", "replace all components of a machine by these"),
    "pfc": Verb("AGENT INTERFACE CLASSES", "set the PFC classes of an interface, which may be a new one: 0,2 or none"),
    "slow": Verb("AGENT|DEVICE SECONDS", "delay every response by SECONDS"),
    "hot": Verb("AGENT DEGREES", "raise the temperature of a machine by DEGREES (°C)"),
    "reject": Verb("AGENT|DEVICE", "make a machine reject the bring-up of IPUs, or a device reject requests"),
    "hang": Verb("AGENT", "make a machine stop responding, with all connections open"),
    "ipu": Verb("AGENT IPU", "make an IPU fail now, also while a partition uses it"),
    "login": Verb("DEVICE", "make a switch or PDU reject all of its users"),
    "sessions": Verb("SWITCH", "make a switch reject new configuration sessions, as if all were in use"),
    "drop": Verb("SWITCH before|after", "drop the connection in the next commit, before or after it takes effect"),
    "stop": Verb("AGENT|DEVICE…", "cut the power of machines and devices, until start or heal"),
    "start": Verb("AGENT|DEVICE…", "start stopped machines and devices"),
    "heal": Verb("[AGENT|DEVICE…]", "remove all faults, of the whole rack or of these"),
}


_ONE_PORT = ("unplug", "plug")  # verbs that accept a whole cable


def _suggestion(word: str) -> str:
    """Return the remedy for an unknown verb: one before a port, the most similar one, in any case, or all of them."""
    if ":" in word:
        return f"Write a verb before the port, such as: unplug {word}"
    similar = difflib.get_close_matches(word.lower(), VERBS, 1)
    return f"Did you mean {similar[0]!r}?" if similar else f"Choose from {', '.join(VERBS)}."


def parse(line: str) -> list[str]:
    """Return the words of a fault: a known verb and its arguments. Raises FaultError."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        raise FaultError(f"Cannot parse {line!r}: a quotation mark is missing. Add it.") from None
    if not words:
        raise FaultError(f"Cannot read a fault from {line!r}: it is empty. Write a verb and its arguments.")
    verb = VERBS.get(words[0])
    if verb is None:
        raise FaultError(f"Cannot apply fault {words[0]!r}: it is unknown. {_suggestion(words[0])}")
    if words[0] in _ONE_PORT and " " not in (port := _cable_port(words[0], " ".join(words[1:]))):
        words[1:] = filter(None, [port])
    if not verb.fits(len(words) - 1):
        raise FaultError(f"Cannot apply {line.strip()!r}: its arguments do not fit. Write {words[0]} {verb.takes}.")
    return [_port(word) for word in words]


def _cable_port(verb: str, text: str) -> str:
    """Return the port of a text: the only one, the loose end of a line of ``twin faults``, or the first of a cable.

    Raises FaultError for a line of the Sync-Link test, which writes ports in another form, and for a misplaced cable.
    """
    if found := _LOOSE_END.fullmatch(text):
        return found["port"]
    if found := _SYNC_CABLE.fullmatch(text):
        port = port_name(found["agent"], "Sync-Link", int(found["number"]))
        raise FaultError(f"Cannot apply '{verb} {text}': this is a line of the Sync-Link test. Write {verb} {port}.")
    if _MISPLACED.fullmatch(text):
        raise FaultError(f"Cannot apply '{verb} {text}': the cable is in a wrong port. Name one port.")
    if found := _CABLE.fullmatch(text):
        return _port(found["first"])
    return _port(text)


def _port(word: str) -> str:
    """Return a port that is written as in a cluster test or in the rack report in the form of the twin."""
    for form in _PRINTED_PORTS:
        if (found := form.fullmatch(word)) and (kind := _KINDS.get(found["kind"])):
            return port_name(found["agent"], kind, int(found["number"]))
    return word


def remedy(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for an unknown name: the most similar one, in any case, or another sentence."""
    names = {each.lower(): each for each in known}
    similar = difflib.get_close_matches(name.lower(), names, 1)
    return f"Did you mean {names[similar[0]]!r}?" if similar else otherwise


def targets(words: Sequence[str]) -> Iterator[str]:
    """Yield the machines and devices in the words of a fault, as ``parse`` returns them."""
    for argument in _arguments(words, "AGENT", "DEVICE", "PORT", "SWITCH", "TO"):
        yield argument.partition(":")[0]


def ports(words: Sequence[str]) -> Iterator[str]:
    """Yield the ports and internal links in the words of a fault, as ``parse`` returns them."""
    return _arguments(words, "PORT", "TO")


def _arguments(words: Sequence[str], *kinds: str) -> Iterator[str]:
    """Yield the arguments of a fault whose names in ``Verb.takes`` start with one of these words."""
    verb, *arguments = words
    takes = VERBS[verb].takes.split()
    for number, argument in enumerate(arguments):
        if takes[min(number, len(takes) - 1)].lstrip("[").startswith(kinds):
            yield argument


def internal_link(text: str) -> tuple[str, str] | None:
    """Return the machine and the name of an internal link; None for the text of a port. Raises FaultError."""
    agent, _, link = text.rpartition(":")
    if not link.startswith(INTERNAL):
        return None
    if link not in {f"{INTERNAL}{number}" for number in range(INTERNAL_LINKS)}:
        raise FaultError(
            f"Cannot find link {text!r}: the machine does not have it. "
            f"Choose from {INTERNAL}0 to {INTERNAL}{INTERNAL_LINKS - 1}."
        )
    return agent, link
