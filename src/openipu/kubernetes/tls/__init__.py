# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving certificates: issue, read from mounted files, and replace without a restart."""
