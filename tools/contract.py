#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the contract modules from proto/; with --check, fail when one is stale."""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
import textwrap
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"

# One generated module per API. The collection contains the user and admin APIs, because it needs them on
# hosts without openipu. The agent and twin APIs are inside openipu.
CONTRACTS = {
    "plugins/module_utils/vipu/contract.py": ("vipuuser.proto", "openipu/vipu/admin/v1/admin.proto"),
    "src/openipu/vipu/agent_api/contract.py": ("openipu/vipu/agent/v1/agent.proto",),
    "src/openipu/twin/rack/contract.py": ("openipu/twin/v1/twin.proto",),
}
# Short Python names of the packages.
NAMES = {
    "virmgrpc": "virmgrpc",
    "openipu.vipu.admin.v1": "admin",
    "openipu.vipu.agent.v1": "agent",
    "openipu.twin.v1": "twin",
}
HEADER = '''\
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: openipu.pod contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated from proto/ by tools/contract.py; do not edit."""

from __future__ import annotations

from {wire} import Package
'''


def descriptors(protos: tuple[str, ...], *options: str) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the compiled files without the well-known ones. Raises SystemExit when protoc fails."""
    with tempfile.NamedTemporaryFile() as out:
        folders = (f"-I{ROOT / 'proto'}", f"-I{WELL_KNOWN}")
        arguments = ["protoc", *folders, *options, f"--descriptor_set_out={out.name}", *protos]
        if protoc.main(arguments) != 0:
            raise SystemExit(f"Cannot compile {', '.join(protos)}: protoc failed. Its message is above.")
        return list(descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file)


def module(target: str, protos: tuple[str, ...]) -> str:
    """Return the source of one contract module."""
    shared = "" if target.startswith("plugins/") else "openipu.shared.vipu"
    files = descriptors(protos)
    parts = [HEADER.format(wire=f"{shared}.wire")]
    if "vipuuser.proto" not in protos and any("vipuuser.proto" in file.dependency for file in files):
        parts.insert(1, f"from {shared}.contract import virmgrpc\n")
    for file in files:
        text = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
        lines = "".join(f'        "{line}"\n' for line in textwrap.wrap(text, 100))
        needs = "    requires=(virmgrpc,),\n" if "vipuuser.proto" in file.dependency else ""
        parts.append(
            f'\n{NAMES[file.package]} = Package(\n    "{file.package}",\n    (\n{lines.rstrip()},\n    ),\n{needs})\n'
        )
    return "".join(parts)


def main() -> int:
    """Write the modules, or compare them with the existing files; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; fail when a module is stale")
    check = parser.parse_args().check
    stale = []
    for target, protos in CONTRACTS.items():
        path, text = ROOT / target, module(target, protos)
        if not path.exists() or path.read_text() != text:
            stale.append(target)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if check and stale:
        print(f"{', '.join(stale)}: stale. Run 'make proto' and commit the result.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
