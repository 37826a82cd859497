# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova: servers on the fake hypervisors of Poplar servers, with virtual functions of their ConnectX.

Everything but the hypervisor is real: scheduling, NUMA and PCI claims, port binding, volumes. What the
hypervisor pretends to be stands in `inside/poplar.py`; each host has a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..part import INSIDE, Ini, Part, Process, Value, api, as_client, daemon, guarded
from ..rest import registered
from ..site import HOSTS, Site

# A virtual function of a ConnectX-5: what SR-IOV ports of the physical network get, and what a flavor
# asks for by the alias without a port.
VIRTUAL_FUNCTION = {"vendor_id": "15b3", "product_id": "1018"}
ALIAS = {**VIRTUAL_FUNCTION, "name": "connectx-vf", "device_type": "type-VF", "numa_policy": "preferred"}
FILTERS = ["Compute", "ComputeCapabilities", "ImageProperties", "ServerGroupAntiAffinity", "ServerGroupAffinity"]
FILTERS += ["PciPassthrough", "NUMATopology", "AggregateInstanceExtraSpecs"]


def declare(site: Site) -> Part:
    """One cell beside cell 0, one conductor, one scheduler, a compute service per Poplar server."""
    folder = site.etc / "nova"
    config = folder / "nova.conf"
    manage = [site.program("nova-manage"), "--config-file", str(config)]
    cell0 = ["cell_v2", "map_cell0", "--database_connection", site.database("nova_cell0")]
    environment = {"OS_NOVA_CONFIG_FILES": site.shipped("nova/api-paste.ini")}  # the first names its pipelines
    return Part(
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
            api(site, "nova", "nova.wsgi.osapi_compute", environment, "--config-file", str(config)),
            daemon(site, "nova-conductor", config),
            daemon(site, "nova-scheduler", config),
            *(_compute(site, host, folder / f"{host}.conf") for host in HOSTS),
        ],
    )


def _compute(site: Site, host: str, config: Path) -> Process:
    command = [site.program("python"), str(INSIDE / "compute.py"), "--config-file", str(config)]
    # Listed once the scheduler knows which cell the host belongs to.
    ready = registered(site, "nova", "/v2.1/os-hypervisors", "hypervisors", hypervisor_hostname=host, state="up")
    return Process(f"nova-compute-{host}", command, ready=ready)


def _controller(site: Site) -> Ini:
    return {
        **_common(site, "controller", site.data / "nova"),
        "api_database": {"connection": site.database("nova_api")},
        "database": {"connection": site.database("nova")},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 2},
        "filter_scheduler": {
            "track_instance_changes": False,
            "enabled_filters": ",".join(f"{name}Filter" for name in FILTERS),
        },
    }


def _host(site: Site, host: str) -> Ini:
    """Compute services reach the databases through the conductor only."""
    return _common(site, host, site.data / "nova" / host)


def _common(site: Site, host: str, data: Path) -> dict[str, Mapping[str, Value]]:
    defaults: dict[str, Value] = {
        "transport_url": site.queue,
        "state_path": str(data),
        "my_ip": site.address,
        "host": host,
        "periodic_fuzzy_delay": 0,  # else a new host is discovered up to a minute late
        "compute_driver": "poplar.PoplarDriver",
        "concurrency_backend": "threading",
        "sync_power_state_interval": -1,  # the fake hypervisor forgets its servers when it restarts
        "allow_resize_to_same_host": True,
        "vif_plugging_is_fatal": False,  # no agent plugs anything
        "vif_plugging_timeout": 0,
    }
    return {
        "DEFAULT": defaults,
        "pci": {
            "device_spec": json.dumps({**VIRTUAL_FUNCTION, "physical_network": "physnet100g"}),
            "alias": json.dumps(ALIAS),
        },
        "glance": as_client(site, "glance"),
        "cinder": {**as_client(site, "cinder"), "os_region_name": "RegionOne"},
        "neutron": as_client(site, "neutron"),
        "placement": as_client(site, "placement"),
        "service_user": {"send_service_user_token": True, **as_client(site, "nova")},
        "keystone_authtoken": guarded(site, "nova"),
        "oslo_concurrency": {"lock_path": str(data / "lock")},
    }
