# SPDX-License-Identifier: GPL-3.0-or-later
"""A real OpenStack on loopback, for trials and for the tests: `python -m tools.openstack up`."""
