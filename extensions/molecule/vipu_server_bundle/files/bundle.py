# SPDX-License-Identifier: GPL-3.0-or-later
"""Write archives that replace the vendor's, which is not public: install.sh, a controller, its command line, a unit.

The controller is the open one, with the vendor's options and file name of the storage. Release 1.1 corrupts the storage
and exits. Release 1.2 has no installer.

    bundle.py FOLDER
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path

INSTALL = """#!/bin/sh
set -eu
[ "$(id -u)" = 0 ] || { echo "Run me as root." >&2; exit 1; }
cd "$(dirname "$0")"
install -m 755 bin/vipu-server bin/vipu-admin /usr/local/bin/
install -m 644 vipu-server.service /etc/systemd/system/
systemctl daemon-reload
systemctl enable vipu-server
"""
SERVER = """#!/bin/sh
# Vendor's options only.
for option in "$@"; do
    case $option in
        --init|--secure|--tls-init|--default-user-id|-a) ;;
        *) echo "unknown flag: $option" >&2; exit 1 ;;
    esac
done
exec /opt/openipu/current/bin/vipu-server --database vipu-server.json "$@"
"""
BROKEN = """#!/bin/sh
echo corrupt > vipu-server.json
echo "Error: this release is broken on purpose." >&2
exit 1
"""
ADMIN = """#!/bin/sh
exec /opt/openipu/current/bin/vipu-admin "$@"
"""
UNIT = """[Unit]
Description=V-IPU server of the vendor
[Service]
ExecStart=/usr/local/bin/vipu-server
[Install]
WantedBy=multi-user.target
"""


def pack(folder: Path, release: str, server: str, installer: str = "install.sh") -> None:
    """Write an archive and, next to it, its checksum."""
    archive = folder / f"vipu-{release}.tar.gz"
    files = {installer: INSTALL, "bin/vipu-server": server, "bin/vipu-admin": ADMIN, "vipu-server.service": UNIT}
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"vipu-{release}/{name}")
            member.size, member.mode = len(text.encode()), 0o644 if name.endswith(".service") else 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    Path(f"{archive}.sha256").write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")


if __name__ == "__main__":
    pack(Path(sys.argv[1]), "1.0", SERVER)
    pack(Path(sys.argv[1]), "1.1", BROKEN)
    pack(Path(sys.argv[1]), "1.2", SERVER, installer="setup.sh")
