# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long one example takes depends on what else the machine does; pytest-timeout bounds the whole test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
