# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the rack_tool stand-in on a machine of a twin: ``twin_machine.py FOLDER COMMAND NAME GW …``.

``FOLDER/release.json`` has the versions of the release and ``FOLDER/faults.json`` the fault of each machine. Every
call appends a line to ``FOLDER/calls``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from openipu.twin.launch.launcher import Twin
from openipu.twin.rack.contract import twin as api


def main(folder: Path, command: str, name: str) -> None:
    with (folder / "calls").open("a") as calls:
        calls.write(f"{command} {name}\n")
    fault = json.loads((folder / "faults.json").read_text()).get(name)
    if fault == "rejects":
        sys.exit("the standby image cannot be written")
    if command == "upgrade":
        # The commands of the program twin, in one process.
        control = Twin(Path(os.environ["TWIN_STATE_DIR"])).control
        versions = json.loads((folder / "release.json").read_text())
        lines = [f"version {name} {component} {version}" for component, version in versions.items()]
        control("MakeFaults", api.MakeFaultsRequest(faults=lines))
        control("StopMachines", api.MachineRequest(agent_ids=[name]))
        if fault != "is lost":
            control("StartMachines", api.MachineRequest(agent_ids=[name]))
        if fault == "loses a cable":
            control("MakeFaults", api.MakeFaultsRequest(faults=[f"unplug {name}:7"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
