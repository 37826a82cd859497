# SPDX-License-Identifier: GPL-3.0-or-later
"""Build a release of openipu whose agent cannot start: ``release.py WHEELS VERSION FOLDER`` prints its wheel.

WHEELS is the folder with the wheel of a working release.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

AGENT = "openipu/vipu/agent/server.py"


def main(wheels: Path, version: str, folder: Path) -> None:
    """Copy the wheel with another version and an agent that exits at once, and print the path of the copy."""
    (wheel,) = wheels.glob("openipu-*.whl")
    folder.mkdir(parents=True, exist_ok=True)
    old = wheel.name.split("-")[1]
    made = folder / wheel.name.replace(old, version, 1)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.infolist():
            content = source.read(item)
            if item.filename == AGENT:
                content = b'raise SystemExit("Error OPU620: this release has no agent")\n'
            if item.filename.endswith("dist-info/METADATA"):
                content = re.sub(rb"(?m)^Version: .*$", f"Version: {version}".encode(), content)
            item.filename = item.filename.replace(f"openipu-{old}.dist-info", f"openipu-{version}.dist-info")
            if item.filename.endswith("dist-info/RECORD"):
                content = content.replace(f"openipu-{old}.dist-info".encode(), f"openipu-{version}.dist-info".encode())
            target.writestr(item, content)
    print(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
