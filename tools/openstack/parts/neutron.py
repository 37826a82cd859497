# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron: the networks of a rack as provider VLANs, with ports for every MAC.

Physical networks: `physnet100g` (IPU data, storage), `physnet1g` (management, BMC, gateways) and the
flat `external`, where routers have their gateway. No agent forwards packets here; `inside/network_agents.py`
reports the agents of the hosts over Neutron's own messages, so that ports bind as they would.
"""

from __future__ import annotations

from ..part import INSIDE, Part, Process, api, as_client, daemon, guarded
from ..rest import registered
from ..site import HOSTS, Site


def declare(site: Site) -> Part:
    """ML2 with VLANs, security groups, DNS names, port security, routers, RBAC."""
    config = site.etc / "neutron" / "neutron.conf"
    from_file = ["--config-file", str(config)]
    agents = [site.program("python"), str(INSIDE / "network_agents.py"), str(config), *HOSTS]
    last = {"agent_type": "NIC Switch agent", "host": HOSTS[-1], "alive": True}  # that reports
    return Part(
        name="neutron",
        type="network",
        path="",
        databases=["neutron"],
        folders=["lock"],
        config={
            "neutron.conf": {
                "DEFAULT": {
                    "state_path": str(site.data / "neutron"),
                    "core_plugin": "ml2",
                    "service_plugins": "router,segments,port_forwarding,trunk",
                    "transport_url": site.queue,
                    "auth_strategy": "keystone",
                    "api_paste_config": site.shipped("neutron/api-paste.ini"),
                    "dns_domain": "ipupod.example.",
                    "global_physnet_mtu": 9000,
                    "rpc_workers": 1,
                    "notify_nova_on_port_status_changes": True,
                    "notify_nova_on_port_data_changes": True,
                },
                "database": {"connection": site.database("neutron")},
                "oslo_concurrency": {"lock_path": str(site.data / "neutron" / "lock")},
                "keystone_authtoken": guarded(site, "neutron"),
                "nova": as_client(site, "nova"),
                "placement": as_client(site, "placement"),
                "ml2": {
                    "type_drivers": "flat,vlan",
                    "tenant_network_types": "vlan",
                    "mechanism_drivers": "openvswitch,sriovnicswitch",
                    "extension_drivers": "port_security,port_hardware_offload_type,"
                    "dns_domain_ports,tag_ports_during_bulk_creation",
                    "path_mtu": 9000,
                },
                # What tenants make for themselves gets a VLAN from these; providers may use any other.
                "ml2_type_vlan": {"network_vlan_ranges": "physnet100g:2000:2099,physnet1g:2100:2199"},
                "ml2_type_flat": {"flat_networks": "external"},
                "securitygroup": {"enable_security_group": True},
            }
        },
        migrations=[[site.program("neutron-db-manage"), *from_file, "upgrade", "heads"]],
        processes=[
            api(site, "neutron", "neutron.wsgi.api", {}, *from_file),
            daemon(site, "neutron-rpc-server", config),
            Process("network-agents", agents, ready=registered(site, "neutron", "/v2.0/agents", "agents", **last)),
        ],
    )
