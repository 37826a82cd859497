# SPDX-License-Identifier: GPL-3.0-or-later
"""Racks and controllers that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents_support import Plane, RackProcess


@pytest.fixture
def make_rack(tmp_path: Path) -> Iterator[Callable[..., RackProcess]]:
    racks: list[RackProcess] = []

    def make(count: int, **settings: Any) -> RackProcess:
        racks.append(RackProcess(tmp_path, count, **settings))
        return racks[-1]

    yield make
    for rack in racks:
        rack.close()


@pytest.fixture
def make_plane(tmp_path: Path, make_rack: Any) -> Iterator[Callable[..., Plane]]:
    planes: list[Plane] = []

    def make(rack: RackProcess, **options: Any) -> Plane:
        planes.append(Plane(tmp_path / "vipu.db", rack, **options))
        return planes[-1]

    yield make
    for plane in planes:
        plane.close()


@pytest.fixture
def plane(make_rack: Any, make_plane: Any) -> Plane:
    """Eight machines, all up."""
    made: Plane = make_plane(make_rack(8))
    made.wait_up()
    return made
