# SPDX-License-Identifier: GPL-3.0-or-later
"""Manila: shared file systems; its own dummy driver pretends to keep and to export them."""

from __future__ import annotations

from dataclasses import replace

from ..part import Part, api, as_client, daemon, guarded
from ..rest import registered
from ..site import Site

HOST = "controller"
BACKEND = "appliance"


def declare(site: Site) -> Part:
    """One backend without share servers, as of a storage appliance."""
    data = site.data / "manila"
    config = site.etc / "manila" / "manila.conf"
    from_file = ["--config-file", str(config)]

    scheduler = daemon(site, "manila-scheduler", config)
    # Which scheduler knows of the backend, so that both are there.
    known = registered(site, "manila", "/v2/scheduler-stats/pools", "pools", backend=BACKEND)

    return Part(
        name="manila",
        type="shared-file-system",
        path="/v2",
        databases=["manila"],
        folders=["lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "transport_url": site.queue,
                    "state_path": str(data),
                    "my_ip": site.address,
                    "host": HOST,
                    "auth_strategy": "keystone",
                    "periodic_interval": 10,  # seconds until the scheduler hears of a backend again
                    "periodic_fuzzy_delay": 0,
                    "enabled_share_backends": BACKEND,
                    "enabled_share_protocols": "NFS",
                    "api_paste_config": site.shipped("manila/api-paste.ini"),
                    "rootwrap_config": site.shipped("manila/rootwrap.conf"),
                },
                BACKEND: {
                    "share_driver": "manila.tests.share.drivers.dummy.DummyDriver",
                    "share_backend_name": BACKEND,
                    "driver_handles_share_servers": False,
                    # It sleeps to look busy, unless told otherwise for every method.
                    "dummy_driver_default_driver_method_delay": 0,
                    "dummy_driver_driver_methods_delays": "create_share:0",
                },
                "database": {"connection": site.database("manila")},
                "coordination": {"backend_url": f"file://{data}/lock"},
                "neutron": as_client(site, "neutron"),
                "keystone_authtoken": guarded(site, "manila"),
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        migrations=[[site.program("manila-manage"), *from_file, "db", "sync"]],
        processes=[
            api(site, "manila", "manila.wsgi.api", {}, *from_file),
            scheduler,
            replace(daemon(site, "manila-share", config), ready=known),
        ],
    )
