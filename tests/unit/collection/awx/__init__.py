# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the AWX content."""
