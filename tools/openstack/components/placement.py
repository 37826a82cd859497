# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement: inventory and usage of the resources of hosts."""

from __future__ import annotations

from ..component import Component, api_process, authtoken_settings
from ..site import Site


def declare(site: Site) -> Component:
    """Return Placement, which needs only its database."""
    config = site.etc / "placement" / "placement.conf"
    return Component(
        name="placement",
        type="placement",
        path="",
        databases=["placement"],
        config={
            config.name: {
                "api": {"auth_strategy": "keystone"},
                "placement_database": {"connection": site.database_url("placement")},
                "keystone_authtoken": authtoken_settings(site, "placement"),
            }
        },
        migrations=[[site.program("placement-manage"), "--config-file", str(config), "db", "sync"]],
        processes=[
            api_process(site, "placement", "placement.wsgi.api", {"OS_PLACEMENT_CONFIG_DIR": str(config.parent)})
        ],
    )
