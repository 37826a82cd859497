# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod
short_description: POD-wide data of an IPU-POD
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Returns lists and configurations that grow with the POD, from the description of the POD (C(pod.yml) and C(machines.csv)).
  - The inventory plugin P(openipu.pod.pod#inventory) sets variables with this lookup, such as C(vipu_pod_agents), so that the data are not
    repeated for every host.
  - The inventory plugin reads the files once for all lookups of a run. With an inventory that was exported, Ansible starts a process for each
    task on each host, and each of them reads the files again.
options:
  _terms:
    description:
      - Names of the data. V(agents), V(clusters), V(allocations) and V(partitions) are options of M(openipu.pod.vipu_pod).
      - Each item of V(users) has options of M(openipu.pod.vipu_user).
      - V(services) are names, addresses and MACs for the role P(openipu.pod.management_server#role).
      - V(openstack_config) is the option O(openipu.pod.openstack_pod_network#module:config), and V(openstack_tenants) are the resources for
        tenants, by project. The key V(*) is for all other projects. V(openstack_projects) is the option
        O(openipu.pod.openstack_pod_project#module:projects) for the projects of teams. V(openstack_nodes) are by name, for the option
        O(openipu.pod.openstack_pod_bare_metal#module:nodes). They exist only for PODs with OpenStack.
      - V(kubernetes_controllers) and V(kubernetes_quotas) are variables of the role P(openipu.pod.ipu_operator#role). They exist only for
        PODs with Kubernetes.
      - V(teams) are the quotas of teams by name.
    required: true
    type: list
    elements: str
    choices:
      - agents
      - clusters
      - allocations
      - partitions
      - users
      - teams
      - services
      - openstack_config
      - openstack_tenants
      - openstack_projects
      - openstack_nodes
      - kubernetes_controllers
      - kubernetes_quotas
  file:
    description: Path of C(pod.yml) on the control node. The inventory plugin sets the variable C(pod_file).
    type: str
    required: true
requirements:
  - PyYAML
  - netaddr
"""

EXAMPLES = r"""
- name: Show the partitions of the POD
  ansible.builtin.debug:
    msg: "{{ lookup('openipu.pod.pod', 'partitions', file=pod_file) | map(attribute='id') }}"
"""

RETURN = r"""
_raw:
  description: The data, one item for each name.
  type: list
  elements: raw
"""

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError
from ansible_collections.openipu.pod.plugins.plugin_utils.pod_data import VARIABLES, recall


# Keys of pod.yml without which some data do not exist.
KEYS = {"openstack": "OpenStack", "kubernetes": "Kubernetes"}


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[t.Any]:
        self.set_options(var_options=variables, direct=kwargs)
        for term in terms:
            if term not in VARIABLES.values():
                names = ", ".join(VARIABLES.values())
                raise AnsibleError("Cannot look up '%s': the name is unknown. Choose from %s." % (term, names))
        file = self.get_option("file")
        try:
            return recall(file, terms)
        except PodError as error:
            raise AnsibleError("%s (%s)" % (error, error.error_code)) from None
        except KeyError as error:
            key = str(error.args[0]).partition("_")[0]
            raise AnsibleError(
                "Cannot look up %s of %s: the POD has no %s. Add the key %s." % (error, file, KEYS[key], key)
            ) from None
