# SPDX-License-Identifier: GPL-3.0-or-later
"""The API between controller and agents: its contract, its limits, and its multicast messages.

``make proto`` generates ``contract`` from ``proto/openipu/vipu/agent/v1``. Do not edit it.
"""
