# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement: what the hosts have, and where a server fits."""

from __future__ import annotations

from ..part import Part, api, guarded
from ..site import Site


def declare(site: Site) -> Part:
    """Nothing but its database."""
    config = site.etc / "placement" / "placement.conf"
    return Part(
        name="placement",
        type="placement",
        path="",
        databases=["placement"],
        config={
            config.name: {
                "api": {"auth_strategy": "keystone"},
                "placement_database": {"connection": site.database("placement")},
                "keystone_authtoken": guarded(site, "placement"),
            }
        },
        migrations=[[site.program("placement-manage"), "--config-file", str(config), "db", "sync"]],
        processes=[api(site, "placement", "placement.wsgi.api", {"OS_PLACEMENT_CONFIG_DIR": str(config.parent)})],
    )
