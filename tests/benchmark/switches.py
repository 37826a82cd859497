# SPDX-License-Identifier: GPL-3.0-or-later
"""The switches and PDUs of a POD64: one task for each, beside what people do with ``arista.eos``, and 64 switches."""

from __future__ import annotations

import re
from functools import partial

from ansible_collections.openipu.pod.plugins.module_utils.eos.config import Node, parse, ranges

from .measure import Sample, Table, Target, alternate
from .switch_lab import Json, SwitchLab, ours, theirs

SAVE = {"arista.eos.eos_config": {"save_when": "modified"}}
# What no resource module of arista.eos speaks of.
_UNCOVERED = ("spanning-tree portfast", "priority-flow-control")
# One of them writes out the port of syslog, which is the default.
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
    """Both switches from empty by one play of eos_pod, and by three ways with arista.eos; the unchanged second run."""
    hosts = switch_hosts(lab)
    apply = lab.play("eos_pod", hosts, [POD_TASK])
    empty = lab.play("empty", hosts, [])
    lab.clear()
    bare = lab.running()
    ours(apply, changed=True)
    made = lab.running()
    peers = _peers(lab, bare, made)

    def first() -> Sample:
        sample = ours(apply, changed=True)
        _same(lab, made)
        return sample

    def peer(name: str) -> Sample:
        sample = theirs(lab.folder, peers[name])
        _same(lab, made, _UNCOVERED if name == "resources" else ())
        return sample

    medians = alternate(
        rounds,
        {
            "empty": lambda: ours(empty),
            "eos_pod": first,
            "again": lambda: ours(apply, changed=False),
            **{name: partial(peer, name) for name in peers},
        },
        before=dict.fromkeys(["eos_pod", *peers], lab.clear),
        at_most={"looped": 2},
    )
    took = medians["eos_pod"]
    table.add("both switches of a POD64 from empty, eos_pod", _both(took), f"empty playbook {_both(medians['empty'])}")
    for name, words, limit in (
        ("looped", "eos_config looped over the ports", 20),
        ("file", "eos_config with one file", 2),
        ("resources", "resource modules of arista.eos", 2),
    ):
        _times(table, f"the same beside {words}, wall", took, medians[name], limit)
    again, base = medians["again"], medians["empty"]
    table.add(
        "eos_pod, unchanged second run, CPU",
        f"{again.cpu:.2f} s ({again.cpu / base.cpu:.2f} × empty), wall {again.wall:.2f} s",
        f"empty playbook {_both(base)}",
        Target("≤ 1.4 × empty", 1.4),
        again.cpu / base.cpu,
    )


def bench_pdu(lab: SwitchLab, table: Table, rounds: int) -> None:
    """Both PDUs of a POD64, as they should be already, over SNMPv3."""
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
    ours(apply)
    medians = alternate(rounds, {"empty": lambda: ours(empty), "again": lambda: ours(apply, changed=False)}, before={})
    share = medians["again"].cpu / medians["empty"].cpu
    table.add(
        "pdu, both PDUs of a POD64, unchanged, CPU",
        f"{medians['again'].cpu:.2f} s ({share:.2f} × empty), wall {medians['again'].wall:.2f} s",
        f"empty playbook {_both(medians['empty'])}",
    )


def bench_many(lab: SwitchLab, table: Table, rounds: int) -> None:
    """All switches of many racks in one play: what one more costs, and whether that grows with their number."""
    hosts = switch_hosts(lab)
    few, half, all_ = 8, (8 + len(hosts)) // 2, len(hosts)

    def play(name: str, count: int, task: Json) -> list[str]:
        return lab.play(f"{name}{count}", dict(list(hosts.items())[:count]), [task])

    apply = {count: play("apply", count, POD_TASK) for count in (few, half, all_)}
    idle = {count: play("idle", count, {"ansible.builtin.debug": {}}) for count in (few, all_)}
    runs = {f"apply{count}": partial(ours, arguments, changed=True) for count, arguments in apply.items()}
    medians = alternate(
        rounds,
        {
            **runs,
            "again": partial(ours, apply[all_], changed=False),
            **{f"idle{count}": partial(ours, arguments) for count, arguments in idle.items()},
        },
        before=dict.fromkeys(runs, lab.clear),
    )

    def each(name: str, start: int, end: int) -> float:
        """Milliseconds of CPU of a switch more."""
        return (medians[f"{name}{end}"].cpu - medians[f"{name}{start}"].cpu) / (end - start) * 1000

    per_switch = each("apply", few, all_)
    table.add(
        f"eos_pod, {all_} switches in one play, from empty, CPU of each",
        f"{per_switch:.0f} ms",
        f"a task that does nothing: {each('idle', few, all_):.0f} ms",
        Target("≤ 60 ms", 60),
        per_switch,
    )
    early, late = each("apply", few, half), each("apply", half, all_)
    table.add(
        f"the same, one more from {half} on beside one more from {few} on",
        f"{late / early:.2f} ×",
        f"{late:.0f} ms, {early:.0f} ms",
        Target("linear (≤ 1.2 ×)", 1.2),  # with the noise of three medians
        late / early,
    )
    table.add(
        "the same, wall",
        f"{medians[f'apply{all_}'].wall:.1f} s",
        f"{few} switches {medians[f'apply{few}'].wall:.1f} s; all, unchanged: {_both(medians['again'])}",
    )


def switch_hosts(lab: SwitchLab) -> dict[str, Json]:
    """The switches with the variables that the plays here use."""
    return {
        switch.name: {
            "ansible_host": lab.address(switch),
            "eapi": lab.connection(switch),
            "pod_switch_config": lab.wanted(switch),
        }
        for switch in lab.switches
    }


def _both(sample: Sample) -> str:
    return f"{sample.wall:.2f} s, CPU {sample.cpu:.2f} s"


def _times(table: Table, name: str, took: Sample, peer: Sample, limit: float) -> None:
    times = peer.wall / took.wall
    target = Target(f"≤ 1/{limit:g}", limit, at_least=True)
    table.add(name, f"1/{times:.1f}", f"{_both(peer)} and its connections", target, times)


def _same(lab: SwitchLab, made: dict[str, list[str]], without: tuple[str, ...] = ()) -> None:
    """Raise RuntimeError unless every switch is configured like that, and starts so; some lines may be left out."""
    for what, found in (("running", lab.running()), ("startup", lab.saved())):
        for name, wanted in made.items():
            ours, theirs = (
                [_PORT.sub(r"\1", line) for line in lines if not line.strip().startswith(without or ("\n",))]
                for lines in (wanted, found[name])
            )
            if ours != theirs:
                missing, more = sorted(set(ours) - set(theirs))[:5], sorted(set(theirs) - set(ours))[:5]
                raise RuntimeError(f"{name} is not {what} what eos_pod makes: lacks {missing}, has {more} instead")


# What the peers are told: the same, in the words of each.


def _peers(lab: SwitchLab, bare: dict[str, list[str]], made: dict[str, list[str]]) -> dict[str, list[str]]:
    hosts: dict[str, Json] = {}
    for switch in lab.switches:
        whole = lab.folder / f"{switch.name}.cfg"
        whole.write_text("\n".join([*made[switch.name], ""]))
        before = {node.line: [each.line for each in node.below] for node in parse("\n".join(bare[switch.name]))}
        nodes = [
            node
            for node in parse("\n".join(made[switch.name]))
            if before.get(node.line) != [each.line for each in node.below]
        ]
        hosts[switch.name] = {
            "ansible_host": lab.address(switch),
            "file": str(whole),
            "sections": [_section(node) for node in nodes if node.below],
            "lines": [
                node.line for node in nodes if not node.below and not node.line.startswith(("interface", "vlan"))
            ],
            "resources": _resources(lab.wanted(switch)),
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
    return {"parents": [node.line], "lines": [each.line for each in node.below]}


def _resources(config: Json) -> Json:
    """The option ``config`` of each resource module."""
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
