# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller agrees with the simple model (more steps: tests/soak)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.integration.faults.stateful_controller import ControllerMachine

pytestmark = pytest.mark.timeout(400)  # seconds; hypothesis needs them only to reduce a failure

TestController = ControllerMachine.TestCase
TestController.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
