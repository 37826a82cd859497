# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allowed traffic of the hosts of a POD, by kind of host and network. No I/O.

The table is used for the security groups of VMs in OpenStack (here) and for the firewall of hosts (`firewall`).
VMs have one interface per network. The data network is not filtered.
"""

from __future__ import annotations

import ipaddress
import typing as t

from . import model

Rule = dict[str, t.Any]  # direction; optional protocol, port, remote (a subnet), ethertype, description

DNS, SSH, HTTPS, IPMI, SYSLOG, SUNRPC, NFS = 53, 22, 443, 623, 514, 111, 2049
NODE_EXPORTER, MACHINE_EXPORTER, GRAFANA, PROMETHEUS = 9100, 2112, 3000, 9090
BOTH = ("udp", "tcp")
SERVED = ((SSH, "shell"), (NODE_EXPORTER, "node exporter"), (GRAFANA, "Grafana"), (PROMETHEUS, "Prometheus"))


def security_groups(pod: model.Pod, cloud: model.Cloud) -> list[dict[str, t.Any]]:
    """Return the groups of controller VMs (BMC, GW, management) and of Poplar VMs (management, storage).

    Controller VMs with the services of the project have the narrower groups of control instances on BMC and GW.
    """
    servers, gateways = management_servers(pod, cloud), _subnet(pod, model.GW)
    bmcs, dns_servers = _subnet(pod, model.BMC), cloud.dns_servers
    poplars, controllers = ({"remote_group": _name(pod, "%s-management" % kind)} for kind in ("poplar", "controller"))
    metrics = rule("ingress", "tcp", PROMETHEUS, **poplars, description="metrics of the vPOD")
    groups = {
        "controller-bmc": (
            "vPOD controller VM on the BMC network",
            controller_bmc(bmcs, dns_servers),
        ),
        "controller-gw": (
            "vPOD controller VM on the GW network",
            [*controller_gw(gateways, pod.agent_port, servers, dns_servers), *upstream(pod)],
        ),
        "control-instance-bmc": (
            "vPOD control instance on the BMC network",
            control_instance_bmc(bmcs, dns_servers),
        ),
        "control-instance-gw": (
            "vPOD control instance on the GW network",
            [*control_instance_gw(gateways, servers, dns_servers), *machine_metrics(gateways), *upstream(pod)],
        ),
        "controller-management": (
            "vPOD controller VM on the management network",
            [
                *controller_management(pod.controller_port, poplars, servers),
                # The Poplar VMs of all tenants are in this group. They must not read the metrics of each other.
                *([metrics] if cloud.control_subnet else []),
            ],
        ),
        "poplar-management": ("Poplar VM on the management network", poplar_management(controllers)),
        "poplar-storage": (
            "Poplar VM on the storage network",
            poplar_storage(_nfs_servers(cloud.nfs_servers, _subnet(pod, model.STORAGE))),
        ),
        **{
            "poplar-storage-%s" % tenant.project: (
                "Poplar VM on the storage network of %s" % tenant.project,
                poplar_storage(_nfs_servers(tenant.storage.nfs_servers, tenant.storage.subnet)),
            )
            for tenant in cloud.tenants
            if tenant.storage
        },
    }
    return [
        {"name": _name(pod, name), "description": description, "rules": rules}
        for name, (description, rules) in groups.items()
    ]


def management_servers(pod: model.Pod, cloud: model.Cloud) -> list[str]:
    """Return the global management servers; by default, the controllers of the POD, which collect metrics and logs."""
    if cloud.management_servers is not None:
        return list(cloud.management_servers)
    return _controllers(pod, "p1", "p2")


def upstream(pod: model.Pod) -> list[Rule]:
    """Return the rules for the V-IPU controller in the network of the IPU-Gateways.

    The hosts of the controller are first: they can be virtual addresses, or controllers outside of the racks.
    """
    gateways = _subnet(pod, model.GW)
    found = [host for host in pod.controller_hosts if gateways and _is_in(host, gateways)]
    found += _controllers(pod, "p1")
    return [
        rule("egress", "tcp", pod.controller_port, address, description="V-IPU controller of the POD")
        for address in dict.fromkeys(found)
    ]


def _is_in(host: str, subnet: str) -> bool:
    """Return whether a host is an address in a subnet."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(subnet)
    except ValueError:
        return False  # a name


def _controllers(pod: model.Pod, *interfaces: str) -> list[str]:
    """Return the addresses of the servers with the role controller, on these interfaces."""
    servers = [server for rack in pod.racks for server in rack.servers if "controller" in server.roles]
    return [server.addresses[name] for server in servers for name in interfaces if name in server.addresses]


def _nfs_servers(given: tuple[str, ...] | None, subnet: str | None) -> list[str]:
    """Return the NFS servers of a storage network; by default, all of its addresses."""
    if given is None:
        return [subnet] if subnet else []
    return list(given)


def controller_bmc(bmcs: str | None, dns_servers: t.Iterable[str]) -> list[Rule]:
    """Return the rules of a controller for BMCs."""
    rules = []
    if bmcs:
        rules = [
            rule("egress", "icmp", remote=bmcs, description="reachability"),
            rule("egress", "tcp", SSH, bmcs, description="shell"),
            rule("egress", "tcp", HTTPS, bmcs, description="Redfish"),
            rule("egress", "udp", IPMI, bmcs, description="sensors over IPMI"),
            *logs(bmcs),
        ]
    return rules + names(dns_servers)


def controller_gw(
    gateways: str | None, agent_port: int, management_servers: t.Iterable[str], dns_servers: t.Iterable[str]
) -> list[Rule]:
    """Return the rules of a controller for IPU-Gateways."""
    rules = []
    if gateways:
        rules = [
            rule("egress", "icmp", remote=gateways, description="reachability"),
            rule("egress", "tcp", SSH, gateways, description="shell"),
            *machine_metrics(gateways),
            rule("egress", "tcp", agent_port, gateways, description="V-IPU agents"),
            *logs(gateways),
        ]
    return rules + served(management_servers) + names(dns_servers)


def control_instance_bmc(bmcs: str | None, dns_servers: t.Iterable[str]) -> list[Rule]:
    """Return the rules of a control instance for BMCs, to which it does not connect."""
    return logs(bmcs) + names(dns_servers)


def control_instance_gw(
    gateways: str | None, management_servers: t.Iterable[str], dns_servers: t.Iterable[str]
) -> list[Rule]:
    """Return the rules of a control instance for IPU-Gateways, without those for the metrics and the controller."""
    return logs(gateways) + served(management_servers) + names(dns_servers)


def machine_metrics(gateways: str | None) -> list[Rule]:
    """Return the rule for the exporters of IPU-Machines."""
    if not gateways:
        return []
    return [rule("egress", "tcp", MACHINE_EXPORTER, gateways, description="metrics of IPU-Machines")]


def logs(machines: str | None) -> list[Rule]:
    """Return the rules for the logs of BMCs or IPU-Gateways."""
    if not machines:
        return []
    return [rule("ingress", protocol, SYSLOG, machines, description="logs") for protocol in BOTH]


def controller_management(
    port: int, poplars: t.Mapping[str, str], management_servers: t.Iterable[str] = ()
) -> list[Rule]:
    """Return the rules of a controller on the management network.

    ``poplars`` selects the Poplar servers with ``remote`` or ``remote_group``.
    """
    rules = [*allow_all_egress(), shell(), rule("ingress", "tcp", port, **poplars, description="V-IPU server")]
    return rules + served(management_servers, SERVED[1:])  # ssh is already allowed from any address


def served(management_servers: t.Iterable[str], ports: t.Collection[tuple[int, str]] = SERVED) -> list[Rule]:
    """Return the rules that allow access from management servers."""
    return [
        rule("ingress", "tcp", port, server, description=description)
        for server in management_servers
        for port, description in ports
    ]


def poplar_management(controllers: t.Mapping[str, str]) -> list[Rule]:
    """Return the rules of a Poplar server on the management network.

    ``controllers`` selects the controllers with ``remote`` or ``remote_group``.
    """
    return [
        *allow_all_egress(),
        shell(),
        rule("ingress", "tcp", NODE_EXPORTER, **controllers, description="node exporter"),
    ]


def poplar_storage(nfs_servers: t.Iterable[str]) -> list[Rule]:
    """Return the rules of a Poplar server for its NFS servers."""
    return [
        rule("egress", "tcp", port, remote=server, description=description)
        for server in nfs_servers
        for port, description in ((NFS, "NFS"), (SUNRPC, "portmapper of NFS"))
    ]


def names(dns_servers: t.Iterable[str]) -> list[Rule]:
    """Return the rules for DNS servers."""
    return [
        rule("egress", protocol, DNS, remote=server, description="names") for server in dns_servers for protocol in BOTH
    ]


def allow_all_egress() -> list[Rule]:
    """Return the rules that allow all outgoing traffic."""
    return [rule("egress"), rule("egress", ethertype="IPv6")]


def shell() -> Rule:
    """Return the rule that allows ssh from any address."""
    return rule("ingress", "tcp", SSH, description="shell")


def rule(
    direction: str,
    protocol: str | None = None,
    port: int | None = None,
    remote: str | None = None,
    **more: str,
) -> Rule:
    """Return a rule with the keys of Neutron. Raises ValueError for a remote that is not a subnet."""
    made: Rule = {"direction": direction, **more}
    if protocol:
        made["protocol"] = protocol
    if port:
        made["port"] = port
    if remote:
        network = ipaddress.ip_network(remote)
        made["remote"] = str(network)
        if network.version == 6:
            made["ethertype"] = "IPv6"
    return made


def _name(pod: model.Pod, group: str) -> str:
    return "%s-%s" % (pod.name, group)


def _subnet(pod: model.Pod, network: str) -> str | None:
    return pod.networks[network].subnet
