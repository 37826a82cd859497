# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the rack_tool stand-in on a machine of a twin: ``twin_machine.py FOLDER COMMAND NAME GW …``.

``FOLDER/release.json`` has the versions of the release and ``FOLDER/faults.json`` the fault of each machine. Every
call appends a line to ``FOLDER/calls``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TWIN = Path(sys.executable).parent / "twin"


def twin(*words: str) -> None:
    subprocess.run([str(TWIN), *words], check=True, stdout=subprocess.DEVNULL)


def main(folder: Path, command: str, name: str) -> None:
    with (folder / "calls").open("a") as calls:
        calls.write(f"{command} {name}\n")
    fault = json.loads((folder / "faults.json").read_text()).get(name)
    if fault == "rejects":
        sys.exit("the standby image cannot be written")
    if command == "upgrade":
        for component, version in json.loads((folder / "release.json").read_text()).items():
            twin("fault", "version", name, component, version)
        twin("stop-machine", name)
        if fault != "is lost":
            twin("start-machine", name)
        if fault == "loses a cable":
            twin("fault", "unplug", f"{name}:7")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
