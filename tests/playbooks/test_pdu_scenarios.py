# SPDX-License-Identifier: GPL-3.0-or-later
"""Every group of options of `pdu` in four runs: check, apply, apply again, check again. Write requests are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.collection.playbook import results
from tests.integration.pdu_agents import HOST, READS, WITH_V2C, WRITES, Agents, ServedPdu

Object = dict[str, Any]
RUNS = ("check", "apply", "again", "check again")
FACTORY_BANK = {"low_load": 0, "near_overload": 13, "overload": 16}
FACTORY_PHASE = {"low_load": 0, "near_overload": 26, "overload": 32}
FACTORY_OUTLET = {"on_delay": 0, "off_delay": 0, "reboot_duration": 5, "state": "on"}
SINK = "10.1.3.101"


def rows(number: int, row: Object) -> Object:
    """Return a number of equal rows, as in a diff."""
    return {str(n): {"number": n, **row} for n in range(1, number + 1)}


def settings(**values: Any) -> Object:
    """Return settings of the whole PDU, as in a diff."""
    return {name: {"id": name, "value": value} for name, value in values.items()}


def outlet(number: int, **values: Any) -> Object:
    """Return an outlet, as in a diff."""
    return {str(number): {"number": number, "name": f"Outlet {number}", **FACTORY_OUTLET, **values}}


# Configuration, diff before and diff after; the steps run in this order on one PDU.
Step = tuple[Object, Object, Object]
METERED: dict[str, Step] = {
    "device": (
        {"name": "left", "location": "rack1", "contact": "hall1@example.com", "low_load": 0.1, "near_overload": 16},
        {"settings": settings(name="pdu1", location="Unknown", contact="Unknown", low_load=0.0, near_overload=17.6)},
        {
            "settings": settings(
                name="left", location="rack1", contact="hall1@example.com", low_load=0.1, near_overload=16.0
            )
        },
    ),
    "circuits": (
        {
            "phases": [{"near_overload": 25, "overload": 30}],
            "banks": [{"near_overload": 12}, {"number": 6, "low_load": 1, "overload": 14}],
        },
        {"phases": rows(3, FACTORY_PHASE), "banks": rows(6, FACTORY_BANK)},
        {
            "phases": rows(3, {"low_load": 0, "near_overload": 25, "overload": 30}),
            "banks": {
                **rows(6, {**FACTORY_BANK, "near_overload": 12}),
                "6": {"number": 6, "low_load": 1, "near_overload": 12, "overload": 14},
            },
        },
    ),
    "receiver": (
        {"trap_receivers": [{"address": SINK, "community": "tr4p-for-tests"}]},
        {},
        {"trap_receivers": {SINK: {"address": SINK, "community": "as given", "enabled": True}}},
    ),
    "community": (
        {"trap_receivers": [{"address": SINK, "community": "tr4p-another"}]},
        {"trap_receivers": {SINK: {"address": SINK, "community": "another", "enabled": True}}},
        {"trap_receivers": {SINK: {"address": SINK, "community": "as given", "enabled": True}}},
    ),
    "disabled": (
        {"trap_receivers": [{"address": SINK, "enabled": False}]},
        {"trap_receivers": {SINK: {"address": SINK, "community": "unchanged", "enabled": True}}},
        {"trap_receivers": {SINK: {"address": SINK, "community": "unchanged", "enabled": False}}},
    ),
}
SWITCHED: dict[str, Step] = {
    "names": (
        {"outlets": [{"number": 1, "name": "server1", "on_delay": 5, "off_delay": -1, "reboot_duration": 60}]},
        {"outlets": outlet(1)},
        {"outlets": outlet(1, name="server1", on_delay=5, off_delay=-1, reboot_duration=60)},
    ),
    "off": (
        {"outlets": [{"number": 3, "state": "off"}, {"number": 4, "state": "on"}]},
        {"outlets": outlet(3)},
        {"outlets": outlet(3, state="off")},
    ),
    "on": (
        {"outlets": [{"number": 3, "state": "on", "name": "server3"}]},
        {"outlets": outlet(3, state="off")},
        {"outlets": outlet(3, name="server3")},
    ),
}


def task(options: Object, mode: str = "apply", path: str = "action") -> Object:
    """Return one task of `pdu`."""
    return {
        "name": mode,
        "openipu.pod.pdu": options,
        "check_mode": mode.startswith("check"),
        "diff": True,
        "vars": {"openipu_fast_path": path == "action"},
    }


def play_steps(folder: Path, served: ServedPdu, steps: dict[str, Step], path: str) -> None:
    """Run the steps, each in all four runs."""
    before = served.requests
    tasks = [task(served.options(config=config), mode, path) for config, _old, _new in steps.values() for mode in RUNS]
    found = results(folder, tasks)
    assert len(found) == len(tasks)
    for number, (name, (_config, old, new)) in enumerate(steps.items()):
        check, apply, again, check_again = found[number * 4 : number * 4 + 4]
        for result in (check, apply):
            assert (result["changed"], result["diff"]) == (True, {"before": old, "after": new}), (name, result)
        for result in (again, check_again):
            assert (result["changed"], result["diff"]) == (False, {"before": {}, "after": {}}), (name, result)
    # One request writes all settings of a step, and one more all commands to outlets. Other runs write nothing.
    both = ("state" in item and "name" in item for config, *_ in steps.values() for item in config.get("outlets", ()))
    assert (served.requests - before)["set"] == len(steps) + sum(both)


def test_a_metered_pdu(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu()
    play_steps(tmp_path, served, METERED, "action")
    kept = served.pdu.settings
    assert (kept.name, kept.location, kept.contact) == ("left", "rack1", "hall1@example.com")
    assert (kept.device.low, kept.device.near, kept.device.over) == (1, 160, 220)
    assert [phase.over for phase in kept.phases] == [30, 30, 30]
    assert [(bank.low, bank.near, bank.over) for bank in kept.banks] == [(0, 12, 16)] * 5 + [(1, 12, 14)]
    assert (kept.receivers[0].address, kept.receivers[0].community) == (SINK, "tr4p-another")
    assert not kept.receivers[0].enabled


def test_a_switched_pdu(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(model="AP8953")
    play_steps(tmp_path, served, SWITCHED, "action")
    assert [outlet.name for outlet in served.pdu.settings.outlets][:4] == ["server1", "Outlet 2", "server3", "Outlet 4"]
    assert served.pdu.record.on == [True] * 24


def test_the_module_path(agents: Agents, tmp_path: Path) -> None:
    play_steps(tmp_path, agents.pdu(), {"circuits": METERED["circuits"]}, "module")


def test_the_gathered_configuration_changes_nothing(agents: Agents, tmp_path: Path) -> None:
    metered, switched = agents.pdu(), agents.pdu("pdu2", "AP8953")
    metered.do(setattr, metered.pdu.settings.receivers[2], "address", SINK)
    tasks = []
    for served in (metered, switched):
        tasks.append({**task(served.options(state="gathered")), "register": "seen"})
        tasks.append(task(served.options(config="{{ seen.gathered }}")))
    metered_config, metered_run, switched_config, switched_run = results(tmp_path, tasks)
    assert metered_config["gathered"]["trap_receivers"] == [{"address": SINK, "enabled": True}]
    assert "outlets" not in metered_config["gathered"]
    assert len(switched_config["gathered"]["outlets"]) == 24
    assert (metered_run["changed"], switched_run["changed"]) == (False, False)
    assert "set" not in metered.requests + switched.requests


def test_a_reboot_runs_each_time_and_is_waited_for(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(model="AP8953")
    switched: list[tuple[int, bool]] = []
    served.do(setattr, served.pdu.outlets, "_on_outlet", lambda outlet, on: switched.append((outlet, on)))
    served.do(setattr, served.pdu.settings.outlets[4], "reboot_duration", 1)
    config = {"outlets": [{"number": 5, "command": "reboot"}]}
    tasks = [task(served.options(config=config), mode) for mode in ("check", "apply", "again")]
    found = results(tmp_path, tasks)
    assert [result["changed"] for result in found] == [True, True, True]
    assert switched == [(5, False), (5, True)] * 2
    assert served.requests["set"] == 2


def test_snmp_v2c(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    connection = {"host": HOST, "port": served.port, "version": "v2c", "community": READS, "write_community": WRITES}
    tasks = [task({**connection, "config": METERED["device"][0]}) for _twice in range(2)]
    assert [result["changed"] for result in results(tmp_path, tasks)] == [True, False]
    assert served.requests["set"] == 1
