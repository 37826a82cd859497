# SPDX-License-Identifier: GPL-3.0-or-later
"""Real systemd hosts for trials and for the tests of the roles: `python -m tools.hosts up`."""
