# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenStack on loopback, for trials and tests: `python -m tools.openstack up`."""
