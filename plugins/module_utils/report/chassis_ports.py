# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identification of ports and cables in test results and in the report. No I/O."""

from __future__ import annotations

import typing as t

from ..vipu.cluster_test.cable_names import port_name


class ChassisPort(t.NamedTuple):
    """A chassis port: one end of a cable."""

    agent: str
    kind: str
    port: int  # as printed on the chassis

    def __str__(self) -> str:
        """Return the name of the port for messages."""
        return port_name(*self)


Pair = tuple[ChassisPort, ChassisPort]


def port_of(port: t.Mapping[str, t.Any]) -> ChassisPort:
    """Return the port of a test result."""
    return ChassisPort(port["agent"], port["kind"], port["port"])


def pair(one: ChassisPort, other: ChassisPort) -> Pair:
    """Return the cable between two ports, independent of their order."""
    return (one, other) if one < other else (other, one)


def cable(failure: t.Mapping[str, t.Any]) -> Pair | None:
    """Return the cable of a failure, None when the failure concerns no cable."""
    return pair(port_of(failure["a"]), port_of(failure["b"])) if failure["a"] and failure["b"] else None
