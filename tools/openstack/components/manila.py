# SPDX-License-Identifier: GPL-3.0-or-later
"""Manila: shared file systems, with the dummy driver of Manila, which only simulates storage and exports."""

from __future__ import annotations

from dataclasses import replace

from ..component import Component, Process, api_process, authtoken_settings, client_credentials, daemon_process
from ..rest import sends_heartbeat
from ..site import Site

HOST = "controller"
BACKEND = "appliance"


def declare(site: Site) -> Component:
    """Return Manila with one backend without share servers, like that of a storage appliance."""
    data = site.data / "manila"
    config = site.etc / "manila" / "manila.conf"
    config_option = ["--config-file", str(config)]

    def daemon(binary: str, host: str) -> Process:
        # Not by the list of pools: requested too early, the scheduler caches an empty one until it places a share.
        ready = sends_heartbeat(site, "manila", "/v2/services", "services", binary=binary, host=host, state="up")
        return replace(daemon_process(site, binary, config), ready=ready)

    return Component(
        name="manila",
        type="shared-file-system",
        path="/v2",
        databases=["manila"],
        folders=["lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "transport_url": site.queue_url,
                    "state_path": str(data),
                    "my_ip": site.address,
                    "host": HOST,
                    "auth_strategy": "keystone",
                    "report_interval": 1,  # seconds between heartbeats; a process is ready after one
                    "periodic_interval": 10,  # seconds between searches for tasks that are due
                    "periodic_fuzzy_delay": 0,
                    "enabled_share_backends": BACKEND,
                    "enabled_share_protocols": "NFS",
                    "api_paste_config": site.packaged_file("manila/api-paste.ini"),
                    "rootwrap_config": site.packaged_file("manila/rootwrap.conf"),
                },
                BACKEND: {
                    "share_driver": "manila.tests.share.drivers.dummy.DummyDriver",
                    "share_backend_name": BACKEND,
                    "driver_handles_share_servers": False,
                    # The driver simulates work by sleeping, unless the delay of each method is 0.
                    "dummy_driver_default_driver_method_delay": 0,
                    "dummy_driver_driver_methods_delays": "create_share:0",
                },
                "database": {"connection": site.database_url("manila")},
                "coordination": {"backend_url": f"file://{data}/lock"},
                "neutron": client_credentials(site, "neutron"),
                "keystone_authtoken": authtoken_settings(site, "manila"),
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        migrations=[[site.program("manila-manage"), *config_option, "db", "sync"]],
        processes=[
            api_process(site, "manila", "manila.wsgi.api", {}, *config_option),
            daemon("manila-scheduler", HOST),
            # It reports the backend when it starts: a scheduler that starts later gets the next report in a minute.
            replace(daemon("manila-share", f"{HOST}@{BACKEND}"), follows=True),
        ],
    )
