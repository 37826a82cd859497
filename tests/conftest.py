# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

from tools.suites import report

# The duration of one example depends on the load of the machine; pytest-timeout limits the whole test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# A script starts background jobs with SIGINT ignored, and so would start the programs of these tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hook of pytest: report the session to the runner of suites.
pytest_terminal_summary = report.pytest_terminal_summary
