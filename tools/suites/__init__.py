# SPDX-License-Identifier: GPL-3.0-or-later
"""Test suites: which exist, which need to run, and the record of those that passed."""
