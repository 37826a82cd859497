# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole rack brought up from bare hosts with ``site.yml``, and watched while something breaks."""
