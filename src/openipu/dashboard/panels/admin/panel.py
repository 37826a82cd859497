# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry of the menu of operators."""

from __future__ import annotations

import horizon
from openstack_auth import utils


class IPUs(horizon.Panel):
    """IPUs of all projects. The menu *Admin* and its pages need the role of administrators."""

    name = "IPUs"
    slug = "ipus"
    permissions = (tuple(utils.get_admin_permissions()),)
    urls = "openipu.dashboard.panels.admin.urls"
