# SPDX-License-Identifier: GPL-3.0-or-later
"""Database versions, one module each. Never change a released one."""
