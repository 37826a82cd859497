# SPDX-License-Identifier: GPL-3.0-or-later
"""Execution environment for AWX, and jobs in it as AWX runs them: `python -m tools.ee build`."""
