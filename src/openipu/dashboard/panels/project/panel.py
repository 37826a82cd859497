# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry of the menu of tenants."""

from __future__ import annotations

import horizon


class IPUs(horizon.Panel):
    """IPUs of the project."""

    name = "IPUs"
    slug = "ipus"
    permissions = ("openstack.services.compute",)
    urls = "openipu.dashboard.panels.project.urls"
