# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmarks of the command lines, the controller and the modules."""
