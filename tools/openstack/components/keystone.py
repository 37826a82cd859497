# SPDX-License-Identifier: GPL-3.0-or-later
"""Keystone: identities."""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import replace

from ..component import Component, api_process
from ..rest import is_registered
from ..site import REGION, Site


def declare(site: Site) -> Component:
    """Return Keystone with Fernet tokens. `keystone-manage bootstrap` creates the administrator."""
    config = site.etc / "keystone" / "keystone.conf"
    manage = [site.program("keystone-manage"), "--config-file", str(config)]
    keys = site.data / "keystone"
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    owner = ["--keystone-user", user, "--keystone-group", group]
    endpoints = [
        argument
        for interface in ("admin", "internal", "public")
        for argument in (f"--bootstrap-{interface}-url", site.url("keystone", "/v3"))
    ]
    server = api_process(site, "keystone", "keystone.wsgi.api", {"OS_KEYSTONE_CONFIG_DIR": str(config.parent)})
    return Component(
        name="keystone",
        type="identity",
        path="/v3",
        databases=["keystone"],
        folders=["fernet", "credential"],
        config={
            "keystone.conf": {
                "database": {"connection": site.database_url("keystone")},
                "fernet_tokens": {"key_repository": str(keys / "fernet")},
                "fernet_receipts": {"key_repository": str(keys / "fernet")},
                "credential": {"key_repository": str(keys / "credential")},
                "token": {"provider": "fernet"},
                "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
            }
        },
        migrations=[
            [*manage, "db_sync"],
            [*manage, "fernet_setup", *owner],
            [*manage, "credential_setup", *owner],
            [
                *manage,
                "bootstrap",
                "--bootstrap-password",
                site.secrets.admin,
                "--bootstrap-region-id",
                REGION,
                *endpoints,
            ],
        ],
        processes=[replace(server, ready=is_registered(site, "keystone", "/v3/services", "services", name="keystone"))],
    )
