# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel of operators, in the dashboard *Admin*."""
