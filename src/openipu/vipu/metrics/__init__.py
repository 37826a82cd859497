# SPDX-License-Identifier: GPL-3.0-or-later
"""What controllers and agents tell a monitoring system, in OpenMetrics."""
