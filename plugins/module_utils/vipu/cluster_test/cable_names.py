# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of chassis ports, links and cables of IPU-Machines in messages, as ``twin fault`` reads them. No I/O.

``ag03:5`` is an IPU-Link port, ``ag03:gw1`` a GW-Link port, ``ag03:sync6`` a Sync-Link port, and ``ag03:internal4`` a
link inside a machine. Lines that Graphcore's guide shows keep the form of the guide.
"""

from __future__ import annotations

PREFIXES = {"IPU-Link": "", "GW-Link": "gw", "Sync-Link": "sync"}  # by kind, before the number on the chassis


def port_name(machine: str, kind: str, port: int) -> str:
    """Return the name of a chassis port."""
    return link_name(machine, "%s%d" % (PREFIXES[kind], port))


def link_name(machine: str, link: str) -> str:
    """Return the name of a link of a machine. ``link`` is its name in the agent API, such as ``internal4``."""
    return "%s:%s" % (machine, link)


def cable_name(a: object, b: object) -> str:
    """Return the name of a cable between two ports."""
    return "%s <--> %s" % (a, b)
