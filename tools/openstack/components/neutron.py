# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron: provider networks of a rack, with VLANs.

Physical networks: `physnet100g` (IPU data, storage), `physnet1g` (management, BMC, gateways) and the flat
`external` with the gateways of routers. No agent forwards packets. `inside/network_agents.py` sends the
reports of the agents of the hosts, so that ports bind as in a real cloud.
"""

from __future__ import annotations

from ..component import INSIDE, Component, Process, api_process, authtoken_settings, client_credentials, daemon_process
from ..rest import is_registered
from ..site import HOSTS, Site


def declare(site: Site) -> Component:
    """Return Neutron with ML2, VLANs, security groups, DNS names, port security, routers and RBAC."""
    config = site.etc / "neutron" / "neutron.conf"
    config_option = ["--config-file", str(config)]
    agents = [site.program("python"), str(INSIDE / "network_agents.py"), str(config), *HOSTS]
    last = {"agent_type": "NIC Switch agent", "host": HOSTS[-1], "alive": True}  # the last one that reports
    return Component(
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
                    "transport_url": site.queue_url,
                    "auth_strategy": "keystone",
                    "api_paste_config": site.packaged_file("neutron/api-paste.ini"),
                    "dns_domain": "ipupod.example.",
                    "global_physnet_mtu": 9000,
                    "rpc_workers": 1,
                    "notify_nova_on_port_status_changes": True,
                    "notify_nova_on_port_data_changes": True,
                },
                "database": {"connection": site.database_url("neutron")},
                "oslo_concurrency": {"lock_path": str(site.data / "neutron" / "lock")},
                "keystone_authtoken": authtoken_settings(site, "neutron"),
                "nova": client_credentials(site, "nova"),
                "placement": client_credentials(site, "placement"),
                "ml2": {
                    "type_drivers": "flat,vlan",
                    "tenant_network_types": "vlan",
                    "mechanism_drivers": "openvswitch,sriovnicswitch",
                    "extension_drivers": "port_security,port_hardware_offload_type,"
                    "dns_domain_ports,tag_ports_during_bulk_creation",
                    "path_mtu": 9000,
                },
                # VLANs for networks of tenants. Providers may use any other.
                "ml2_type_vlan": {"network_vlan_ranges": "physnet100g:2000:2099,physnet1g:2100:2199"},
                "ml2_type_flat": {"flat_networks": "external"},
                "securitygroup": {"enable_security_group": True},
            }
        },
        migrations=[[site.program("neutron-db-manage"), *config_option, "upgrade", "heads"]],
        processes=[
            api_process(site, "neutron", "neutron.wsgi.api", {}, *config_option),
            daemon_process(site, "neutron-rpc-server", config),
            Process("network-agents", agents, ready=is_registered(site, "neutron", "/v2.0/agents", "agents", **last)),
        ],
    )
