# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the parts of awx_content without an AWX."""
