# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel *IPUs* of operators, below *Compute*."""

PANEL = "ipus"
PANEL_DASHBOARD = "admin"
PANEL_GROUP = "compute"
ADD_PANEL = "openipu.dashboard.panels.admin.panel.IPUs"
