# SPDX-License-Identifier: GPL-3.0-or-later
"""Cinder: volumes; its own logging driver pretends to keep them."""

from __future__ import annotations

from dataclasses import replace

from ..part import Part, Process, api, as_client, daemon, guarded
from ..rest import registered
from ..site import Site

HOST = "controller"


def declare(site: Site) -> Part:
    """One backend."""
    data = site.data / "cinder"
    config = site.etc / "cinder" / "cinder.conf"
    from_file = ["--config-file", str(config)]

    def up(binary: str, host: str) -> Process:
        ready = registered(site, "cinder", "/v3/os-services", "services", binary=binary, host=host, state="up")
        return replace(daemon(site, binary, config), ready=ready)

    return Part(
        name="cinder",
        type="block-storage",
        path="/v3",
        databases=["cinder"],
        folders=["lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "transport_url": site.queue,
                    "state_path": str(data),
                    "my_ip": site.address,
                    "host": HOST,
                    "auth_strategy": "keystone",
                    "glance_api_servers": site.url("glance"),
                    "enabled_backends": "logging",
                    "default_volume_type": "__DEFAULT__",
                    "api_paste_config": site.shipped("cinder/api-paste.ini"),
                    "resource_query_filters_file": site.shipped("cinder/resource_filters.json"),
                    "rootwrap_config": site.shipped("cinder/rootwrap.conf"),
                },
                "logging": {
                    "volume_driver": "cinder.tests.fake_driver.FakeLoggingVolumeDriver",
                    "volume_backend_name": "logging",
                },
                "database": {"connection": site.database("cinder")},
                "nova": as_client(site, "nova"),
                "service_user": {"send_service_user_token": True, **as_client(site, "cinder")},
                "keystone_authtoken": guarded(site, "cinder"),
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        migrations=[[site.program("cinder-manage"), *from_file, "db", "sync"]],
        processes=[
            api(site, "cinder", "cinder.wsgi.api", {}, *from_file),
            up("cinder-scheduler", HOST),
            up("cinder-volume", f"{HOST}@logging"),
        ],
    )
