# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell what Neutron holds for a POD, and what its tenants see and reach."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_network_info
short_description: Tell what Neutron holds for a POD, and what its tenants see and reach
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Tells what is tagged with O(pod), in the words of the option O(openipu.pod.openstack_pod_network#module:config).
  - Finds leaks. For every tenant it tells on which networks ports may be made, to which others routers lead from there, and what is on them. With the
    tenant's own credentials it also asks Neutron what the tenant is shown. That is compared with what the tenant may.
  - What security groups let pass is not looked at, since a tenant chooses those of its ports itself.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes.info
  - openipu.pod.attributes.openstack
options:
  pod:
    description: Whose objects are told.
    type: str
  tenants:
    description: Whom to look at. That takes an administrator's credentials.
    type: list
    elements: dict
    suboptions:
      project:
        description: The project, by name or id.
        type: str
        required: true
      networks:
        description: The networks that it may see and reach, beside its own and those to the outside. It is a finding too when it does not reach one.
        type: list
        elements: str
        required: true
      cloud:
        description: The tenant's cloud in C(clouds.yaml), to ask as it does.
        type: str
      auth:
        description: The tenant's credentials, to ask as it does.
        type: dict
        suboptions:
          auth_url:
            description: Where Keystone answers.
            type: str
          username:
            description: Who asks.
            type: str
          user_id:
            description: Who asks, by id.
            type: str
          user_domain_name:
            description: The domain of the user.
            type: str
          user_domain_id:
            description: The domain of the user, by id.
            type: str
          project_name:
            description: For which project.
            type: str
          project_id:
            description: For which project, by id.
            type: str
          project_domain_name:
            description: The domain of the project.
            type: str
          project_domain_id:
            description: The domain of the project, by id.
            type: str
          domain_name:
            description: For which domain, instead of a project.
            type: str
          domain_id:
            description: For which domain, by id.
            type: str
          default_domain_id:
            description: The domain of user and project, unless told.
            type: str
          system_scope:
            description: V(all) asks for the system, instead of a project.
            type: str
          trust_id:
            description: The trust to use.
            type: str
          application_credential_id:
            description: The id of an application credential.
            type: str
          application_credential_name:
            description: The name of an application credential.
            type: str
          endpoint:
            description: The endpoint of O(auth_type=none) and O(auth_type=admin_token).
            type: str
          password:
            description: The password.
            type: str
          passcode:
            description: The one-time code.
            type: str
          token:
            description: A token, for O(auth_type=token).
            type: str
          application_credential_secret:
            description: The secret of an application credential.
            type: str
  fail_on_findings:
    description: Fail when a tenant sees or reaches more or less than it may.
    type: bool
    default: false
seealso:
  - module: openipu.pod.openstack_pod_network
"""

EXAMPLES = r"""
- name: See what there is
  openipu.pod.openstack_pod_network_info:
    cloud: admin
    pod: pod64
  register: there

- name: Be sure that a tenant gets to its own networks and to no other
  openipu.pod.openstack_pod_network_info:
    cloud: admin
    tenants:
      - project: tenant-a
        cloud: tenant-a
        networks: [pod64-data, pod64-storage, pod64-management]
    fail_on_findings: true
"""

RETURN = r"""
networks:
  description: Networks, each with C(id) and in the words of the option O(openipu.pod.openstack_pod_network#module:config).
  type: list
  elements: dict
  returned: with O(pod)
subnets:
  description: The same of subnets.
  type: list
  elements: dict
  returned: with O(pod)
security_groups:
  description: The same of security groups.
  type: list
  elements: dict
  returned: with O(pod)
ports:
  description: The same of ports. C(bound) is what has it, like C(compute:nova).
  type: list
  elements: dict
  returned: with O(pod)
routers:
  description: The same of routers.
  type: list
  elements: dict
  returned: with O(pod)
shares:
  description: The same of shares.
  type: list
  elements: dict
  returned: with O(pod)
subnet_pools:
  description: The same of subnet pools.
  type: list
  elements: dict
  returned: with O(pod)
address_scopes:
  description: The same of address scopes.
  type: list
  elements: dict
  returned: with O(pod)
tenants:
  description: What was found of every tenant.
  type: list
  elements: dict
  returned: with O(tenants)
  contains:
    project:
      description: The project.
      type: str
      returned: always
    reaches:
      description: C(networks), by name, and C(ports) on them, each with C(network), C(name), C(mac) and C(addresses).
      type: dict
      returned: always
    sees:
      description: The same, with C(subnets) and C(security_groups), as Neutron shows it to the tenant.
      type: dict
      returned: with its credentials
    findings:
      description: The findings on this tenant.
      type: list
      elements: dict
      returned: always
findings:
  description: What tenants see or reach and may not, and what they may and do not reach.
  type: list
  elements: dict
  returned: always
  contains:
    project:
      description: The project.
      type: str
      returned: always
    kind:
      description: C(attaches), C(reaches), C(sees) or C(lacks).
      type: str
      returned: always
    network:
      description: The network.
      type: str
      returned: always
    reason:
      description: What is the matter and what to do about it, in a sentence.
      type: str
      returned: always
ok:
  description: Whether there are no findings; none without O(tenants).
  type: bool
  returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.infos import OPENSTACK_POD_NETWORK_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_NETWORK_INFO)


if __name__ == "__main__":
    main()
