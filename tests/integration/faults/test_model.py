# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller does what the simple model says (longer: tests/soak)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from machine import ControllerMachine

pytestmark = pytest.mark.timeout(400)  # seconds; much less, unless there is a failure to be made simple

TestController = ControllerMachine.TestCase
TestController.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
