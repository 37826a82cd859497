# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the program ``openipu-pod``."""
