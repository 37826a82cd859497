# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: upgrade_plan
short_description: Groups and order of IPU-Machines in a rolling upgrade
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Plans a rolling upgrade from the result of M(openipu.pod.vipu_info). The role P(openipu.pod.virm_agent#role) executes the plan.
  - Machines that report the desired versions are skipped, so a new plan continues where the previous upgrade stopped.
positional: _input, names
options:
  _input:
    description:
      - Result of M(openipu.pod.vipu_info), with C(agents), C(clusters), C(allocations), C(partitions) and C(fits).
      - Partitions with C(relocatable) count as movable when enough IPUs are free.
    type: dict
    required: true
  names:
    description: Names of the IPU-Machines, by agent.
    type: dict
    required: true
  versions:
    description: Desired versions, by component.
    type: dict
    required: true
  printed:
    description: Output of C(vipu-admin get agent) by agent, for controllers that report versions in no other way.
    type: dict
    default: {}
  domain:
    description: Failure domain that may be down as a whole. V(machine) is one IPU-Machine, V(ild) one IPU-Link domain.
    type: str
    choices: [machine, ild]
    default: machine
  domains:
    description: Machines of custom failure domains, by name of the domain. These are upgraded first.
    type: dict
    default: {}
  only:
    description: Machines or agents to upgrade. An empty list selects all.
    type: list
    elements: str
    default: []
  partitions:
    description: Handling of partitions that would be interrupted. V(keep) reports them as problems, V(interrupt) allows the interruption.
    type: str
    choices: [keep, interrupt]
    default: keep
"""

EXAMPLES = r"""
- name: Read the state of the controller
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents, clusters, allocations, partitions, fits]
  register: state

- name: Show the upgrade plan
  ansible.builtin.debug:
    msg: "{{ state | openipu.pod.upgrade_plan({'ag01': 'ipum01', 'ag02': 'ipum02'}, versions={'GWSW': '2.1.0'}) }}"
"""

RETURN = r"""
_value:
  description:
    - C(problems), a list of messages. When it is not empty, the upgrade must not start.
    - C(domains), the failure domains to upgrade, each with C(name), C(agents), C(machines), C(clusters) and C(partitions).
    - C(up_to_date), the machines that already have the desired versions, and C(clusters), the clusters of all selected machines.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils import rolling_upgrade


def upgrade_plan(
    state: t.Any,
    names: dict[str, str],
    versions: dict[str, str],
    printed: dict[str, str] | None = None,
    domain: str = "machine",
    domains: dict[str, list[str]] | None = None,
    only: t.Sequence[str] = (),
    partitions: str = "keep",
) -> dict[str, t.Any]:
    if not isinstance(state, t.Mapping) or not state.get("agents"):
        raise AnsibleFilterError(
            "upgrade_plan: the input has no agents. Pass the result of openipu.pod.vipu_info with agents."
        )
    reported = {agent: rolling_upgrade.printed_versions(text) for agent, text in (printed or {}).items()}
    agents = [{**row, "versions": row.get("versions") or reported.get(row["id"])} for row in state["agents"]]
    return rolling_upgrade.plan(
        {**state, "agents": agents},
        names,
        versions=versions,
        domain=domain,
        domains=domains,
        only=only,
        partitions=partitions,
    )


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"upgrade_plan": upgrade_plan}
