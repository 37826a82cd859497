# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs of a POD64, with ``arista.eos`` as peer, and 64 switches in one play."""

from __future__ import annotations

import re
from functools import partial

from openipu.shared.eos.running_config import Node, parse, ranges

from .measure import Sample, Table, Target, alternate
from .switch_lab import Json, SwitchLab, run_own, run_peer

SAVE = {"arista.eos.eos_config": {"save_when": "modified"}}
# Lines that no resource module of arista.eos can set.
_UNCOVERED = ("spanning-tree portfast", "priority-flow-control")
# One resource module writes the default port of syslog.
_PORT = re.compile(r"^(logging host \S+) 514$")
POD_TASK = {
    "openipu.pod.eos_pod": {
        "host": "{{ ansible_host }}",
        "port": "{{ eapi.port }}",
        "username": "{{ eapi.username }}",
        "password": "{{ eapi.password }}",
        "ca_path": "{{ eapi.ca_path }}",
        "config": "{{ pod_switch_config }}",
        "state": "replaced",
    }
}


def bench_pod(lab: SwitchLab, table: Table, rounds: int) -> None:
    """Measure both switches from empty with eos_pod and three plays of arista.eos, and an unchanged second run."""
    hosts = switch_hosts(lab)
    apply = lab.play("eos_pod", hosts, [POD_TASK])
    empty = lab.play("empty", hosts, [])
    lab.clear()
    initial = lab.running()
    run_own(apply, changed=True)
    expected = lab.running()
    peers = _peers(lab, initial, expected)

    def run_first() -> Sample:
        sample = run_own(apply, changed=True)
        _check_same(lab, expected)
        return sample

    def run_named_peer(name: str) -> Sample:
        sample = run_peer(lab.folder, peers[name])
        _check_same(lab, expected, _UNCOVERED if name == "resources" else ())
        return sample

    medians = alternate(
        rounds,
        {
            "empty": lambda: run_own(empty),
            "eos_pod": run_first,
            "again": lambda: run_own(apply, changed=False),
            **{name: partial(run_named_peer, name) for name in peers},
        },
        before=dict.fromkeys(["eos_pod", *peers], lab.clear),
        at_most={"looped": 2},
    )
    applied = medians["eos_pod"]
    table.add(
        "both switches of a POD64 from empty, eos_pod",
        _wall_and_cpu(applied),
        f"empty playbook {_wall_and_cpu(medians['empty'])}",
    )
    for name, description, limit in (
        ("looped", "an eos_config loop over ports", 20),
        ("file", "eos_config with one file", 2),
        ("resources", "resource modules of arista.eos", 2),
    ):
        _add_speedup(table, f"same, wall time against {description}", applied, medians[name], limit)
    second, base = medians["again"], medians["empty"]
    table.add(
        "eos_pod, unchanged second run, CPU",
        f"{second.cpu:.2f} s ({second.cpu / base.cpu:.2f} × empty), wall {second.wall:.2f} s",
        f"empty playbook {_wall_and_cpu(base)}",
        Target("≤ 1.4 × empty", 1.4),
        second.cpu / base.cpu,
    )


def bench_pdu(lab: SwitchLab, table: Table, rounds: int) -> None:
    """Measure both PDUs of a POD64 over SNMPv3 in an unchanged run."""
    config = {
        "name": "{{ inventory_hostname }}",
        "location": "rack1",
        "contact": "operations@example.com",
        "phases": [{"near_overload": 26, "overload": 32}],
        "banks": [{"near_overload": 13, "overload": 16}],
    }
    hosts: dict[str, Json] = {pdu.name: {"pdu": lab.pdu_connection(pdu)} for pdu in lab.pdus}
    options = {name: f"{{{{ pdu.{name} }}}}" for name in lab.pdu_connection(lab.pdus[0])}
    apply = lab.play("pdu", hosts, [{"openipu.pod.pdu": {**options, "config": config}}])
    empty = lab.play("no-pdu", hosts, [])
    run_own(apply)
    medians = alternate(
        rounds, {"empty": lambda: run_own(empty), "again": lambda: run_own(apply, changed=False)}, before={}
    )
    share = medians["again"].cpu / medians["empty"].cpu
    table.add(
        "pdu, both PDUs of a POD64, unchanged, CPU",
        f"{medians['again'].cpu:.2f} s ({share:.2f} × empty), wall {medians['again'].wall:.2f} s",
        f"empty playbook {_wall_and_cpu(medians['empty'])}",
    )


def bench_many(lab: SwitchLab, table: Table, rounds: int) -> None:
    """Measure all switches of many racks in one play: CPU per switch, and its growth with their number."""
    hosts = switch_hosts(lab)
    few, half, all_ = 8, (8 + len(hosts)) // 2, len(hosts)

    def play(name: str, count: int, task: Json) -> list[str]:
        return lab.play(f"{name}{count}", dict(list(hosts.items())[:count]), [task])

    apply = {count: play("apply", count, POD_TASK) for count in (few, half, all_)}
    idle = {count: play("idle", count, {"ansible.builtin.debug": {}}) for count in (few, all_)}
    runs = {f"apply{count}": partial(run_own, arguments, changed=True) for count, arguments in apply.items()}
    medians = alternate(
        rounds,
        {
            **runs,
            "again": partial(run_own, apply[all_], changed=False),
            **{f"idle{count}": partial(run_own, arguments) for count, arguments in idle.items()},
        },
        before=dict.fromkeys(runs, lab.clear),
    )

    def cpu_per_switch(name: str, start: int, end: int) -> float:
        """Return the milliseconds of CPU of each further switch."""
        return (medians[f"{name}{end}"].cpu - medians[f"{name}{start}"].cpu) / (end - start) * 1000

    per_switch = cpu_per_switch("apply", few, all_)
    table.add(
        f"eos_pod, {all_} switches in one play, from empty, CPU each",
        f"{per_switch:.0f} ms",
        f"empty task: {cpu_per_switch('idle', few, all_):.0f} ms",
        Target("≤ 60 ms", 60),
        per_switch,
    )
    early, late = cpu_per_switch("apply", few, half), cpu_per_switch("apply", half, all_)
    table.add(
        f"same, CPU each: switches {half + 1}-{all_} against {few + 1}-{half}",
        f"{late / early:.2f} ×",
        f"{late:.0f} ms, {early:.0f} ms",
        Target("linear (≤ 1.2 ×)", 1.2),  # includes the noise of three medians
        late / early,
    )
    table.add(
        "same, wall time",
        f"{medians[f'apply{all_}'].wall:.1f} s",
        f"{few} switches {medians[f'apply{few}'].wall:.1f} s; all, unchanged: {_wall_and_cpu(medians['again'])}",
    )


def switch_hosts(lab: SwitchLab) -> dict[str, Json]:
    """Return the switches with the host variables of the plays."""
    return {
        switch.name: {
            "ansible_host": lab.address(switch),
            "eapi": lab.connection(switch),
            "pod_switch_config": lab.desired_config(switch),
        }
        for switch in lab.switches
    }


def _wall_and_cpu(sample: Sample) -> str:
    return f"{sample.wall:.2f} s, CPU {sample.cpu:.2f} s"


def _add_speedup(table: Table, name: str, sample: Sample, peer: Sample, limit: float) -> None:
    speedup = peer.wall / sample.wall
    target = Target(f"≤ 1/{limit:g}", limit, at_least=True)
    table.add(name, f"1/{speedup:.1f}", f"{_wall_and_cpu(peer)} + connections", target, speedup)


def _check_same(lab: SwitchLab, expected_configs: dict[str, list[str]], ignored: tuple[str, ...] = ()) -> None:
    """Compare running and startup configurations with expected ones, except ``ignored`` lines. Raises RuntimeError."""
    for kind, actual in (("running", lab.running()), ("startup", lab.startup())):
        for name, expected in expected_configs.items():
            own, peer = (
                [_PORT.sub(r"\1", line) for line in lines if not line.strip().startswith(ignored or ("\n",))]
                for lines in (expected, actual[name])
            )
            if own != peer:
                missing, extra = sorted(set(own) - set(peer))[:5], sorted(set(peer) - set(own))[:5]
                raise RuntimeError(
                    f"The {kind} config of '{name}' differs from that of eos_pod: missing {missing}, added {extra}."
                )


# Inputs of the peers: the same configuration in the format of each peer.


def _peers(lab: SwitchLab, initial: dict[str, list[str]], configs: dict[str, list[str]]) -> dict[str, list[str]]:
    hosts: dict[str, Json] = {}
    for switch in lab.switches:
        file = lab.folder / f"{switch.name}.cfg"
        file.write_text("\n".join([*configs[switch.name], ""]))
        before = {node.line: [child.line for child in node.children] for node in parse("\n".join(initial[switch.name]))}
        nodes = [
            node
            for node in parse("\n".join(configs[switch.name]))
            if before.get(node.line) != [child.line for child in node.children]
        ]
        hosts[switch.name] = {
            "ansible_host": lab.address(switch),
            "file": str(file),
            "sections": [_section(node) for node in nodes if node.children],
            "lines": [
                node.line for node in nodes if not node.children and not node.line.startswith(("interface", "vlan"))
            ],
            "resources": _resources(lab.desired_config(switch)),
        }
    looped: list[Json] = [
        {
            "arista.eos.eos_config": {"parents": "{{ item.parents }}", "lines": "{{ item.lines }}"},
            "loop": "{{ sections }}",
            "loop_control": {"label": "{{ item.parents }}"},
        },
        {"arista.eos.eos_config": {"lines": "{{ lines }}"}, "when": "lines | length > 0"},
        SAVE,
    ]
    resources = [
        {f"arista.eos.eos_{name}": {"config": f"{{{{ resources.{name} }}}}"}, "when": f"'{name}' in resources"}
        for name in dict.fromkeys(name for host in hosts.values() for name in host["resources"])
    ]
    return {
        "looped": lab.peer_play("looped", hosts, looped),
        "file": lab.peer_play(
            "file", hosts, [{"arista.eos.eos_config": {"src": "{{ file }}", "save_when": "changed"}}]
        ),
        "resources": lab.peer_play("resources", hosts, [*resources, SAVE]),
    }


def _section(node: Node) -> Json:
    return {"parents": [node.line], "lines": [child.line for child in node.children]}


def _resources(config: Json) -> Json:
    """Return the option ``config`` of each resource module."""
    interfaces = config["interfaces"]
    members: dict[int, list[Json]] = {}
    for item in interfaces:
        if "port_channel" in item:
            channel = item["port_channel"]
            members.setdefault(channel["id"], []).append({"member": item["name"], "mode": channel["lacp"]})
    result = {
        "vlans": [{"vlan_id": vlan["id"], "name": vlan["name"]} for vlan in config["vlans"]],
        "interfaces": [
            {key: item[key] for key in ("name", "description", "mtu") if key in item} for item in interfaces
        ],
        "lag_interfaces": [{"name": f"Port-Channel{id}", "members": ports} for id, ports in members.items()],
        "l2_interfaces": [_l2(item) for item in interfaces if "mode" in item],
        "ntp_global": {"servers": [{"server": each} for each in config.get("ntp_servers", [])]},
        "logging_global": {"hosts": [{"name": each} for each in config.get("syslog_servers", [])]},
    }
    return {name: value for name, value in result.items() if value}


def _l2(item: Json) -> Json:
    if item["mode"] == "access":
        return {"name": item["name"], "access": {"vlan": item["access_vlan"]}}
    return {
        "name": item["name"],
        "mode": "trunk",
        "trunk": {"trunk_allowed_vlans": ranges(item["trunk_vlans"]).split(",")},
    }
