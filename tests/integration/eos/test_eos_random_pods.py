# SPDX-License-Identifier: GPL-3.0-or-later
"""Any POD whose model is valid makes configurations that its switches take, tell back, and need only once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.switching import switch_config
from eos_options import told
from eos_runs import MODELS, patched, run
from eos_switches import DATA, MANAGEMENT, rack_of_switches
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.eos.startup import startup_config

NETWORKS = ("bmc", "gw", "management", "data", "storage")
UPLINKS = [f"Ethernet{number}/1" for number in range(1, 9)]
ADDRESS = {"tor1": "10.1.3.111", "mgmt1": "10.1.3.121"}


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """A POD of one rack, as it stands in pod.yml, with the units of its machines under `units`."""
    vlans = draw(st.lists(st.integers(1, 4094), min_size=5, max_size=5))
    tor = {"name": "tor1", "kind": "data", "model": DATA, "address": ADDRESS["tor1"]}
    if draw(st.booleans()):
        tor["uplinks"] = draw(st.lists(st.sampled_from(UPLINKS), min_size=1, unique=True))
        if draw(st.booleans()):
            tor["uplink_channel"] = draw(st.one_of(st.integers(1, 5), st.integers(6, 2000)))
    servers = draw(st.integers(1, 4))
    return {
        "units": draw(st.lists(st.integers(1, 16), min_size=1, max_size=16, unique=True)),
        "plugin": "openipu.pod.pod",
        "name": "random",
        "networks": {
            name: {"vlan": vlan, **({"subnet": f"10.1.{place}.0/24"} if name != "storage" else {})}
            for place, (name, vlan) in enumerate(zip(NETWORKS, vlans, strict=True), 1)
        },
        "controller": {"server": "s1"},
        "racks": [
            {
                "name": "rack1",
                "number": 1,
                "servers": [
                    {"name": f"s{number}", **({"roles": ["controller", "poplar"]} if number == 1 else {})}
                    for number in range(1, servers + 1)
                ],
                "switches": [
                    tor,
                    {"name": "mgmt1", "kind": "management", "model": MANAGEMENT, "address": ADDRESS["mgmt1"]},
                ],
                "pdus": [{"name": "pdu1", "model": "AP8886"}],
            }
        ],
    }


def test_a_random_pod(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pods")
    with rack_of_switches(folder) as rack:
        served = {
            name: rack.switch(name, MODELS[name], startup=startup_config(name, f"{address}/24"))
            for name, address in ADDRESS.items()
        }

        @settings(max_examples=15)
        @given(pods())
        def there_and_back(pod: dict[str, Any]) -> None:
            found = load(str(written(folder, pod)))
            for switch in found.racks[0].switches:
                server, config = served[switch.name], switch_config(found, switch)
                server.do(setattr, server.switch.sessions, "running", server.switch.startup.copy())
                before = server.config()
                done = run(server, config, state="replaced", save=False)
                assert "failed" not in done and "warnings" not in done, done
                assert server.config() == patched(before, done["diff"]["prepared"])
                assert told(run(server, state="gathered")["gathered"]) == told(config)
                again = run(server, config, state="replaced")
                assert (again["changed"], again["commands"]) == (False, [])

        there_and_back()


def written(folder: Path, pod: dict[str, Any]) -> Path:
    """The POD's files."""
    units = pod["units"]
    pod = {key: value for key, value in pod.items() if key != "units"}
    (folder / "pod.yml").write_text(yaml.safe_dump(pod, sort_keys=False))
    rows = ["name,rack,unit,bmc_mac,gw_mac,rnic_mac"]
    for unit in units:
        macs = ",".join(f"02:{network:02}:00:00:01:{unit:02x}" for network in (1, 2, 5))
        rows.append(f"m{unit},rack1,{unit},{macs}")
    (folder / "machines.csv").write_text("\n".join(rows) + "\n")
    return folder / "pod.yml"
