# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: upgrade_plan
short_description: Which IPU-Machines to upgrade together, and in which order
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Makes the plan of a rolling upgrade from what M(openipu.pod.vipu_info) tells. The role P(openipu.pod.virm_agent#role) carries it out.
  - Machines that tell the versions that are wanted are done, so a plan that is made again goes on where the last one stopped.
positional: _input, names
options:
  _input:
    description:
      - The result of M(openipu.pod.vipu_info), with C(agents), C(clusters), C(allocations), C(partitions) and C(fits).
      - Partitions with C(relocatable) count as movable where there is room.
    type: dict
    required: true
  names:
    description: By agent, the name of the IPU-Machine.
    type: dict
    required: true
  versions:
    description: By component, the version that is wanted.
    type: dict
    required: true
  printed:
    description: By agent, what C(vipu-admin get agent) prints, for controllers that tell versions in no other way.
    type: dict
    default: {}
  domain:
    description: What may be down at the same time.
    type: str
    choices: [machine, ild]
    default: machine
  domains:
    description: By name, the machines of failure domains of their own, which come first.
    type: dict
    default: {}
  only:
    description: The machines or agents that are meant; all when empty.
    type: list
    elements: str
    default: []
  partitions:
    description: Whether partitions that would be interrupted are a problem.
    type: str
    choices: [refuse, interrupt]
    default: refuse
"""

EXAMPLES = r"""
- name: Ask the controller
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents, clusters, allocations, partitions, fits]
  register: seen

- name: Tell what would be upgraded
  ansible.builtin.debug:
    msg: "{{ seen | openipu.pod.upgrade_plan({'ag01': 'ipum01', 'ag02': 'ipum02'}, versions={'GWSW': '2.1.0'}) }}"
"""

RETURN = r"""
_value:
  description:
    - C(problems), sentences; where there are some, nothing may be upgraded.
    - C(domains), those that are still to be upgraded, each with C(name), C(agents), C(machines), C(clusters) and C(partitions).
    - C(done), the machines that have the versions already, and C(clusters), those of all machines that are meant.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils import rolling


def upgrade_plan(
    seen: t.Any,
    names: dict[str, str],
    versions: dict[str, str],
    printed: dict[str, str] | None = None,
    domain: str = "machine",
    domains: dict[str, list[str]] | None = None,
    only: t.Sequence[str] = (),
    partitions: str = "refuse",
) -> dict[str, t.Any]:
    if not isinstance(seen, t.Mapping) or not seen.get("agents"):
        raise AnsibleFilterError("upgrade_plan takes the result of openipu.pod.vipu_info, with agents.")
    told = {agent: rolling.told_versions(text) for agent, text in (printed or {}).items()}
    agents = [{**row, "versions": row.get("versions") or told.get(row["id"])} for row in seen["agents"]]
    return rolling.plan(
        {**seen, "agents": agents},
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
