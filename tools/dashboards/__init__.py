# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of the Grafana dashboards, drawn from their models and from the metrics of a rack twin."""
