# SPDX-License-Identifier: GPL-3.0-or-later
"""Long comparison of the controller with a simple model, by random operations."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.integration.faults.stateful_controller import ControllerMachine


@pytest.mark.soak
def test_controller_against_the_model() -> None:
    run_state_machine_as_test(
        ControllerMachine,
        settings=settings(
            max_examples=500, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
