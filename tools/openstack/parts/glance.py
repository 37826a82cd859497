# SPDX-License-Identifier: GPL-3.0-or-later
"""Glance: images, in files."""

from __future__ import annotations

from ..part import Part, api, guarded
from ..site import Site


def declare(site: Site) -> Part:
    """One store, and Glance's own two for tasks and staging."""
    data = site.data / "glance"
    config = site.etc / "glance" / "glance-api.conf"
    return Part(
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
                "database": {"connection": site.database("glance")},
                "glance_store": {"default_backend": "file"},
                "file": {"filesystem_store_datadir": str(data / "images")},
                "os_glance_tasks_store": {"filesystem_store_datadir": str(data / "tasks")},
                "os_glance_staging_store": {"filesystem_store_datadir": str(data / "staging")},
                "paste_deploy": {"flavor": "keystone", "config_file": site.shipped("glance/glance-api-paste.ini")},
                "oslo_concurrency": {"lock_path": str(data / "lock")},
                "keystone_authtoken": guarded(site, "glance"),
            }
        },
        migrations=[[site.program("glance-manage"), "--config-file", str(config), "db_sync"]],
        processes=[api(site, "glance", "glance.wsgi.api", {"OS_GLANCE_CONFIG_DIR": str(config.parent)})],
    )
