# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster tests: ``plan`` says what runs, ``conduct`` asks the agents, the verdicts judge, ``runs`` keeps the last."""
