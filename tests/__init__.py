# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the collection and of the package."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Folder of the checkout."""
