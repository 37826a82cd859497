# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: controllers, a twin with ACTIVE partitions, and rulebooks that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.events.environment import missing
from tests.events.rulebook import Rulebook
from tests.integration.bringup.conftest import deployed, own
from tests.integration.conftest import instant_server, quiet, vipu_process, vipu_server

__all__ = ["deployed", "instant_server", "own", "quiet", "vipu_process", "vipu_server"]


@pytest.fixture
def rulebook() -> Iterator[Callable[..., Rulebook]]:
    """Yield a factory of rulebooks: ``rulebook(name, folder, inventory, **variables)``."""
    if reason := missing():
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:

        def make(*arguments: Any, **variables: Any) -> Rulebook:
            made = Rulebook(*arguments, **variables)
            stack.callback(made.kill)
            return made

        yield make
