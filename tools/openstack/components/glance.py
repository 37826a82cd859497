# SPDX-License-Identifier: GPL-3.0-or-later
"""Glance: images, stored in files."""

from __future__ import annotations

from ..component import Component, api_process, authtoken_settings
from ..site import Site


def declare(site: Site) -> Component:
    """Return Glance with one store, and the two internal stores for tasks and staging."""
    data = site.data / "glance"
    config = site.etc / "glance" / "glance-api.conf"
    return Component(
        name="glance",
        type="image",
        path="",
        databases=["glance"],
        folders=["images", "tasks", "staging", "lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "enabled_backends": "file:file",
                    "enabled_import_methods": "[glance-direct]",
                    "worker_self_reference_url": site.url("glance"),
                },
                "database": {"connection": site.database_url("glance")},
                "glance_store": {"default_backend": "file"},
                "file": {"filesystem_store_datadir": str(data / "images")},
                "os_glance_tasks_store": {"filesystem_store_datadir": str(data / "tasks")},
                "os_glance_staging_store": {"filesystem_store_datadir": str(data / "staging")},
                "paste_deploy": {
                    "flavor": "keystone",
                    "config_file": site.packaged_file("glance/glance-api-paste.ini"),
                },
                "oslo_concurrency": {"lock_path": str(data / "lock")},
                "keystone_authtoken": authtoken_settings(site, "glance"),
            }
        },
        migrations=[[site.program("glance-manage"), "--config-file", str(config), "db_sync"]],
        processes=[api_process(site, "glance", "glance.wsgi.api", {"OS_GLANCE_CONFIG_DIR": str(config.parent)})],
    )
