# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod
short_description: Inventory of an IPU-POD
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Reads the description of an IPU-POD, a file named C(pod.yml) or ending in C(.pod.yml), and the table of its
    IPU-Machines, C(machines.csv).
  - Creates the groups C(machines), C(poplar_servers), C(controllers), C(switches) and C(pdus). The groups C(data_switches) and
    C(management_switches) are children of C(switches).
  - Creates one group per rack, with the name of the rack. Creates one group per role of O(deploy), such as C(deploy_common).
    Creates the group C(pod_NAME) with all hosts of the POD. Its variables in C(group_vars) override those of the other groups.
  - Every host has C(pod_device), its name in C(pod.yml) or C(machines.csv), C(pod_kind), C(pod_rack), C(pod_rack_number), and
    C(pod_rack_group), the name of the group of its rack. C(pod_addresses) and C(pod_macs) are by interface. C(pod_ports) are the switch
    ports of its cables.
  - IPU-Machines also have C(pod_unit), C(pod_agent_id), C(pod_rack_unit) and C(pod_serial). Switches and PDUs have C(pod_model).
  - Switches also have C(pod_switch_config) for M(openipu.pod.eos_pod), and C(pod_cables) for M(openipu.pod.eos_pod_info).
  - All hosts have the following variables. C(pod_name), C(pod_file) and C(pod_machines_file) identify the POD. C(pod_group) is a group with
    all its hosts. C(pod_networks) are its networks. C(pod_services) are names, addresses and MACs for the role
    P(openipu.pod.management_server#role).
  - C(vipu_api_host) and C(vipu_api_port) are the address of the controller. Several hosts are separated by commas, as the modules accept
    them. C(vipu_connection) contains them as C(api_host) and C(api_port), for C(module_defaults).
  - C(vipu_pod_agents), C(vipu_pod_clusters), C(vipu_pod_allocations) and C(vipu_pod_partitions) are options of M(openipu.pod.vipu_pod).
    Each item of C(vipu_pod_users) has options of M(openipu.pod.vipu_user).
  - C(pod_teams) are the quotas of O(teams), by name of the team.
  - With O(openstack), all hosts also have C(pod_openstack_config) for the option O(openipu.pod.openstack_pod_network#module:config).
    C(pod_openstack_networks) are the names of the networks in OpenStack. C(pod_openstack_tenants) are the resources for tenants, by
    project. The key V(*) is for all other projects. C(pod_openstack_projects) are the projects of O(teams), for
    O(openipu.pod.openstack_pod_project#module:projects). C(pod_openstack_nodes) are by name, for
    O(openipu.pod.openstack_pod_bare_metal#module:nodes).
  - With O(kubernetes), all hosts also have C(pod_kubernetes_controllers) and C(pod_kubernetes_quotas) for the role
    P(openipu.pod.ipu_operator#role).
  - Variables that grow with the POD are templates with the lookup P(openipu.pod.pod#lookup), which reads C(pod_file) on the control node. They
    are C(pod_services), C(pod_teams), C(pod_openstack_config), C(pod_openstack_tenants), C(pod_openstack_projects),
    C(pod_openstack_nodes), C(pod_kubernetes_controllers), C(pod_kubernetes_quotas), and all variables C(vipu_pod_*).
  - Errors are reported with file, line and remedy. No device is contacted.
requirements:
  - PyYAML
  - netaddr
options:
  plugin:
    description: Name of this plugin.
    required: true
    choices: [openipu.pod.pod]
  name:
    description: Name of the POD.
    type: str
    required: true
  machines:
    description: Path of the table of IPU-Machines, relative to the folder of this file.
    type: str
    default: machines.csv
  shared_inventory:
    description:
      - Whether the inventory also contains other PODs. Set it in all of them.
      - The names of hosts and groups of racks then start with the name of the POD, such as C(north-ipum01) and C(north_rack1). The variables
        of all hosts are then variables of the group C(pod_NAME), such as C(pod_north), and not of C(all).
    type: bool
    default: false
  agent_port:
    description: TCP port of the V-IPU agents.
    type: int
    default: 8080
  controller:
    description:
      - Endpoint of the V-IPU controller, with C(host) or C(server) (the name of a server of the POD). C(port) is 8090 by default.
      - C(host) is a name or an address, or a list of those of several controllers of one deployment, of which one leads.
      - Omit to use the management address of the first server with the role V(controller), and port 8090.
    type: dict
  networks:
    description:
      - The networks C(bmc), C(gw), C(management), C(data) and C(storage), each with C(vlan) and C(subnet).
      - Omitted values default to the VLANs of the reference design, and to the subnets of the address plan 10.x.y.z. C(storage) has no default
        subnet.
    type: dict
  racks:
    description:
      - The racks, each with C(name) and C(number), and optionally C(servers), C(switches), C(pdus) and C(cables).
      - C(cables) are the differences from the reference port map. Omit it for no differences.
    type: list
    elements: dict
    required: true
  openstack:
    description:
      - Settings of the networks in OpenStack, all of them optional. These are C(physical_networks), C(mtu), C(dns_domain), C(dns_servers),
        C(management_servers), C(nfs_servers), C(external_network), C(address_scope), C(networks) and C(tenants).
      - Omit for a POD without OpenStack. An empty dictionary uses all defaults.
    type: dict
  kubernetes:
    description:
      - Nodes of a Kubernetes cluster that are Poplar servers, all settings optional. C(label) is the label of these nodes as C(key=value), by
        default C(vipu-ctrl) with the name of the POD. C(servers) are the servers, by default all with the role V(poplar). C(node_names) are
        names in Kubernetes by server, by default the names of the servers.
      - Omit for a POD without Kubernetes. An empty dictionary uses all defaults.
    type: dict
  deploy:
    description:
      - Roles of this collection that the playbook C(hosts.yml) applies, as lists for C(controllers), C(machines) and
        C(poplar_servers). Omit to apply no roles.
    type: dict
  clusters:
    description:
      - The clusters, each with C(id), C(racks) or C(machines), and optionally C(topology), C(cluster_topology) and C(num_ilds).
      - C(topology) is V(mesh) by default, C(num_ilds) is 1. Omit O(clusters) for a POD without clusters.
    type: list
    elements: dict
  allocations:
    description: The allocations, each with C(id), C(cluster), and either C(size) or C(machines). Omit for a POD without allocations.
    type: list
    elements: dict
  partitions:
    description:
      - The partitions, each with C(id), C(allocation) and C(size), and optionally other options of M(openipu.pod.vipu_partition).
      - Omit for a POD without partitions.
    type: list
    elements: dict
  users:
    description:
      - The users of a secure controller, each with C(id), and optionally C(role) (default V(user)) and C(allocations).
        A user without C(allocations) may use none.
      - Omit for a POD without users.
    type: list
    elements: dict
  teams:
    description:
      - Quotas of teams, each with C(name) and C(ipus), the largest number of IPUs. C(namespace) is the Kubernetes namespace of the team, and
        C(project) its OpenStack project. C(instances) is the largest number of VMs in the project, by default one per IPU-Machine.
      - Omit for a POD without quotas. Then orders of IPUs are rejected.
    type: list
    elements: dict
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - A cached inventory is used until one of the files changes, or another release of the collection is installed.
  - By default, Ansible warns about a file with mistakes, and continues without its hosts. With C(any_unparsed_is_failed = true)
    in the section C(inventory) of C(ansible.cfg), the program ends with one message. To also get this message for files that are not
    YAML, list C(openipu.pod.pod) as the first of C(enable_plugins) in that section.
  - With a folder as inventory, exclude C(machines.csv) with C(ignore_patterns) in that section, or use the path of C(pod.yml).
"""

EXAMPLES = r"""
# pod.yml: one rack in the factory's address plan, its machines in machines.csv in the same folder
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
teams:
  - {name: research, ipus: 32}
# IPU-Machines of the lower half of each rack in one more group
groups:
  lower_half: pod_unit is defined and pod_unit <= 8
"""

import dataclasses
import hashlib
import typing as t
from pathlib import Path

from ansible.errors import AnsibleError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.cabling import cable_macs
from ansible_collections.openipu.pod.plugins.module_utils.pod.inventory_names import (
    DEPLOYED,
    GROUPS,
    UNMANAGED,
    is_pod_file,
)
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import networks
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import check_syntax_and_size, relative_to
from ansible_collections.openipu.pod.plugins.module_utils.pod.spec import HOST_ROLES
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config
from ansible_collections.openipu.pod.plugins.plugin_utils import pod_data
from ansible_collections.openipu.pod.plugins.plugin_utils.pod_names import PodNames
from ansible_collections.openipu.pod.plugins.plugin_utils.rejected_inventory import explained, rejection

try:
    from ansible.template import trust_as_template
except ImportError:  # before version 2.19, every string is a template

    def trust_as_template(value: t.Any) -> t.Any:
        return value


_COLLECTION = Path(__file__).parents[2]
_POD_PRIORITY = 10  # other groups have 1
_ROLES = {"poplar": "poplar_servers", "controller": "controllers"}


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "openipu.pod.pod"

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and is_pod_file(Path(path).name)

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path)
        try:
            data = self._data(path, cache)
        except PodError as error:
            raise rejection("%s (%s)" % (error, error.error_code)) from None
        self._populate(data)

    def _data(self, path: str, cache: bool) -> dict[str, t.Any]:
        """Return the inventory data from the cache or from the files. Raises PodError."""
        self._read_settings(path)
        if not self.get_option("cache"):
            return _describe(load(path))
        files = [path, relative_to(path, self.get_option("machines")), *_release_files()]
        key = "%s_%s" % (self.get_cache_key(path), _digest(*files))
        try:
            if cache:
                return self._cache[key]
        except KeyError:
            pass
        self._cache[key] = data = _describe(load(path))
        return data

    def _read_settings(self, path: str) -> None:
        """Set the options from the file. Raises PodError, or AnsibleError for a file of another plugin."""
        # Ansible would warn about text that is not UTF-8 and parse the rest of the file, and expand all aliases.
        check_syntax_and_size(path)
        try:
            self._read_config_data(path)
        except AnsibleError as error:
            raise explained(path, self.NAME, error) from None

    def _populate(self, data: dict[str, t.Any]) -> None:
        pod_data.remember(data["pod_file"], data["pod"])
        for group in GROUPS:
            self.inventory.add_group(group)
        for group in ("data_switches", "management_switches"):
            self.inventory.add_child("switches", group)
        unmanaged = {group for host in data["hosts"].values() for group in host["groups"] if group not in GROUPS}
        for group in sorted(unmanaged):
            self.inventory.add_group(group)
        names = PodNames(
            self.inventory,
            data["pod_name"],
            data["pod_file"],
            self.get_option("shared_inventory"),
            self._sanitize_group_name,
        )
        racks = {rack: names.rack(rack) for rack in data["racks"]}
        hosts = {device: names.host(device) for device in data["hosts"]}
        for group in (names.pod_group, *racks.values()):
            self.inventory.add_group(group)
        self._set_variables_of_all_hosts(data, names)
        strict = self.get_option("strict")
        for device, host in data["hosts"].items():
            name, rack = hosts[device], racks[host["vars"]["pod_rack"]]
            self.inventory.add_host(name)
            for group in (*host["groups"], names.pod_group, rack):
                self.inventory.add_child(group, name)
            # Before version 2.19, Ansible renders templates in variables that are not marked.
            variables = wrap_var({**host["vars"], "pod_rack_group": rack})
            for variable, value in variables.items():
                self.inventory.set_variable(name, variable, value)
            self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)

    def _set_variables_of_all_hosts(self, data: dict[str, t.Any], names: PodNames) -> None:
        self.inventory.set_variable(names.pod_group, "ansible_group_priority", _POD_PRIORITY)
        for variable, value in data["all"].items():
            self.inventory.set_variable(names.owner, variable, wrap_var(value))
        self.inventory.set_variable(names.owner, "pod_group", names.owner)
        for variable, name in pod_data.VARIABLES.items():
            if name in data["pod"]:
                template = trust_as_template(pod_data.TEMPLATES[variable])
                self.inventory.set_variable(names.owner, variable, template)


def _release_files() -> list[str]:
    """Return the file that identifies the release of this collection: another release may have other variables."""
    # An installed collection has a manifest with the checksums of all files, a checkout only galaxy.yml.
    candidates = (_COLLECTION / name for name in ("MANIFEST.json", "galaxy.yml"))
    return [str(path) for path in candidates if path.exists()][:1]


def _digest(*paths: str) -> str:
    """Return a digest of the contents of files. Raises PodError for an unreadable file."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise PodError(path, None, "cannot be read: %s" % error.strerror) from error
        digest.update(b"%d\n" % len(content) + content)
    return digest.hexdigest()[:16]


def _describe(pod: model.Pod) -> dict[str, t.Any]:
    """Return the inventory of a POD as plain data for the cache."""
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
            pod_device=device.name,
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
            "groups": groups + [DEPLOYED % role for role in HOST_ROLES if _has_role(pod, role, groups)],
            "vars": {name: value for name, value in variables.items() if value is not None},
        }
    shared = {
        "pod_name": pod.name,
        "pod_file": pod.file,
        "pod_machines_file": pod.machines_file,
        "pod_networks": {name: dataclasses.asdict(network) for name, network in pod.networks.items()},
        "vipu_api_host": pod.api_host,
        "vipu_api_port": pod.controller_port,
        "vipu_connection": {"api_host": pod.api_host, "api_port": pod.controller_port},
    }
    if pod.cloud:
        shared["pod_openstack_networks"] = networks(pod)
    return {
        "pod_name": pod.name,
        "pod_file": pod.file,
        "hosts": hosts,
        "racks": list(numbers),
        "all": shared,
        "pod": pod_data.describe(pod),
    }


def _has_role(pod: model.Pod, role: str, groups: list[str]) -> bool:
    """Return whether hosts in these groups have a role."""
    return any(role in pod.deploy.get(group, ()) for group in groups)


def _host(device: model.Device) -> tuple[list[str], dict[str, t.Any]]:
    """Return the groups of a device and the variables of its kind, with its management address.

    Unmanaged devices are in groups of their own, which no playbook configures.
    """
    groups, variables = _kind(device)
    managed = isinstance(device, model.Machine) or device.managed
    return [group if managed else UNMANAGED % group for group in groups], variables


def _kind(device: model.Device) -> tuple[list[str], dict[str, t.Any]]:
    """Return the groups of a managed device and the variables of its kind."""
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
