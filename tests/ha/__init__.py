# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests with a real etcd: store, leadership, faults of nodes and controllers."""
