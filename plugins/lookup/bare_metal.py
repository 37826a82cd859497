# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: bare_metal
short_description: Bare-metal nodes of a POD with the settings of their BMCs
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Returns the nodes of the hosts of a play for M(openipu.pod.openstack_pod_bare_metal), and data to check before nodes are registered.
  - The BMC of a node has the settings in the variable C(openstack_bmc) of its host.
  - The variables C(openstack_machine_bmc), for IPU-Machines, and C(openstack_server_bmc), for Poplar servers, replace user name and password,
    and other settings if they are not empty. Then only C(address), C(system_id), C(ca_path) and C(validate_certs) in C(openstack_bmc) are
    evaluated. If C(openstack_bmc) itself is a template, all of it is evaluated. C(ca_path) is not replaced for a device with
    C(validate_certs=false).
  - A device is skipped without these variables, and if C(openstack_machine_bmc) or C(openstack_server_bmc) has no user name.
  - A variable that is null, or whose template omits its value, counts as missing.
  - Variables are evaluated for each host. Hosts in the group C(machines) are IPU-Machines.
options:
  _terms:
    description:
      - Names of the data.
      - V(undefined) are texts. Each has an undefined variable that V(nodes) needs, the variable that uses it, and the hosts.
      - V(skipped) are the hosts of devices without settings of a BMC.
      - V(nodes) is the option O(openipu.pod.openstack_pod_bare_metal#module:nodes), with the passwords of the BMCs.
      - V(removed) is the same option with all devices and only their names, for O(openipu.pod.openstack_pod_bare_metal#module:state=absent).
      - V(busy) are texts. Each has an IPU-Machine of O(power_off) that has O(partitions), and these.
    required: true
    type: list
    elements: str
    choices:
      - undefined
      - skipped
      - nodes
      - removed
      - busy
  nodes:
    description: Nodes of the POD by name, without settings of BMCs other than C(address). Devices that are not in it are ignored, except by V(busy).
    type: dict
    default: {}
  hosts:
    description: Names of the hosts of the devices. The default is all hosts of the play.
    type: list
    elements: str
  power_off:
    description: Names of the IPU-Machines that Ironic may switch off.
    type: list
    elements: str
    default: []
  server_state:
    description: Provision state of Poplar servers. V(inventory) is that in the variable C(openstack_server_state) of each, by default V(manageable).
    type: str
    default: inventory
  partitions:
    description: IDs of partitions by agent, see P(openipu.pod.partitions_by_agent#filter).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Check that the variables of the BMCs are defined
  ansible.builtin.assert:
    that: undefined | length == 0
    fail_msg: "Undefined: {{ undefined | join('; ') }}"
  vars:
    undefined: "{{ lookup('openipu.pod.bare_metal', 'undefined', nodes=pod_openstack_nodes) }}"
  run_once: true

- name: Register the nodes
  openipu.pod.openstack_pod_bare_metal:
    cloud: admin
    pod: "{{ pod_name }}"
    nodes: "{{ lookup('openipu.pod.bare_metal', 'nodes', nodes=pod_openstack_nodes, power_off=['ipum03']) }}"
  run_once: true
"""

RETURN = r"""
_raw:
  description: The data, one list for each name, in the order of the hosts.
  type: list
  elements: list
"""

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal import device_nodes
from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.device_nodes import Device
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.plugin_utils.host_variables import HostVariables, variables_of


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[list[t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        hosts = self.get_option("hosts")
        hosts = variables["ansible_play_hosts_all"] if hosts is None else hosts
        machines = set(variables["groups"].get("machines", ()))
        sources = variables_of(hosts, variables["hostvars"], self._loader)
        results = self._results([_device(host, source, host in machines) for host, source in sources.items()])
        for term in terms:
            if term not in results:
                raise AnsibleError(
                    "Cannot look up '%s': the name is unknown. Choose from %s." % (term, ", ".join(results))
                )
        try:
            return [results[term]() for term in terms]
        except UserError as error:
            raise AnsibleError(error.message) from None

    def _results(self, devices: list[Device]) -> dict[str, t.Callable[[], list[t.Any]]]:
        pod_nodes, power_off, state, partitions = map(
            self.get_option, ("nodes", "power_off", "server_state", "partitions")
        )
        registered = [device for device in devices if device.name in pod_nodes]
        return {
            "undefined": lambda: device_nodes.undefined_variables(registered, state),
            "skipped": lambda: device_nodes.skipped(registered),
            "nodes": lambda: device_nodes.nodes(registered, pod_nodes, power_off, state),
            "removed": lambda: [{"name": device.name} for device in registered],
            "busy": lambda: device_nodes.busy_machines(devices, power_off, partitions),
        }


def _device(host: str, variables: HostVariables, is_machine: bool) -> Device:
    name = variables.value("pod_device")
    if name is None:
        # The power check examines all machines, also those that --limit excludes.
        remedy = "remove the host from the group machines" if is_machine else "exclude the host with --limit"
        raise AnsibleError(
            "Cannot find the node of host '%s': it has no variable pod_device. Set pod_device, or %s." % (host, remedy)
        )
    return Device(host, name, is_machine, variables)
