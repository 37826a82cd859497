# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines ``vipu`` and ``vipu-admin``."""
