# SPDX-License-Identifier: GPL-3.0-or-later
"""Program in the init container of launchers."""
