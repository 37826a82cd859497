# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the control instance of a vPOD, with network namespaces and a VM."""
