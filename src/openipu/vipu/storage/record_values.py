# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of records and of their parts, for JSON."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any

from openipu.vipu.domain.model import (
    Agent,
    Allocation,
    Certificate,
    Cluster,
    Device,
    Kind,
    Partition,
    PlacedIpu,
    RevokedKey,
    User,
)

SORTS: dict[Kind, Any] = {sort.kind: sort for sort in (Agent, Cluster, Allocation, Partition, User, RevokedKey)}
"""Class of the records of each kind."""

values = {
    sort: attrgetter(*(field.name for field in fields(sort)))
    for sort in (*SORTS.values(), PlacedIpu, Device, Certificate)
}
"""For each class, the function that returns the values of all fields, in declared order."""


def part(value: Any) -> Any:
    """Return the values of a part of a record; ``default`` of a JSON encoder."""
    return values[type(value)](value)
