# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with systemd, for trials and the tests of the roles: `python -m tools.hosts up`."""
