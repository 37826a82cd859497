# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the desired objects in Neutron."""

from __future__ import annotations


class ModuleDocFragment:
    """Option with the desired networks, ports, security groups, routers and shares."""

    DOCUMENTATION = r"""
options:
  config:
    description:
      - Desired objects. The inventory plugin P(openipu.pod.pod#inventory) provides them as C(pod_openstack_config).
      - Omitted lists are not managed. Required for O(state=present).
    type: dict
    suboptions:
      address_scopes:
        description:
          - Address scopes. Routers do not translate addresses between the subnets of one scope.
          - Neutron has no tags for them. A scope named O(pod) belongs to the POD, unless another owner has a subnet pool in it.
          - A scope whose name begins with O(pod) and C(-) belongs to the POD when it contains subnet pools of the POD and of no other owner.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the address scope.
            type: str
            required: true
          ip_version:
            description: Version of IP. Neutron cannot change it. Omit to create a scope for IPv4.
            type: int
            choices: [4, 6]
          shared:
            description: Whether all projects may use it. Omit to use the default of OpenStack for a new one.
            type: bool
      subnet_pools:
        description: Subnet pools.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the subnet pool.
            type: str
            required: true
          prefixes:
            description: Prefixes, such as V(10.1.5.0/24).
            type: list
            elements: str
            required: true
          address_scope:
            description: Name of the address scope, or V(none).
            type: str
      networks:
        description: Networks.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the network.
            type: str
            required: true
          vlan:
            description: VLAN ID.
            type: int
          physical_network:
            description: Name of the physical network in the configuration of Neutron.
            type: str
          network_type:
            description: Type of the network. The default with O(config.networks[].vlan) is V(vlan).
            type: str
            choices: [vlan, flat, local, geneve, gre, vxlan]
          mtu:
            description: MTU in bytes.
            type: int
          dns_domain:
            description: DNS domain of the ports, with a trailing dot.
            type: str
          port_security:
            description: Default of port security for the ports of the network.
            type: bool
          external:
            description: Whether the network is external, so routers can have their gateway there.
            type: bool
          admin_state_up:
            description: Whether the network is up. Omit for up.
            type: bool
          description:
            description: Description of the network.
            type: str
      subnets:
        description: Subnets.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the subnet.
            type: str
            required: true
          network:
            description: Name of the network of the subnet.
            type: str
            required: true
          cidr:
            description: Prefix, such as V(10.1.5.0/24).
            type: str
            required: true
          subnet_pool:
            description: Name of the subnet pool of the prefix.
            type: str
          gateway:
            description: Address of the gateway, or V(none).
            type: str
          dhcp:
            description: Whether Neutron provides DHCP.
            type: bool
          pools:
            description: Address ranges for ports without O(config.ports[].addresses), such as V(10.1.5.150-10.1.5.253).
            type: list
            elements: str
          dns_servers:
            description: DNS servers, in order of preference. An empty list removes all. Omit to leave them unchanged.
            type: list
            elements: str
          host_routes:
            description: Routes that DHCP announces.
            type: list
            elements: dict
            suboptions:
              destination:
                description: Destination prefix.
                type: str
                required: true
              nexthop:
                description: Address of the next hop.
                type: str
                required: true
      security_groups:
        description: Security groups.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the security group.
            type: str
            required: true
          description:
            description: Description of the security group.
            type: str
          rules:
            description: All rules of the group. Others are removed, including the default rules of a new group.
            type: list
            elements: dict
            suboptions:
              direction:
                description: Direction of the traffic.
                type: str
                choices: [ingress, egress]
                required: true
              ethertype:
                description: Version of IP.
                type: str
                choices: [IPv4, IPv6]
                default: IPv4
              protocol:
                description: Name or number of the protocol. Omit for any protocol.
                type: str
              port:
                description: First port, or ICMP type. Omit for all ports.
                type: int
              port_max:
                description: Last port of a range, or ICMP code. Omit for the single port in O(config.security_groups[].rules[].port), or all codes.
                type: int
              remote:
                description: Prefix of the remote addresses. Omit this and O(config.security_groups[].rules[].remote_group) for any address.
                type: str
              remote_group:
                description: Name of the security group of the remote ports.
                type: str
              description:
                description: Description of a new rule. Neutron cannot change it.
                type: str
      ports:
        description: Ports.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the port, unique within the list.
            type: str
            required: true
          network:
            description: Name of the network of the port.
            type: str
            required: true
          mac:
            description: MAC address.
            type: str
          addresses:
            description: IP addresses.
            type: list
            elements: str
          address_choices:
            description:
              - IP addresses to choose from, in order of preference. The port gets the first one that no other port of its network has.
              - When another client takes that address first, the task chooses the next one.
              - A port that is in use, or that has one of them, keeps its addresses.
              - Mutually exclusive with O(config.ports[].addresses) and O(config.ports[].subnets).
            type: list
            elements: str
          subnets:
            description: Subnets of a new port. It gets a free address from each of them, in addition to O(config.ports[].addresses).
            type: list
            elements: str
          dns_name:
            description: DNS name.
            type: str
          port_security:
            description: Whether port security is enabled.
            type: bool
          security_groups:
            description: Names of the security groups.
            type: list
            elements: str
          vnic_type:
            description: Type of the virtual NIC of a server, such as V(direct) for a virtual function.
            type: str
            choices: [normal, direct, direct-physical, macvtap, baremetal, virtio-forwarder]
          hardware_offload:
            description:
              - Whether the card forwards the packets for Open vSwitch. Requires a virtual function of a card in C(switchdev) mode.
              - With V(direct), Neutron binds the port with Open vSwitch if this is V(true), and with the SR-IOV agent otherwise. An unused port
                is recreated to change it.
              - Requires Neutron 2023.2 or later with the ML2 extension driver C(port_hardware_offload_type), or Nova 2024.1 or later, which takes
                the mode from the card. With such a Nova and without the driver, the option is ignored.
            type: bool
          admin_state_up:
            description: Whether the port is up. Omit for up.
            type: bool
          description:
            description: Description of the port.
            type: str
      routers:
        description: Routers.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the router.
            type: str
            required: true
          external_network:
            description: Name of the external network of the gateway, or V(none).
            type: str
          snat:
            description: Whether source NAT is enabled at the gateway.
            type: bool
          admin_state_up:
            description: Whether the router is up. Omit for up.
            type: bool
          description:
            description: Description of the router.
            type: str
          interfaces:
            description: All interfaces of the router. Others are removed.
            type: list
            elements: dict
            suboptions:
              subnet:
                description: Name of the subnet.
                type: str
                required: true
              address:
                description: Address of the interface, or V(any) for a free one. Omit to use the gateway address of the subnet.
                type: str
      shares:
        description: Objects that other projects may use (RBAC policies).
        type: list
        elements: dict
        suboptions:
          kind:
            description: Kind of the object.
            type: str
            choices: [network, security_group, address_scope, subnet_pool]
            default: network
          name:
            description: Name of the object.
            type: str
            required: true
          project:
            description: Name or ID of the project, or V(*) for all projects.
            type: str
            required: true
          state:
            description: Whether the share exists. Use V(absent) to remove a single share, and O(prune) to remove all that are not listed.
            type: str
            choices: [present, absent]
            default: present
"""
