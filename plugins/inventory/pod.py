# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod
short_description: An IPU-POD as inventory
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Reads the description of an IPU-POD, a file named C(pod.yml) or ending in C(.pod.yml), and the table of its
    IPU-Machines, C(machines.csv).
  - Makes the groups C(machines), C(poplar_servers), C(controllers), C(switches) with C(data_switches) and
    C(management_switches), C(pdus), one group for every rack, named like the rack, and C(deploy_common) and so on, of
    those hosts that O(deploy) wants a role to be put on.
  - Every host gets C(pod_kind), C(pod_rack), C(pod_rack_number), C(pod_addresses) and C(pod_macs) (by interface),
    and C(pod_ports), the switch ports that it is cabled to. IPU-Machines also get C(pod_unit), C(pod_agent_id),
    C(pod_rack_unit) and C(pod_serial), switches C(pod_cables) and C(pod_switch_config) (for the module
    C(openipu.pod.eos_pod)), switches and PDUs C(pod_model).
  - All hosts get C(pod_networks), C(pod_services) (names, addresses and MACs, for the role
    C(openipu.pod.management_server)), the controller's C(vipu_api_host) and C(vipu_api_port), C(vipu_connection) with
    these two as C(api_host) and C(api_port) for C(module_defaults), and what the controller is to hold in the words of
    the module C(openipu.pod.vipu_pod), as C(vipu_pod_agents), C(vipu_pod_clusters),
    C(vipu_pod_allocations), C(vipu_pod_partitions) and C(vipu_pod_users). With V(openstack), they also get
    C(pod_openstack_config), the option O(openipu.pod.openstack_pod_network#module:config), C(pod_openstack_networks),
    what OpenStack calls the networks of the POD, and C(pod_openstack_tenants), by project what a tenant may use of it, for
    those that are not named there under V(*).
  - Mistakes are refused with file, line and remedy. No device is contacted.
requirements:
  - PyYAML
  - netaddr
options:
  plugin:
    description: Says that the file is for this plugin.
    required: true
    choices: [openipu.pod.pod]
  name:
    description: The name of the POD.
    type: str
    required: true
  machines:
    description: The table of IPU-Machines; a relative path starts at the folder of the file.
    type: str
    default: machines.csv
  agent_port:
    description: TCP port of the V-IPU agents.
    type: int
    default: 8080
  controller:
    description:
      - Where the V-IPU controller answers, as V(server) (the name of a server) or V(host), and V(port).
      - The default is the first server with the role V(controller), on its management address, port 8090.
    type: dict
  networks:
    description:
      - The networks V(bmc), V(gw), V(management), V(data) and V(storage), each with V(vlan) and V(subnet).
      - The defaults are the reference design's VLANs, and the subnets of the address plan 10.x.y.z.
    type: dict
  racks:
    description: The racks, each with V(name), V(number), V(servers), V(switches), V(pdus) and V(cables).
    type: list
    elements: dict
    required: true
  openstack:
    description:
      - How its networks are to be known to OpenStack, as V(physical_networks), V(mtu), V(dns_domain), V(dns_servers), V(management_servers),
        V(nfs_servers), V(external_network), V(address_scope), V(networks) and V(tenants).
    type: dict
  deploy:
    description:
      - Which roles of this collection the playbook C(hosts.yml) puts on which hosts, as lists for
        V(controllers), V(machines) and V(poplar_servers). Nothing is put anywhere unless it is said here.
    type: dict
  clusters:
    description: The clusters, each with V(id), V(racks) or V(machines), V(topology) and V(num_ilds).
    type: list
    elements: dict
  allocations:
    description: The allocations, each with V(id), V(cluster), and V(size) or V(machines).
    type: list
    elements: dict
  partitions:
    description: The partitions, each with V(id), V(allocation), V(size) and the options of the partition modules.
    type: list
    elements: dict
  users:
    description: The users of a secure controller, each with V(id), V(role) and V(allocations).
    type: list
    elements: dict
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - A cached inventory is used for as long as neither file changes.
  - With a folder as inventory, have Ansible pass over C(machines.csv), by C(ignore_extensions) in the section
    C(inventory) of C(ansible.cfg), or name the file C(pod.yml) itself.
"""

EXAMPLES = r"""
# pod.yml: one rack in the factory's address plan, its machines in machines.csv beside it
plugin: openipu.pod.pod
name: pod64
networks:
  bmc: {subnet: 10.1.1.0/24}
  gw: {subnet: 10.1.2.0/24}
  management: {subnet: 10.1.3.0/24}
  data: {subnet: 10.1.5.0/24}
racks:
  - name: rack1
    number: 1
    servers:
      - {name: server1, roles: [controller, poplar]}
clusters:
  - {id: cl0, racks: [rack1], topology: torus}
allocations:
  - {id: research, cluster: cl0, size: 8}
partitions:
  - {id: vision, allocation: research, size: 16, reconfigurable: true}
# IPU-Machines of the lower half of each rack in one more group
groups:
  lower_half: pod_unit is defined and pod_unit <= 8
"""

import dataclasses
import hashlib
import typing as t
from pathlib import Path

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.cabling import cable_macs
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.networking import network_config, networks, tenants
from ansible_collections.openipu.pod.plugins.module_utils.pod.services import network_services
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import beside
from ansible_collections.openipu.pod.plugins.module_utils.pod.spec import HOST_ROLES
from ansible_collections.openipu.pod.plugins.module_utils.pod.switching import switch_config

_DEPLOYED = "deploy_%s"  # the hosts that a role is put on
_GROUPS = (
    *("machines", "poplar_servers", "controllers", "switches", "data_switches", "management_switches", "pdus"),
    *(_DEPLOYED % role for role in HOST_ROLES),
)
_ROLES = {"poplar": "poplar_servers", "controller": "controllers"}


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "openipu.pod.pod"

    def verify_file(self, path: str) -> bool:
        name = Path(path).name
        return super().verify_file(path) and ("." + name).endswith((".pod.yml", ".pod.yaml"))

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path)
        try:
            data = self._data(path, cache)
        except PodError as error:
            raise AnsibleParserError(str(error)) from None
        self._populate(data)

    def _data(self, path: str, cache: bool) -> dict[str, t.Any]:
        """What the files say, from the cache when it holds that."""
        try:
            self._read_config_data(path)
        except AnsibleError:
            load(path)  # says it with the line
            raise
        if not self.get_option("cache"):
            return _describe(load(path))
        key = "%s_%s" % (self.get_cache_key(path), _digest(path, beside(path, self.get_option("machines"))))
        try:
            if cache:
                return self._cache[key]
        except KeyError:
            pass
        self._cache[key] = data = _describe(load(path))
        return data

    def _populate(self, data: dict[str, t.Any]) -> None:
        for group in _GROUPS:
            self.inventory.add_group(group)
        for group in ("data_switches", "management_switches"):
            self.inventory.add_child("switches", group)
        for name, value in data["all"].items():
            self.inventory.set_variable("all", name, value)
        racks = {}
        for rack in data["racks"]:
            if rack in _GROUPS:
                raise AnsibleParserError("rack '%s' has the name of a group of the inventory: rename it" % rack)
            racks[rack] = self.inventory.add_group(self._sanitize_group_name(rack))
        strict = self.get_option("strict")
        for name, host in data["hosts"].items():
            self.inventory.add_host(name)
            for group in host["groups"]:
                self.inventory.add_child(group, name)
            self.inventory.add_child(racks[host["vars"]["pod_rack"]], name)
            for variable, value in host["vars"].items():
                self.inventory.set_variable(name, variable, value)
            self._set_composite_vars(self.get_option("compose"), host["vars"], name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), host["vars"], name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), host["vars"], name, strict=strict)


def _digest(*paths: str) -> str:
    """A text that changes when one of the files does; raises PodError for one that cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise PodError(path, None, "cannot be read: %s" % error.strerror) from error
        digest.update(b"%d\n" % len(content) + content)
    return digest.hexdigest()[:16]


def _describe(pod: model.Pod) -> dict[str, t.Any]:
    """The inventory of a POD as plain data, which a cache can hold."""
    numbers = {rack.name: rack.number for rack in pod.racks}
    devices = {device.name: device for device in pod.devices}
    ports: dict[str, list[dict[str, t.Any]]] = {}
    cables: dict[str, list[dict[str, t.Any]]] = {}
    for cable in pod.cables:
        row = {"port": cable.port, "connector": cable.connector, "vlans": list(cable.vlans)}
        ports.setdefault(cable.device, []).append({"switch": cable.switch, **row})
        behind = {"device": cable.device, **row, "macs": cable_macs(devices[cable.device], cable.connector)}
        cables.setdefault(cable.switch, []).append(behind)
    hosts = {}
    for device in pod.devices:
        groups, variables = _host(device)
        variables.update(
            pod_rack=device.rack,
            pod_rack_number=numbers[device.rack],
            pod_addresses=device.addresses,
            pod_macs=device.macs,
            pod_ports=ports.get(device.name, []),
        )
        if isinstance(device, model.Switch):
            variables["pod_cables"] = cables.get(device.name, [])
            variables["pod_switch_config"] = switch_config(pod, device)
        hosts[device.name] = {
            "groups": groups + [_DEPLOYED % role for role in HOST_ROLES if _is_for(pod, role, groups)],
            "vars": {name: value for name, value in variables.items() if value is not None},
        }
    shared = {
        "pod_name": pod.name,
        "pod_file": pod.file,
        "pod_machines_file": pod.machines_file,
        "pod_networks": {name: dataclasses.asdict(network) for name, network in pod.networks.items()},
        "pod_services": network_services(pod),
        "vipu_api_host": pod.controller_host,
        "vipu_api_port": pod.controller_port,
        "vipu_connection": {"api_host": pod.controller_host, "api_port": pod.controller_port},
    }
    shared.update(("vipu_pod_%s" % kind, rows) for kind, rows in pod.desired().items())
    if pod.cloud:
        shared["pod_openstack_config"] = network_config(pod, pod.cloud)
        shared["pod_openstack_networks"] = networks(pod)
        shared["pod_openstack_tenants"] = tenants(pod, pod.cloud)
    return {"hosts": hosts, "all": shared, "racks": list(numbers)}


def _is_for(pod: model.Pod, role: str, groups: list[str]) -> bool:
    """Whether a role is put on the hosts that are in these groups."""
    return any(role in pod.deploy.get(group, ()) for group in groups)


def _host(device: model.Device) -> tuple[list[str], dict[str, t.Any]]:
    """The groups of a device and the variables of its kind; Ansible reaches it by ``ansible_host``."""
    host = {"ansible_host": device.addresses.get(device.reached_by)}
    if isinstance(device, model.Machine):
        return ["machines"], {
            **host,
            "pod_kind": "machine",
            "pod_unit": device.unit,
            "pod_agent_id": device.agent,
            "pod_rack_unit": device.rack_unit,
            "pod_serial": device.serial,
        }
    if isinstance(device, model.Server):
        groups = [_ROLES[role] for role in device.roles]
        return groups, {**host, "pod_kind": "server"}
    if isinstance(device, model.Switch):
        return ["%s_switches" % device.kind], {**host, "pod_kind": "switch", "pod_model": device.model}
    return ["pdus"], {**host, "pod_kind": "pdu", "pod_model": device.model}
