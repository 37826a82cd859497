# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel of tenants, in the dashboard *Project*."""
