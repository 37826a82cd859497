# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may pass to and from the VMs of a POD: security groups, one for each kind of interface. Pure.

VMs have one interface per network. On the data network nothing is filtered.
"""

from __future__ import annotations

import ipaddress
import typing as t

from . import model

Rule = dict[str, t.Any]

DNS, SSH, HTTPS, SYSLOG, SUNRPC, NFS = 53, 22, 443, 514, 111, 2049
NODE_EXPORTER, MACHINE_EXPORTER, GRAFANA, PROMETHEUS = 9100, 2112, 3000, 9090
_BOTH = ("udp", "tcp")


def security_groups(pod: model.Pod, cloud: model.Cloud) -> list[dict[str, t.Any]]:
    """The groups of controller VMs (on BMC, GW and management) and of Poplar VMs (on management and storage)."""
    groups = {
        "controller-bmc": (
            "vPOD controller VM on the BMC network",
            _controller_bmc(_subnet(pod, model.BMC)) + _dns(cloud),
        ),
        "controller-gw": (
            "vPOD controller VM on the GW network",
            _controller_gw(_subnet(pod, model.GW), pod.agent_port, cloud.management_servers) + _dns(cloud),
        ),
        "controller-management": (
            "vPOD controller VM on the management network",
            [
                *_anywhere(),
                _rule("ingress", "tcp", SSH, description="shell"),
                _rule(
                    "ingress",
                    "tcp",
                    pod.controller_port,
                    remote_group=_name(pod, "poplar-management"),
                    description="V-IPU server",
                ),
            ],
        ),
        "poplar-management": (
            "Poplar VM on the management network",
            [
                *_anywhere(),
                _rule("ingress", "tcp", SSH, description="shell"),
                _rule(
                    "ingress",
                    "tcp",
                    NODE_EXPORTER,
                    remote_group=_name(pod, "controller-management"),
                    description="node exporter",
                ),
            ],
        ),
        "poplar-storage": (
            "Poplar VM on the storage network",
            [
                _rule("egress", "tcp", port, remote=server, description=what)
                for server in cloud.nfs_servers
                for port, what in ((NFS, "NFS"), (SUNRPC, "portmapper of NFS"))
            ],
        ),
    }
    return [
        {"name": _name(pod, name), "description": description, "rules": rules}
        for name, (description, rules) in groups.items()
    ]


def _name(pod: model.Pod, group: str) -> str:
    return "%s-%s" % (pod.name, group)


def _subnet(pod: model.Pod, network: str) -> str | None:
    return pod.networks[network].subnet


def _rule(
    direction: str,
    protocol: str | None = None,
    port: int | None = None,
    remote: str | None = None,
    **more: str,
) -> Rule:
    rule: Rule = {"direction": direction, **more}
    if protocol:
        rule["protocol"] = protocol
    if port:
        rule["port"] = port
    if remote:
        network = ipaddress.ip_network(remote)
        rule["remote"] = str(network)
        if network.version == 6:
            rule["ethertype"] = "IPv6"
    return rule


def _dns(cloud: model.Cloud) -> list[Rule]:
    return [
        _rule("egress", protocol, DNS, remote=server, description="names")
        for server in cloud.dns_servers
        for protocol in _BOTH
    ]


def _anywhere() -> list[Rule]:
    return [_rule("egress"), _rule("egress", ethertype="IPv6")]


def _controller_bmc(bmcs: str | None) -> list[Rule]:
    if not bmcs:
        return []
    return [
        _rule("egress", "icmp", remote=bmcs, description="reachability"),
        _rule("egress", "tcp", SSH, bmcs, description="shell"),
        _rule("egress", "tcp", HTTPS, bmcs, description="Redfish"),
        *(_rule("ingress", protocol, SYSLOG, bmcs, description="logs") for protocol in _BOTH),
    ]


def _controller_gw(gateways: str | None, agent_port: int, management_servers: t.Iterable[str]) -> list[Rule]:
    rules = []
    if gateways:
        rules = [
            _rule("egress", "icmp", remote=gateways, description="reachability"),
            _rule("egress", "tcp", SSH, gateways, description="shell"),
            _rule("egress", "tcp", MACHINE_EXPORTER, gateways, description="metrics of IPU-Machines"),
            _rule("egress", "tcp", agent_port, gateways, description="V-IPU agents"),
            *(_rule("ingress", protocol, SYSLOG, gateways, description="logs") for protocol in _BOTH),
        ]
    served = ((SSH, "shell"), (NODE_EXPORTER, "node exporter"), (GRAFANA, "Grafana"), (PROMETHEUS, "Prometheus"))
    return rules + [
        _rule("ingress", "tcp", port, server, description=what)
        for server in management_servers
        for port, what in served
    ]
