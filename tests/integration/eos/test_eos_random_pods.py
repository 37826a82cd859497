# SPDX-License-Identifier: GPL-3.0-or-later
"""Random valid PODs: their switches accept the configuration, return it, and need no second change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.devices.eos.config.startup import startup_config
from tests.integration.eos.eos_options import canonical
from tests.integration.eos.eos_runs import MODELS, apply_diff, run
from tests.integration.eos_switches import DATA, MANAGEMENT, rack_of_switches

NETWORKS = ("bmc", "gw", "management", "data", "storage")
UPLINKS = [f"Ethernet{number}/1" for number in range(1, 9)]
ADDRESS = {"tor1": "10.1.3.111", "mgmt1": "10.1.3.121"}


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a POD of one rack in the form of pod.yml, with the rack units of its machines in `units`."""
    vlans = draw(st.lists(st.integers(1, 4094), min_size=5, max_size=5, unique=True))
    if draw(st.booleans()):
        vlans[1] = vlans[0]  # BMC and GW may share a VLAN
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
        def round_trip(pod: dict[str, Any]) -> None:
            found = load(str(write_pod(folder, pod)))
            for switch in found.racks[0].switches:
                server, config = served[switch.name], switch_config(found, switch)
                server.do(setattr, server.switch.sessions, "running", server.switch.startup.copy())
                before = server.config()
                result = run(server, config, state="replaced", save=False)
                assert "failed" not in result and "warnings" not in result, result
                assert server.config() == apply_diff(before, result["diff"]["prepared"])
                assert canonical(run(server, state="gathered")["gathered"]) == canonical(config)
                again = run(server, config, state="replaced")
                assert (again["changed"], again["commands"]) == (False, [])

        round_trip()


def write_pod(folder: Path, pod: dict[str, Any]) -> Path:
    """Write the files of the POD and return the path of pod.yml."""
    units = pod["units"]
    pod = {key: value for key, value in pod.items() if key != "units"}
    (folder / "pod.yml").write_text(yaml.safe_dump(pod, sort_keys=False))
    rows = ["name,rack,unit,bmc_mac,gw_mac,rnic_mac"]
    for unit in units:
        macs = ",".join(f"02:{network:02}:00:00:01:{unit:02x}" for network in (1, 2, 5))
        rows.append(f"m{unit},rack1,{unit},{macs}")
    (folder / "machines.csv").write_text("\n".join(rows) + "\n")
    return folder / "pod.yml"
