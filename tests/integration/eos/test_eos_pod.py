# SPDX-License-Identifier: GPL-3.0-or-later
"""eos_pod brings the switches of an IPU-POD64 to what the POD model says, over verified TLS."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from eos_runs import delivered, patched, run, wanted
from eos_switches import Rack, ServedSwitch
from playbook import results, results_by_host


class Counted:
    """Requests and connections since the last look."""

    def __init__(self, switch: ServedSwitch) -> None:
        self._switch, self._before = switch, (0, 0)

    def since(self) -> tuple[int, int]:
        before, self._before = self._before, (self._switch.requests, self._switch.connections)
        return self._before[0] - before[0], self._before[1] - before[1]


@pytest.mark.parametrize("name", ["tor1", "mgmt1"])
def test_a_switch_as_it_was_delivered(rack: Rack, name: str) -> None:
    switch, config = delivered(rack, name), wanted(name)
    before, counted = switch.config(), Counted(switch)

    checked = run(switch, config, check=True, state="replaced")
    assert counted.since() == (3, 1)
    # Nothing was written, and nothing is left of the session that was asked for the difference.
    assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})

    applied = run(switch, config, state="replaced")
    assert counted.since() == (4, 2)  # the second connection is that of the confirmation
    assert switch.saved() == switch.config() == patched(before, applied["diff"]["prepared"])
    assert list(switch.sessions().values()) == ["completed"]
    assert applied["changed"] and applied["commands"]
    foretold = {**checked, "diff": checked["diff"]["prepared"].splitlines()[2:]}  # without the session's name
    assert foretold == {**applied, "diff": applied["diff"]["prepared"].splitlines()[2:]}

    for check in (False, True):
        again = run(switch, config, check=check, state="replaced")
        assert counted.since() == (1, 1)
        assert not again["changed"] and not again["commands"]
        assert again["diff"] == {"prepared": ""}
        assert {verb for kind in ("vlans", "interfaces", "settings") for verb in again[kind] if again[kind][verb]} == {
            "unchanged"
        }


def test_by_playbook_in_the_worker_and_as_a_module(rack: Rack, tmp_path: Path) -> None:
    served = {path: delivered(rack, "tor1") for path in (True, False)}
    before = served[True].config()
    tasks = [
        {
            "openipu.pod.eos_pod": switch.options(config="{{ wanted }}", state="replaced"),
            "check_mode": check,
            "vars": {"openipu_fast_path": path},
        }
        for path, switch in served.items()
        for check in (True, False, False, True)
    ]
    found = results(tmp_path, tasks, "--diff", wanted=wanted("tor1"))
    by_path = {path: found[at : at + 4] for at, path in ((0, True), (4, False))}
    for path, (checked, applied, again, checked_again) in by_path.items():
        assert [one["changed"] for one in (checked, applied, again, checked_again)] == [True, True, False, False]
        assert checked["diff"]["prepared"].splitlines()[2:] == applied["diff"]["prepared"].splitlines()[2:]
        switch = served[path]
        assert switch.saved() == switch.config() == patched(before, applied["diff"]["prepared"])
        assert (switch.requests, switch.connections) == (3 + 4 + 1 + 1, 1 + 2 + 1 + 1)
    told: list[list[dict[str, Any]]] = [
        [{key: one[key] for key in ("commands", "vlans", "interfaces", "settings")} for one in each]
        for each in by_path.values()
    ]
    assert told[0] == told[1]
    assert served[True].config() == served[False].config()


def test_only_what_differs_is_sent(rack: Rack) -> None:
    switch, config = delivered(rack, "tor1"), wanted("tor1")
    run(switch, config, state="replaced")
    switch.node().config(["interface Ethernet9/1", "mtu 1500", "interface Ethernet10/1", "no description"])
    before = switch.config()
    result = run(switch, config, state="replaced")
    assert result["commands"] == [
        *("interface Ethernet9/1", "mtu 9214", "exit"),
        *("interface Ethernet10/1", "description ipum02 rnic", "exit"),
    ]
    assert result["interfaces"]["updated"] == ["Ethernet9/1", "Ethernet10/1"]
    assert switch.config() == patched(before, result["diff"]["prepared"])


def test_without_a_timer_and_without_saving(rack: Rack) -> None:
    switch = delivered(rack, "mgmt1")
    before, counted = switch.config(), Counted(switch)
    assert run(switch, wanted("mgmt1"), confirm_timeout=0, save=False)["changed"]
    assert counted.since() == (3, 1)
    assert switch.saved() == before != switch.config()
    assert run(switch, {"hostname": "mgmt9"}, save=False)["changed"]
    assert counted.since() == (4, 2)
    assert switch.saved() == before
    assert run(switch, {"hostname": "mgmt1"}, confirm_timeout=0)["changed"]
    assert counted.since() == (4, 1)
    assert switch.saved() == switch.config()


def test_many_switches_at_once(rack: Rack, tmp_path: Path) -> None:
    count, slow = 8, 0.4
    config = wanted("mgmt1")
    served = [delivered(rack, "mgmt1") for _ in range(count)]
    for switch in served:
        switch.fault(slow=slow)
    hosts = {f"mgmt{number}": {"eos": switch.options()} for number, switch in enumerate(served)}
    # One cannot be logged in to: that is its own affair.
    hosts["mgmt3"]["eos"]["password"] = "wrong"
    task = {
        "openipu.pod.eos_pod": {"config": "{{ wanted }}", "state": "replaced"},
        "args": "{{ eos }}",
        "ignore_errors": True,
    }
    start = time.monotonic()
    found = results_by_host(tmp_path, hosts, [task, task], "--forks", str(count), wanted=config)
    assert time.monotonic() - start < (count - 1) * 5 * slow  # what their requests take one after another
    assert found.keys() == hosts.keys()
    for (name, (first, second)), switch in zip(sorted(found.items()), served, strict=True):
        if name == "mgmt3":
            assert first["failed"] and first["msg"].endswith("does not let admin in: check username and password.")
        else:
            assert (first["failed"], first["changed"], second["changed"]) == (False, True, False)
            assert switch.config() == served[0].config() == switch.saved()
