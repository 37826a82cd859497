# SPDX-License-Identifier: GPL-3.0-or-later
"""Translation of IPv4 addresses to loopback and back. No I/O.

Each /16 network of the POD becomes one of the form 127.x.0.0/16: 10.3.1.101 becomes 127.x.1.101. Other addresses and
host names become addresses of one more such network. The translation is reversible.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from openipu.shared.pod import model

_ADDRESS = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?:/(\d{1,2}))?(?![\w]|\.\d)")
_HALF = 16  # bits
_LOW = (1 << _HALF) - 1
_LOOPBACK = 127 << 24


class Translator:
    """Translator for the networks of a POD. ``first`` is the second octet of the first network on loopback."""

    def __init__(self, pod: model.Pod, first: int) -> None:
        subnets = [ipaddress.IPv4Network(each.subnet) for each in pod.networks.values() if each.subnet]
        self._subnets = set(subnets)
        halves = sorted({int(subnet.network_address) >> _HALF for subnet in subnets})
        self._octets = {half: first + number for number, half in enumerate(halves)}
        self._halves = {octet: half for half, octet in self._octets.items()}
        self._others = first + len(halves)
        self._forward: dict[str, str] = {}
        self._back: dict[str, str] = {}

    @property
    def octets(self) -> range:
        """Second octets of the addresses on loopback."""
        return range(min(self._halves, default=self._others), self._others + 1)

    def host(self, text: str) -> str:
        """Return the loopback address of an address or host name."""
        if text in self._forward:
            return self._forward[text]
        try:
            number = int(ipaddress.IPv4Address(text))
        except ValueError:
            return self._assigned(text)
        half, low = number >> _HALF, number & _LOW
        if half in self._octets:
            return str(ipaddress.IPv4Address(_LOOPBACK | self._octets[half] << _HALF | low))
        for subnet in self._subnets:  # larger than /16
            if number in range(int(subnet.network_address), int(subnet.broadcast_address)):
                octet = self._octets[int(subnet.network_address) >> _HALF]
                return self._record(text, octet, _LOW - 1 - len(self._forward))
        return self._assigned(text)

    def subnet(self, text: str) -> str:
        """Return the loopback network of a subnet of the POD. It has at most 65536 addresses."""
        network = ipaddress.IPv4Network(text)
        return f"{self.host(str(network.network_address))}/{max(network.prefixlen, _HALF)}"

    def text(self, text: str) -> str:
        """Return a text with loopback addresses. Networks outside the POD, and masks, are kept: nothing connects."""

        def replace(match: re.Match[str]) -> str:
            address, prefix = match.groups()
            if not _is_host(address):
                return match[0]
            if prefix is None:
                return self.host(address)
            try:
                network = ipaddress.IPv4Network(match[0], strict=False)
            except ValueError:
                return match[0]
            if network in self._subnets:
                return f"{self.host(address)}/{max(network.prefixlen, _HALF)}"
            return match[0]

        return _ADDRESS.sub(replace, text)

    def original(self, text: str) -> str:
        """Return a text with the addresses and host names of the user."""
        return _ADDRESS.sub(lambda match: self._reverse(match[1]) + (f"/{match[2]}" if match[2] else ""), text)

    def _reverse(self, address: str) -> str:
        if address in self._back:
            return self._back[address]
        first, octet, *low = address.split(".")
        half = self._halves.get(int(octet)) if first == "127" else None
        return ".".join([str(half >> 8), str(half & 255), *low]) if half is not None else address

    def _assigned(self, name: str) -> str:
        """Return a new address for a host outside the networks of the POD."""
        return self._record(name, self._others, len(self._forward) + 1)

    def _record(self, name: str, octet: int, low: int) -> str:
        address = str(ipaddress.IPv4Address(_LOOPBACK | octet << _HALF | low))
        self._forward[name], self._back[address] = address, name
        return address


def choose(pod: model.Pod, preferred: int, usable: Callable[[Translator], bool]) -> Translator | None:
    """Return the first usable translator, or None. ``preferred`` is the first octet to try, 16 to 240."""
    for first in _octets(preferred):
        found = Translator(pod, first)
        if usable(found):
            return found
    return None


def _octets(preferred: int) -> Iterable[int]:
    lowest, step = 16, 8
    count = (240 - lowest) // step
    start = (preferred - lowest) // step
    return (lowest + (start + number) % count * step for number in range(count))


def _is_host(address: str) -> bool:
    """Return whether an address can be that of a host: no mask, wildcard, multicast or loopback address."""
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_multicast or parsed.is_unspecified or int(parsed) >> 28 == 15)
