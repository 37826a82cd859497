# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the execution environment, and of jobs in it as AWX runs them."""
