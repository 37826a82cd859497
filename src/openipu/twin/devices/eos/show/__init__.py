# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers of the `show` commands, by subject."""
