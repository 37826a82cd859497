# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova: servers on the fake hypervisors of Poplar servers, with virtual functions of their ConnectX.

Only the hypervisor is fake. Scheduling, NUMA and PCI claims, port binding and volumes are real. The
hardware of the hypervisor is in `inside/poplar.py`. Each host has its own process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..component import (
    INSIDE,
    Component,
    Ini,
    Process,
    Value,
    api_process,
    authtoken_settings,
    client_credentials,
    daemon_process,
)
from ..rest import is_registered
from ..site import HOSTS, Site

# Virtual function of a ConnectX-5. SR-IOV ports of the physical network use it, and flavors request it by the
# alias without a port.
VIRTUAL_FUNCTION = {"vendor_id": "15b3", "product_id": "1018"}
ALIAS = {**VIRTUAL_FUNCTION, "name": "connectx-vf", "device_type": "type-VF", "numa_policy": "preferred"}
FILTERS = ["Compute", "ComputeCapabilities", "ImageProperties", "ServerGroupAntiAffinity", "ServerGroupAffinity"]
FILTERS += ["PciPassthrough", "NUMATopology", "AggregateInstanceExtraSpecs"]


def declare(site: Site) -> Component:
    """Return Nova with one cell besides cell 0, one conductor, one scheduler, and a compute service per host."""
    folder = site.etc / "nova"
    config = folder / "nova.conf"
    manage = [site.program("nova-manage"), "--config-file", str(config)]
    cell0 = ["cell_v2", "map_cell0", "--database_connection", site.database_url("nova_cell0")]
    environment = {"OS_NOVA_CONFIG_FILES": site.packaged_file("nova/api-paste.ini")}  # this file defines its pipelines
    return Component(
        name="nova",
        type="compute",
        path="/v2.1",
        databases=["nova_api", "nova_cell0", "nova"],
        folders=["lock", *HOSTS],
        config={config.name: _controller(site), **{f"{host}.conf": _host(site, host) for host in HOSTS}},
        migrations=[
            [*manage, "api_db", "sync"],
            [*manage, *cell0],
            [*manage, "db", "sync"],
            [*manage, "cell_v2", "create_cell", "--name", "cell1"],
        ],
        processes=[
            api_process(site, "nova", "nova.wsgi.osapi_compute", environment, "--config-file", str(config)),
            daemon_process(site, "nova-conductor", config),
            daemon_process(site, "nova-scheduler", config),
            *(_compute(site, host, folder / f"{host}.conf") for host in HOSTS),
        ],
    )


def _compute(site: Site, host: str, config: Path) -> Process:
    command = [site.program("python"), str(INSIDE / "compute.py"), "--config-file", str(config)]
    # The host is listed when the scheduler has assigned it to a cell.
    ready = is_registered(site, "nova", "/v2.1/os-hypervisors", "hypervisors", hypervisor_hostname=host, state="up")
    return Process(f"nova-compute-{host}", command, ready=ready)


def _controller(site: Site) -> Ini:
    return {
        **_common(site, "controller", site.data / "nova"),
        "api_database": {"connection": site.database_url("nova_api")},
        "database": {"connection": site.database_url("nova")},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 2},
        "filter_scheduler": {
            "track_instance_changes": False,
            "enabled_filters": ",".join(f"{name}Filter" for name in FILTERS),
        },
    }


def _host(site: Site, host: str) -> Ini:
    """Return the configuration of a compute service, which has no direct access to the databases."""
    return _common(site, host, site.data / "nova" / host)


def _common(site: Site, host: str, data: Path) -> dict[str, Mapping[str, Value]]:
    defaults: dict[str, Value] = {
        "transport_url": site.queue_url,
        "state_path": str(data),
        "my_ip": site.address,
        "host": host,
        "periodic_fuzzy_delay": 0,  # otherwise the discovery of a new host takes up to a minute longer
        "compute_driver": "poplar.PoplarDriver",
        "concurrency_backend": "threading",
        "sync_power_state_interval": -1,  # the fake hypervisor loses its servers on restart
        "allow_resize_to_same_host": True,
        "vif_plugging_is_fatal": False,  # no agent plugs interfaces
        "vif_plugging_timeout": 0,
    }
    return {
        "DEFAULT": defaults,
        "pci": {
            "device_spec": json.dumps({**VIRTUAL_FUNCTION, "physical_network": "physnet100g"}),
            "alias": json.dumps(ALIAS),
        },
        "glance": client_credentials(site, "glance"),
        "cinder": {**client_credentials(site, "cinder"), "os_region_name": "RegionOne"},
        "neutron": client_credentials(site, "neutron"),
        "placement": client_credentials(site, "placement"),
        "service_user": {"send_service_user_token": True, **client_credentials(site, "nova")},
        "keystone_authtoken": authtoken_settings(site, "nova"),
        "oslo_concurrency": {"lock_path": str(data / "lock")},
    }
