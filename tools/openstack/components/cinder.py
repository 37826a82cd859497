# SPDX-License-Identifier: GPL-3.0-or-later
"""Cinder: volumes, with the logging driver of Cinder, which only simulates storage."""

from __future__ import annotations

from dataclasses import replace

from ..component import Component, Process, api_process, authtoken_settings, client_credentials, daemon_process
from ..rest import is_registered
from ..site import Site

HOST = "controller"


def declare(site: Site) -> Component:
    """Return Cinder with one backend."""
    data = site.data / "cinder"
    config = site.etc / "cinder" / "cinder.conf"
    config_option = ["--config-file", str(config)]

    def up(binary: str, host: str) -> Process:
        ready = is_registered(site, "cinder", "/v3/os-services", "services", binary=binary, host=host, state="up")
        return replace(daemon_process(site, binary, config), ready=ready)

    return Component(
        name="cinder",
        type="block-storage",
        path="/v3",
        databases=["cinder"],
        folders=["lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "transport_url": site.queue_url,
                    "state_path": str(data),
                    "my_ip": site.address,
                    "host": HOST,
                    "auth_strategy": "keystone",
                    "glance_api_servers": site.url("glance"),
                    "enabled_backends": "logging",
                    "default_volume_type": "__DEFAULT__",
                    "api_paste_config": site.packaged_file("cinder/api-paste.ini"),
                    "resource_query_filters_file": site.packaged_file("cinder/resource_filters.json"),
                    "rootwrap_config": site.packaged_file("cinder/rootwrap.conf"),
                },
                "logging": {
                    "volume_driver": "cinder.tests.fake_driver.FakeLoggingVolumeDriver",
                    "volume_backend_name": "logging",
                },
                "database": {"connection": site.database_url("cinder")},
                "nova": client_credentials(site, "nova"),
                "service_user": {"send_service_user_token": True, **client_credentials(site, "cinder")},
                "keystone_authtoken": authtoken_settings(site, "cinder"),
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        migrations=[[site.program("cinder-manage"), *config_option, "db", "sync"]],
        processes=[
            api_process(site, "cinder", "cinder.wsgi.api", {}, *config_option),
            up("cinder-scheduler", HOST),
            up("cinder-volume", f"{HOST}@logging"),
        ],
    )
