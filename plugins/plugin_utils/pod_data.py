# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""POD-wide data that grows with the POD, such as the list of all agents.

As values of variables, they would be part of the variables of every host. The inventory plugin sets templates instead
(``TEMPLATES``), with the lookup plugin that returns the data. The lookup plugin runs in the process of
the inventory plugin, or in a fork of it, which inherits the data. So the files are read once. An inventory that another
program has exported does not run the inventory plugin: then each fork, one for each task and host, reads them again.
"""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.bare_metal import nodes
from ansible_collections.openipu.pod.plugins.module_utils.pod.kubernetes_nodes import controllers
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.network_services import network_services
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import network_config, tenants
from ansible_collections.openipu.pod.plugins.module_utils.pod.teams import namespace_quotas, projects, quotas

Data = dict[str, t.Any]

# Names of the data by variable. Those of OpenStack and Kubernetes exist only for PODs with these.
VARIABLES = {
    "pod_services": "services",
    "vipu_pod_agents": "agents",
    "vipu_pod_clusters": "clusters",
    "vipu_pod_allocations": "allocations",
    "vipu_pod_partitions": "partitions",
    "vipu_pod_users": "users",
    "pod_teams": "teams",
    "pod_openstack_config": "openstack_config",
    "pod_openstack_tenants": "openstack_tenants",
    "pod_openstack_projects": "openstack_projects",
    "pod_openstack_nodes": "openstack_nodes",
    "pod_kubernetes_controllers": "kubernetes_controllers",
    "pod_kubernetes_quotas": "kubernetes_quotas",
}
TEMPLATES = {
    variable: f"{{{{ lookup('openipu.pod.pod', '{name}', file=pod_file) }}}}" for variable, name in VARIABLES.items()
}

_data: dict[str, Data] = {}  # by path of pod.yml


def describe(pod: model.Pod) -> Data:
    """Return the data of a POD by name, as plain values."""
    data: Data = {"services": network_services(pod), **pod.desired(), "teams": quotas(pod.teams)}
    if pod.cloud:
        data["openstack_config"] = network_config(pod, pod.cloud)
        data["openstack_tenants"] = tenants(pod, pod.cloud)
        data["openstack_projects"] = projects(pod.teams)
        data["openstack_nodes"] = nodes(pod, pod.cloud)
    if pod.kubernetes:
        data["kubernetes_controllers"] = controllers(pod, pod.kubernetes)
        data["kubernetes_quotas"] = namespace_quotas(pod.teams)
    return data


def remember(file: str, data: Data) -> None:
    """Keep the data of a POD for the lookups of this process and its forks."""
    _data[file] = data


def recall(file: str, names: t.Iterable[str]) -> list[t.Any]:
    """Return a copy of the named data of the POD in a file. Raises PodError and KeyError.

    Without the inventory plugin, the first call in a process reads the files.
    """
    if file not in _data:
        remember(file, describe(load(file)))
    return [copy.deepcopy(_data[file][name]) for name in names]
