# SPDX-License-Identifier: GPL-3.0-or-later
"""Description of one kind of objects of the API."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.awx.standin.fields import Field


@dataclass(frozen=True)
class Resource:
    """One kind of objects."""

    name: str
    type: str
    fields: dict[str, Field]
    unique: tuple[str, ...] = ("name",)
    roles: tuple[str, ...] = ()
    lists: dict[str, str] = field(default_factory=dict)  # relations with many objects, by name
    children: dict[str, tuple[str, str]] = field(default_factory=dict)  # objects that refer to this one
    named_url: tuple[str, ...] = ("name",)
    label: str = ""  # name of the kind in messages
    deletable: bool = True
    delete_status: int = 204

    @property
    def identity(self) -> str:
        """Name of the field that names an object."""
        return self.named_url[0]
