# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel *IPUs* of tenants, below *Compute*."""

PANEL = "ipus"
PANEL_DASHBOARD = "project"
PANEL_GROUP = "compute"
ADD_PANEL = "openipu.dashboard.panels.project.panel.IPUs"
ADD_INSTALLED_APPS = ["openipu.dashboard"]
