# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the Neutron objects of a POD, and the networks that its tenants see and reach."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_network_info
short_description: Read the Neutron objects of a POD, and the networks that its tenants see and reach
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Returns the objects with the tag of O(pod), in the format of the option O(openipu.pod.openstack_pod_network#module:config).
  - Finds leaks between tenants. A tenant reaches the networks on which it may create ports, and those that routers connect to them. The module returns
    these networks and their ports. With the credentials of the tenant, it also reads the objects that Neutron shows to the tenant. All are compared
    with the networks that the tenant may see and reach.
  - In a cloud with Manila, also finds shared file systems whose access rules allow the addresses of several tenants. Shares with a share network and rules
    for users or certificates are ignored.
  - Security groups are ignored, since a tenant chooses those of its ports itself.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes.info
  - openipu.pod.attributes.openstack_group
options:
  pod:
    description: Name of the owning POD. Omit to read no objects.
    type: str
  tenants:
    description: Tenants to check. Requires the credentials of an administrator, also of Manila if the cloud has it. Omit to skip the check.
    type: list
    elements: dict
    suboptions:
      project:
        description: Name or ID of the project.
        type: str
        required: true
      networks:
        description:
          - Networks that the tenant may see and reach, in addition to its own and external ones. A network that it does not reach is a finding too.
          - They are names of networks in the project of the credentials, or IDs of networks in any project. A network of another project with one of
            these names is not allowed.
        type: list
        elements: str
        required: true
      common_networks:
        description: Those of O(tenants[].networks) that other projects may use too. Every other network with a share for another project is a finding.
        type: list
        elements: str
      cloud:
        description: Name of a cloud in C(clouds.yaml) with the tenant's credentials. Omit this and O(tenants[].auth) to skip the check of visible objects.
        type: str
      auth:
        description: Credentials of the tenant, in the format of C(auth) in C(clouds.yaml).
        type: dict
        suboptions:
          auth_url:
            description: URL of Keystone.
            type: str
          username:
            description: User name.
            type: str
          user_id:
            description: ID of the user.
            type: str
          user_domain_name:
            description: Name of the domain of the user.
            type: str
          user_domain_id:
            description: ID of the domain of the user.
            type: str
          project_name:
            description: Name of the project.
            type: str
          project_id:
            description: ID of the project.
            type: str
          project_domain_name:
            description: Name of the domain of the project.
            type: str
          project_domain_id:
            description: ID of the domain of the project.
            type: str
          domain_name:
            description: Name of the domain to log in to, instead of a project.
            type: str
          domain_id:
            description: ID of the domain to log in to, instead of a project.
            type: str
          default_domain_id:
            description: Domain of user and project when their own options are omitted.
            type: str
          system_scope:
            description: V(all) to log in to the system, instead of a project.
            type: str
          trust_id:
            description: ID of the trust to use.
            type: str
          application_credential_id:
            description: ID of an application credential.
            type: str
          application_credential_name:
            description: Name of an application credential.
            type: str
          endpoint:
            description: Endpoint for O(auth_type=none) and O(auth_type=admin_token).
            type: str
          password:
            description: Password of the user.
            type: str
          passcode:
            description: One-time code.
            type: str
          token:
            description: Token, for O(auth_type=token).
            type: str
          application_credential_secret:
            description: Secret of an application credential.
            type: str
  fail_on_findings:
    description: Whether to fail when there are findings.
    type: bool
    default: false
seealso:
  - module: openipu.pod.openstack_pod_network
"""

EXAMPLES = r"""
- name: Read the Neutron objects of the POD
  openipu.pod.openstack_pod_network_info:
    cloud: admin
    pod: pod64
  register: pod_network

- name: Check that a tenant reaches only its own networks
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
  description: Networks, each with C(id) and in the format of the option O(openipu.pod.openstack_pod_network#module:config).
  type: list
  elements: dict
  returned: with O(pod)
subnets:
  description: Subnets, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
security_groups:
  description: Security groups, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
ports:
  description: Ports, as for RV(networks). C(bound) is the user of the port, such as C(compute:nova).
  type: list
  elements: dict
  returned: with O(pod)
routers:
  description: Routers, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
shares:
  description: Shares, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
subnet_pools:
  description: Subnet pools, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
address_scopes:
  description: Address scopes, as for RV(networks).
  type: list
  elements: dict
  returned: with O(pod)
tenants:
  description: Access of each tenant.
  type: list
  elements: dict
  returned: with O(tenants)
  contains:
    project:
      description: Project of the tenant.
      type: str
      returned: always
    reachable:
      description: Reachable networks. C(networks) are their names, and C(ports) the ports on them, each with C(network), C(name), C(mac) and C(addresses).
      type: dict
      returned: always
    visible:
      description: Objects that Neutron shows to the tenant, as for C(reachable), with C(subnets) and C(security_groups).
      type: dict
      returned: with O(tenants[].cloud) or O(tenants[].auth)
    findings:
      description: Findings about this tenant.
      type: list
      elements: dict
      returned: always
findings:
  description: Forbidden networks that tenants see or reach, allowed networks that they do not reach, networks of several projects, and shared file systems
    that several tenants can mount.
  type: list
  elements: dict
  returned: always
  contains:
    project:
      description: Project of the tenant.
      type: str
      returned: always
    kind:
      description:
        - C(attachable) for a forbidden network on which the tenant can create ports, C(reachable) for one that it reaches through a router.
        - C(visible) for a network with objects or details that Neutron must not show to the tenant.
        - C(unreachable) for an allowed network that the tenant does not reach.
        - C(common) for an allowed network that another project may use too, and that is not in O(tenants[].common_networks).
        - C(mountable) for a shared file system of another project with an access rule for a network with a VLAN that the tenant reaches.
        - C(exposed) for a shared file system of the tenant with an access rule for such a network that the tenant does not reach.
      type: str
      returned: always
    network:
      description: Name of the network.
      type: str
      returned: always
    share:
      description: Name of the shared file system.
      type: str
      returned: for the kinds C(mountable) and C(exposed)
    reason:
      description: Message with the cause and the remedy.
      type: str
      returned: always
ok:
  description: V(true) without findings; C(null) without O(tenants).
  type: bool
  returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.info_task import (
    OPENSTACK_POD_NETWORK_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_NETWORK_INFO)


if __name__ == "__main__":
    main()
