# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of a switch: language, parser, editor and sessions."""
