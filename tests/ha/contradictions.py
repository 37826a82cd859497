# SPDX-License-Identifier: GPL-3.0-or-later
"""Contradictions between acknowledgements, the leader, the records in etcd, their history, and the agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import grpc

from openipu.shared.vipu.contract import virmgrpc
from openipu.vipu.domain.model import Partition
from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.interface import StoreError
from tests.ha import audit
from tests.ha.checked_load import CheckedLoad
from tests.ha.controllers import Controllers, listed
from tests.integration.agents.agents_support import RackProcess
from tests.waiting import until

AGENT_SECONDS = 30.0  # until agents hold exactly what the records say

Held = Mapping[str, set[str]]  # ids of partitions, by agent


def check(controllers: Controllers, load: CheckedLoad, rack: RackProcess, url: str, began: int) -> list[str]:
    """Return all contradictions. The load has stopped, and ``began`` is a revision of etcd before the first leader."""
    leader = controllers.wait_leader()
    until(lambda: settled(leader.address), 60, "all partitions are ACTIVE")
    found = listed(leader.address)
    faults = load.faults(found)
    try:
        stored = [each for each in content.read(keys.parse(url)).records if isinstance(each, Partition)]
    except StoreError as error:
        return [*faults, str(error)]
    faults += of_records(stored, found)
    history = audit.replay(keys.parse(url), began)
    assert history.transactions >= load.acknowledged / 512, "the history of etcd lacks transactions"
    faults += [*history.foreign, *history.shared]
    agents = [agent.id for agent in rack.agents]

    def held() -> dict[str, set[str]]:
        return {machine.agent_id: set(machine.partition_ids) for machine in rack.machines()}

    try:
        until(lambda: not of_agents(stored, agents, held()), AGENT_SECONDS)
    except AssertionError:
        faults += of_agents(stored, agents, held()) or ["agents held other partitions than the records for too long"]
    return faults


def of_records(stored: Sequence[Partition], found: Mapping[str, int]) -> list[str]:
    """Return the contradictions in stored partitions, and with the list of the leader (id -> size)."""
    sizes = {each.id: each.size for each in stored}
    faults = [
        f"the leader lists {found.get(id)} IPUs for {id}, etcd has {sizes.get(id)}"
        for id in {*sizes, *found}
        if sizes.get(id) != found.get(id)
    ]
    used = Counter((ipu.ild, ipu.topology_id) for each in stored for ipu in each.ipus)
    return faults + [f"IPU {place} is used {count} times" for place, count in used.items() if count > 1]


def of_agents(stored: Sequence[Partition], agents: Sequence[str], held: Held) -> list[str]:
    """Return what agents hold without a record, and what they lack. ``agents``: in the order of the only domain."""
    expected: dict[str, set[str]] = {agent: set() for agent in agents}
    for each in stored:
        for ipu in each.ipus:
            expected[agents[ipu.topology_id // 4]].add(each.id)
    return [
        *(f"{agent} holds {id} without a record" for agent, ids in held.items() for id in ids - expected[agent]),
        *(f"{agent} lacks {id}" for agent, ids in expected.items() for id in ids - held[agent]),
    ]


def settled(address: str) -> bool:
    """Return whether no partition changes any more."""
    with grpc.insecure_channel(address) as channel:
        stub = virmgrpc.stub(channel, "UserService")
        found = stub.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10).partitions
    return all(each.ready_state == virmgrpc.PS_ACTIVE for each in found)
