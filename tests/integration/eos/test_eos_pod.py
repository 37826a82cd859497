# SPDX-License-Identifier: GPL-3.0-or-later
"""eos_pod applies the POD model to the switches of an IPU-POD64, over verified TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integration.collection.playbook import results, results_by_host
from tests.integration.eos.eos_runs import apply_diff, desired, new_switch, run
from tests.integration.eos_switches import Rack, ServedSwitch


class Counter:
    """Requests and connections since the previous call of `since`."""

    def __init__(self, switch: ServedSwitch) -> None:
        self._switch, self._before = switch, (0, 0)

    def since(self) -> tuple[int, int]:
        before, self._before = self._before, (self._switch.requests, self._switch.connections)
        return self._before[0] - before[0], self._before[1] - before[1]


@pytest.mark.parametrize("name", ["tor1", "mgmt1"])
def test_a_new_switch(rack: Rack, name: str) -> None:
    switch, config = new_switch(rack, name), desired(name)
    before, counter = switch.config(), Counter(switch)

    checked = run(switch, config, check=True, state="replaced")
    assert counter.since() == (3, 1)
    # Check mode writes nothing and leaves no session behind.
    assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})

    applied = run(switch, config, state="replaced")
    assert counter.since() == (4, 2)  # the confirmation has its own connection
    assert switch.saved() == switch.config() == apply_diff(before, applied["diff"]["prepared"])
    assert list(switch.sessions().values()) == ["completed"]
    assert applied["changed"] and applied["commands"]
    predicted = {**checked, "diff": checked["diff"]["prepared"].splitlines()[2:]}  # without the session's name
    assert predicted == {**applied, "diff": applied["diff"]["prepared"].splitlines()[2:]}

    for check in (False, True):
        again = run(switch, config, check=check, state="replaced")
        assert counter.since() == (1, 1)
        assert not again["changed"] and not again["commands"]
        assert again["diff"] == {"prepared": ""}
        assert {verb for kind in ("vlans", "interfaces", "settings") for verb in again[kind] if again[kind][verb]} == {
            "unchanged"
        }


def test_by_playbook_in_the_worker_and_as_a_module(rack: Rack, tmp_path: Path) -> None:
    served = {path: new_switch(rack, "tor1") for path in (True, False)}
    before = served[True].config()
    tasks = [
        {
            "openipu.pod.eos_pod": switch.options(config="{{ desired }}", state="replaced"),
            "check_mode": check,
            "vars": {"openipu_fast_path": path},
        }
        for path, switch in served.items()
        for check in (True, False, False, True)
    ]
    found = results(tmp_path, tasks, "--diff", desired=desired("tor1"))
    by_path = {path: found[at : at + 4] for at, path in ((0, True), (4, False))}
    for path, (checked, applied, again, checked_again) in by_path.items():
        assert [one["changed"] for one in (checked, applied, again, checked_again)] == [True, True, False, False]
        assert checked["diff"]["prepared"].splitlines()[2:] == applied["diff"]["prepared"].splitlines()[2:]
        switch = served[path]
        assert switch.saved() == switch.config() == apply_diff(before, applied["diff"]["prepared"])
        assert (switch.requests, switch.connections) == (3 + 4 + 1 + 1, 1 + 2 + 1 + 1)
    reported: list[list[dict[str, Any]]] = [
        [{key: one[key] for key in ("commands", "vlans", "interfaces", "settings")} for one in each]
        for each in by_path.values()
    ]
    assert reported[0] == reported[1]
    assert served[True].config() == served[False].config()


def test_only_what_differs_is_sent(rack: Rack) -> None:
    switch, config = new_switch(rack, "tor1"), desired("tor1")
    run(switch, config, state="replaced")
    switch.node().config(["interface Ethernet9/1", "mtu 1500", "interface Ethernet10/1", "no description"])
    before = switch.config()
    result = run(switch, config, state="replaced")
    assert result["commands"] == [
        *("interface Ethernet9/1", "mtu 9214", "exit"),
        *("interface Ethernet10/1", "description ipum02 rnic", "exit"),
    ]
    assert result["interfaces"]["updated"] == ["Ethernet9/1", "Ethernet10/1"]
    assert switch.config() == apply_diff(before, result["diff"]["prepared"])


def test_without_a_timer_and_without_saving(rack: Rack) -> None:
    switch = new_switch(rack, "mgmt1")
    before, counter = switch.config(), Counter(switch)
    assert run(switch, desired("mgmt1"), confirm_timeout=0, save=False)["changed"]
    assert counter.since() == (3, 1)
    assert switch.saved() == before != switch.config()
    assert run(switch, {"hostname": "mgmt9"}, save=False)["changed"]
    assert counter.since() == (4, 2)
    assert switch.saved() == before
    assert run(switch, {"hostname": "mgmt1"}, confirm_timeout=0)["changed"]
    assert counter.since() == (4, 1)
    assert switch.saved() == switch.config()


def hold_first_requests(served: list[ServedSwitch]) -> None:
    """Hold the first request to each switch until all switches have received one."""
    waiting: set[int] = set()
    all_received = asyncio.Event()
    for number, switch in enumerate(served):
        handle = switch.served._server.request_handler

        async def hold(request: Any, number: int = number, handle: Any = handle) -> Any:
            waiting.add(number)
            if len(waiting) == len(served):
                all_received.set()
            await all_received.wait()
            return await handle(request)

        switch.served._server.request_handler = hold


def test_many_switches_at_once(rack: Rack, tmp_path: Path) -> None:
    """Ansible configures all switches in parallel: one after another, the first request would time out."""
    count = 8
    config = desired("mgmt1")
    served = [new_switch(rack, "mgmt1") for _ in range(count)]
    hold_first_requests(served)
    hosts = {f"mgmt{number}": {"eos": switch.options(timeout=60)} for number, switch in enumerate(served)}
    # One login fails, without effect on the others.
    hosts["mgmt3"]["eos"]["password"] = "wrong"
    task = {
        "openipu.pod.eos_pod": {"config": "{{ desired }}", "state": "replaced"},
        "args": "{{ eos }}",
        "ignore_errors": True,
    }
    found = results_by_host(tmp_path, hosts, [task, task], "--forks", str(count), desired=config)
    assert found.keys() == hosts.keys()
    for (name, (first, second)), switch in zip(sorted(found.items()), served, strict=True):
        if name == "mgmt3":
            assert first["failed"] and first["msg"].startswith("Cannot log in to ")
        else:
            assert (first["failed"], first["changed"], second["changed"]) == (False, True, False)
            assert switch.config() == served[0].config() == switch.saved()
