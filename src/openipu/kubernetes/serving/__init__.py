# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP servers of the programs, and the bodies of their requests."""
