# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake hypervisor of a Poplar server, a Dell R6525 with four NUMA nodes per socket.

It has two EPYC of 64 cores and 512 GB, most of it in huge pages of 1 GB. It has an MD RAID over NVMe, and a
ConnectX-5 with 16 virtual functions. It only stores its servers and does not run them.
"""

from __future__ import annotations

from typing import ClassVar

from nova.objects import network_metadata, numa
from nova.virt import fake, node
from oslo_serialization import jsonutils

NODES = 8  # NUMA nodes of the host
CORES = 16  # per node; each has two threads
SHARED = 2  # cores per node that several servers share
MEMORY_MB = 64 * 1024  # per node
HUGE_PAGES = 56  # of 1 GB, per node
DISK_GB = 7000

NIC_NODE = 3  # NUMA node of the ConnectX
NIC_MAC = "04:3f:72:00:00:01"
PHYSICAL_FUNCTION = "0000:41:00.0"
VIRTUAL_FUNCTIONS = 16


def cell(number: int) -> numa.NUMACell:
    """Return a NUMA node. The number of the second thread of a core is that of the first plus the number of cores."""
    cores = range(number * CORES, (number + 1) * CORES)
    siblings = [{core, core + NODES * CORES} for core in cores]
    return numa.NUMACell(
        id=number,
        socket=number // (NODES // 2),
        siblings=siblings,
        cpuset=set().union(*siblings[:SHARED]),
        pcpuset=set().union(*siblings[SHARED:]),
        pinned_cpus=set(),
        cpu_usage=0,
        memory=MEMORY_MB,
        memory_usage=0,
        mempages=[
            numa.NUMAPagesTopology(size_kb=4, total=(MEMORY_MB - HUGE_PAGES * 1024) * 256, used=0),
            numa.NUMAPagesTopology(size_kb=1024 * 1024, total=HUGE_PAGES, used=0),
        ],
        network_metadata=network_metadata.NetworkMetadata(physnets=set(), tunneled=False),
    )


def functions() -> list[dict[str, object]]:
    """Return the physical function and its virtual functions, in the form of the PCI devices of a hypervisor."""
    common = {"vendor_id": "15b3", "status": "available", "numa_node": NIC_NODE}
    physical = {"address": PHYSICAL_FUNCTION, "product_id": "1017", "dev_type": "type-PF", "parent_addr": None}
    found = [{**common, **physical, "label": "label_15b3_1017"}]
    for number in range(VIRTUAL_FUNCTIONS):
        slot, function = divmod(number + 1, 8)
        virtual = {
            "address": f"0000:41:{slot:02x}.{function}",
            "product_id": "1018",
            "dev_type": "type-VF",
            "parent_addr": PHYSICAL_FUNCTION,
            "parent_ifname": "enp65s0f0",
            "label": "label_15b3_1018",
            "capabilities": {"sriov": {"pf_mac_address": NIC_MAC, "vf_num": number}},
        }
        found.append({**common, **virtual})
    return found


class PoplarDriver(fake.FakeDriver):
    """Fake driver of Nova, with the resources of a Poplar server."""

    capabilities: ClassVar = {**fake.FakeDriver.capabilities, "supports_pcpus": True}

    vcpus = NODES * CORES * 2
    memory_mb = NODES * MEMORY_MB
    local_gb = DISK_GB

    def get_available_resource(self, nodename: str) -> dict[str, object]:
        """Return the resources of the host, with an identity that survives a restart of the process."""
        found = super().get_available_resource(nodename)
        topology = numa.NUMATopology(cells=[cell(number) for number in range(NODES)])
        found.update(
            uuid=node.get_local_node_uuid(),
            numa_topology=topology._to_json(),
            pci_passthrough_devices=jsonutils.dumps(functions()),
        )
        return found

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        """Return the only node of this host."""
        return {node.get_local_node_uuid(): name for name in self.get_available_nodes()}

    def update_provider_tree(self, provider_tree, nodename, allocations=None) -> None:
        """Set the inventory in Placement, with separate shared and dedicated processors."""
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = provider_tree.data(nodename).inventory
        dedicated = NODES * (CORES - SHARED) * 2
        shared = NODES * SHARED * 2
        inventory["VCPU"].update(total=shared, max_unit=shared)
        inventory["PCPU"] = {**inventory["VCPU"], "total": dedicated, "max_unit": dedicated, "allocation_ratio": 1.0}
        provider_tree.update_inventory(nodename, inventory)
