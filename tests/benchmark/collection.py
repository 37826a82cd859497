# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU and wall time of the collection: one bulk task, an empty playbook, and a loop of commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .lab import Lab
from .measure import Table, Target, alternate, command

BIN = Path(sys.executable).parent
PLAYBOOK = str(BIN / "ansible-playbook")
ENVIRONMENT = {
    "ANSIBLE_LOCALHOST_WARNING": "false",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    "ANSIBLE_NOCOLOR": "1",
}

HEADER = """\
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: {python}
  tasks:
"""
EMPTY = "    []\n"
BULK = """\
    - name: Configure a POD with one task
      openipu.pod.vipu_pod:
        api_host: "{host}"
        api_port: {port}
        agents: "{{{{ agents }}}}"
        clusters: "{{{{ clusters }}}}"
        allocations: "{{{{ allocations }}}}"
        partitions: "{{{{ partitions }}}}"
        wait: false
"""
LOOPED = """\
    - name: Create each object with a separate command
      ansible.builtin.command: "{vipu_admin} --api-host {host} --api-port {port} create {{{{ item }}}}"
      loop: "{{{{ commands }}}}"
"""


def objects(lab: Lab, pods: int) -> dict[str, list[dict[str, object]]]:
    """Return 34 objects for each POD: 16 agents, a cluster, an allocation and 16 partitions."""
    result: dict[str, list[dict[str, object]]] = {"agents": [], "clusters": [], "allocations": [], "partitions": []}
    for pod in range(pods):
        machines = lab.machines[pod * 16 : pod * 16 + 16]
        result["agents"] += [{"id": m.agent_id, "host": m.host, "port": m.port} for m in machines]
        agents = [m.agent_id for m in machines]
        result["clusters"].append({"id": f"c{pod}", "agents": agents, "topology": "torus"})
        result["allocations"].append({"id": f"a{pod}", "cluster": f"c{pod}", "agents": agents})
        result["partitions"] += [{"id": f"p{pod}-{n}", "allocation": f"a{pod}", "size": 4} for n in range(16)]
    return result


def commands(pod: dict[str, list[dict[str, object]]]) -> list[str]:
    """Return the arguments of ``vipu-admin create`` for the same objects."""
    lines = [f"agent {a['id']} --host {a['host']} --port {a['port']}" for a in pod["agents"]]
    for cluster in pod["clusters"]:
        agents = ",".join(cluster["agents"])  # type: ignore[arg-type]
        lines.append(f"cluster {cluster['id']} --agents {agents} --topology torus")
    for allocation in pod["allocations"]:
        size = len(allocation["agents"])  # type: ignore[arg-type]
        lines.append(f"allocation {allocation['id']} --cluster {allocation['cluster']} --size {size}")
    return lines + [
        f"partition {p['id']} --size {p['size']} --allocation {p['allocation']} --no-wait" for p in pod["partitions"]
    ]


def play(folder: Path, name: str, tasks: str, variables: dict[str, object] | None = None) -> list[str]:
    """Write a playbook and its variables. Return the command that runs it."""
    playbook = folder / f"{name}.yml"
    playbook.write_text(HEADER.format(python=sys.executable) + tasks)
    arguments = [PLAYBOOK, "-i", "localhost,", str(playbook)]
    if variables:
        file = folder / f"{name}.json"
        file.write_text(json.dumps(variables))
        arguments += ["-e", f"@{file}"]
    return arguments


def bench_one_shot(lab: Lab, folder: Path, table: Table, rounds: int) -> None:
    """Measure 34 objects: one bulk task, its unchanged second run, an empty playbook, a loop of commands."""
    pod = objects(lab, 1)
    options = {"host": lab.host, "port": lab.port, "vipu_admin": str(BIN / "vipu-admin")}
    empty = play(folder, "empty", EMPTY)
    bulk = play(folder, "bulk", BULK.format(**options), dict(pod))
    looped = play(folder, "looped", LOOPED.format(**options), {"commands": commands(pod)})

    medians = alternate(
        rounds,
        {
            "empty": lambda: command(empty, env=ENVIRONMENT),
            "bulk": lambda: command(bulk, "changed=1", ENVIRONMENT),
            "unchanged": lambda: command(bulk, "changed=0", ENVIRONMENT),
            "looped": lambda: command(looped, "changed=1", ENVIRONMENT),
        },
        before={"bulk": lab.clear, "looped": lab.clear},
        at_most={"looped": 3},
    )
    base, bulk_cpu = medians["empty"].cpu, medians["bulk"].cpu
    table.add(
        "vipu_pod, 34 objects, CPU",
        f"{bulk_cpu:.2f} s ({bulk_cpu / base:.2f} × empty)",
        f"empty playbook {base:.2f} s",
        Target("≤ 1.4 × empty", 1.4),
        bulk_cpu / base,
    )
    looped_cpu = medians["looped"].cpu
    table.add(
        "same, CPU against a loop of commands",
        f"1/{looped_cpu / bulk_cpu:.1f}",
        f"looped vipu-admin {looped_cpu:.2f} s",
        Target("≤ 1/12", 12, at_least=True),
        looped_cpu / bulk_cpu,
    )
    table.add(
        "same, wall time",
        f"{medians['bulk'].wall:.2f} s",
        f"empty {medians['empty'].wall:.2f} s, loop {medians['looped'].wall:.2f} s",
    )
    unchanged_cpu = medians["unchanged"].cpu
    table.add(
        "unchanged second run, CPU",
        f"{unchanged_cpu:.2f} s",
        f"first run {bulk_cpu:.2f} s",
        Target("not more", bulk_cpu * 1.03),  # 3 % is the noise of two medians
        unchanged_cpu,
    )


def bench_growth(lab: Lab, folder: Path, table: Table, rounds: int) -> None:
    """Measure 64 PODs in one task: CPU per object, without the fixed cost of one POD."""
    options = {"host": lab.host, "port": lab.port}
    small, large = objects(lab, 1), objects(lab, 64)
    one = play(folder, "one", BULK.format(**options), dict(small))
    many = play(folder, "many", BULK.format(**options), dict(large))
    medians = alternate(
        rounds,
        {
            "one": lambda: command(one, "changed=1", ENVIRONMENT),
            "many": lambda: command(many, "changed=1", ENVIRONMENT),
        },
        before={"one": lab.clear, "many": lab.clear},
    )
    added_objects = sum(map(len, large.values())) - sum(map(len, small.values()))
    per_object = (medians["many"].cpu - medians["one"].cpu) / added_objects * 1000
    table.add(
        "64 PODs, 2176 objects, CPU per object",
        f"{per_object:.3f} ms",
        f"1 POD {medians['one'].cpu:.2f} s, 64 PODs {medians['many'].cpu:.2f} s",
        Target("≤ 0.3 ms", 0.3),
        per_object,
    )
