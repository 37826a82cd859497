# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of rehearsals: an installed wheel and collection, and a network namespace that counts packets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

PROGRAMS = Path(sys.executable).parent
MARK = "Play of the installed collection"
# All packets that do not go to loopback leave by the interface 'sink', which counts and drops them.
NAMESPACE = """
set -e
for family in all default; do echo 1 >/proc/sys/net/ipv6/conf/$family/disable_ipv6; done
ip link set lo up
ip link add sink type veth peer name drain
ip address add 192.0.2.2/24 dev sink
ip link set sink arp off up
ip link set drain arp off up
ip route add default dev sink
count=$1; namespaces=$2; shift 2
[ "$namespaces" ] || for kind in net user; do echo 0 >/proc/sys/user/max_${kind}_namespaces; done
status=0; "$@" || status=$?
grep sink: /proc/net/dev | awk '{print $11}' >"$count"
exit $status
"""


@dataclass(frozen=True)
class Installation:
    """Wheel and collection outside of the checkout, and a folder to work in."""

    site: Path
    collections: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        dropped = ("ANSIBLE_", "VIPU_", "TWIN_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return {
            **kept,
            "PYTHONPATH": str(self.site),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_HOME": str(self.folder / ".ansible"),
            "HOME": str(self.folder),
            "TWIN_STATE_DIR": str(self.folder / "t"),
        }

    def run(
        self, module: str, *arguments: object, prefix: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command = [*prefix, sys.executable, "-m", module, *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def rehearse(self, pod: Path, *options: str, namespaces: bool = True) -> tuple[dict[str, Any], int]:
        """Return report and number of packets that left loopback; without ``namespaces``, the host allows none."""
        [report], packets = self.rehearsals(1, pod, *options, namespaces=namespaces)
        return report, packets

    def rehearsals(
        self, number: int, pod: Path, *options: str, namespaces: bool = True
    ) -> tuple[list[dict[str, Any]], int]:
        """Rehearse several times in one namespace, at most until a failure. Return the reports and that number."""
        count = self.folder / "packets"
        repeat = " && ".join(number * ['"$@"'])
        prefix = [*namespace(), "sh", "-c", NAMESPACE, "sh", str(count), "yes" if namespaces else ""]
        prefix += ["sh", "-c", repeat, "sh"]
        done = self.run("openipu.pod_files.cli.main", "rehearse", pod, "-o", "json", *options, prefix=prefix)
        reports, rest = [], done.stdout.strip()
        while rest:
            assert rest.startswith("{"), done.stderr
            report, end = json.JSONDecoder().raw_decode(rest)
            reports.append(report)
            rest = rest[end:].strip()
        assert done.returncode == (0 if reports[-1]["succeeded"] else 1), done.stderr
        return reports, int(count.read_text())


def namespace() -> list[str]:
    """Return the command that starts a program in a network namespace of its own."""
    return ["unshare", "--user", "--map-root-user", "--net"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build and install the wheel and the collection."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder / "site")
    galaxy = PROGRAMS / "ansible-galaxy"
    build = [galaxy, "collection", "build", "--output-path", folder, ROOT]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    [archive_path] = folder.glob("openipu-pod-*.tar.gz")
    install = [
        galaxy,
        "collection",
        "install",
        archive_path,
        "--no-deps",
        "--force",
        "--collections-path",
        folder / "collections",
    ]
    subprocess.run(install, cwd=folder, check=True, capture_output=True)
    playbook = folder / "collections/ansible_collections/openipu/pod/playbooks/site.yml"
    mark = "{hosts: localhost, gather_facts: false, tasks: [{name: Mark, ansible.builtin.debug: {msg: installed}}]}"
    playbook.write_text(f"{playbook.read_text()}\n- {mark[:1]}name: {MARK}, {mark[1:]}\n")
    return folder / "site", folder / "collections"


@pytest.fixture
def installation(installed: tuple[Path, Path], tmp_path: Path) -> Installation:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    if subprocess.run([*namespace(), "true"], capture_output=True, check=False).returncode:
        pytest.skip("this host allows no network namespaces")
    return Installation(*installed, tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the folder of a POD with two IPU-Machines."""
    init = [sys.executable, "-m", "openipu.pod_files.cli.main", "init", "small", "--machines", "2", "--servers", "1"]
    subprocess.run(init, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    return tmp_path / "small"
