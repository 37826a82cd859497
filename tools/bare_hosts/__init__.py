# SPDX-License-Identifier: GPL-3.0-or-later
"""Bare-host run: configure a rack from bare hosts with ``site.yml``, and check its monitoring."""
