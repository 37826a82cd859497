# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kubernetes control plane on loopback, for the operator and its tests."""
