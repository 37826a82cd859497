# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of the kind that public scripts contain, run by bash against a real controller and a rack twin.

The files in ``script_lines`` contain them. Objects before each line:

* cluster ``cl0`` with ``ag01`` to ``ag04``,
* allocations ``a`` (``ag01``, ``ag02``) and ``c4242`` (``ag03``),
* in ``a``, the partitions ``p1`` (4 IPUs, reconfigurable) and ``g2`` (2 IPUs, 2 GCDs).

Each line leaves the same partitions and files behind. Variables are HOST and PORT of the controller, also as
VIPU_CLI_API_HOST and VIPU_CLI_API_PORT, and SLURM_JOB_ID (4242). The working directory has a ``vipu-cli.hcl``.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.agents.agents_support import RackProcess
from tests.integration.cli.cli_support import BIN, Cli
from tests.integration.vipu_servers import Process, run
from tests.peers.programs import needs
from tests.waiting import until

pytestmark = needs("bash", "jq", "awk", packages="jq")
KINDS = {"script", "guide", "inferred", "ours"}
PARTITIONS = ["g2", "p1"]
LEAST = 60
SECONDS = 120.0  # detects a hanging loop only: busy machines are slow


@dataclass(frozen=True)
class Line:
    """A command line and its effect.

    ``prints`` is the exact output, ``matches`` a regular expression of it, ``errors`` one of standard error.
    ``kind`` is the origin of what the line relies on:

    * script: public scripts use this command and read its output in this way,
    * guide: Graphcore's guides show the command and its output,
    * inferred: by the pattern of published forms,
    * ours: our own flags, output forms, exit statuses and messages.
    """

    name: str
    kind: str
    line: str
    prints: str | None = None
    matches: str | None = None
    errors: str = ""
    status: int = 0


FILES = sorted((Path(__file__).parent / "script_lines").glob("*.yml"))
LINES = [Line(**entry) for file in FILES for entry in yaml.safe_load(file.read_text())]


class Lab:
    """A controller with four IPU-Machines and two partitions, and a shell with both commands."""

    def __init__(self, server: Process, cli: Cli) -> None:
        self._server = server
        self._cli = cli
        host, _, port = server.address.rpartition(":")
        self._variables = {"HOST": host, "PORT": port, "SLURM_JOB_ID": "4242"}
        (cli.home / "vipu-cli.hcl").write_text(f'api-host="{host}"\napi-port={port}\n')

    def bash(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command line."""
        path = f"{BIN}:{self._cli.environment['PATH']}"
        return subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=self._cli.home,
            env={**self._cli.environment, **self._variables, "PATH": path},
        )

    def partitions(self) -> list[str]:
        """Return the ids of all partitions."""
        found: Any = self._server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=SECONDS)
        return sorted(partition.id for partition in found.partitions)

    def files(self) -> list[str]:
        """Return the names of all IPUoF configuration files."""
        return self._cli.files()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with contextlib.ExitStack() as stack:
        rack = RackProcess(folder, 4)
        stack.callback(rack.close)
        database = folder / "vipu-server.db"
        assert run("--init", "--database", str(database)).returncode == 0
        server = Process("--database", str(database))
        stack.callback(server.stop)
        home = folder / "home"
        home.mkdir()
        cli = Cli(home, server.address)
        for agent in rack.agents:
            cli.out(f"vipu-admin create agent {agent.id} --host {agent.host} --port {agent.port}")
        agents = ",".join(agent.id for agent in rack.agents)
        cli.out(f"vipu-admin create cluster cl0 --agents {agents} --topology mesh")
        cli.out("vipu-admin create allocation a --cluster cl0 --agents ag01,ag02")
        cli.out("vipu-admin create allocation c4242 --cluster cl0 --agents ag03")
        until(lambda: {agent["state"] for agent in cli.json("vipu-admin list agents")} == {"Up"})
        cli.out("vipu create partition p1 --allocation a --size 4 --reconfigurable")
        cli.out("vipu create partition g2 --allocation a --size 2 --gcds 2")
        yield Lab(server, cli)


# Each new IPUoF file has such a note on standard error.
NOTE = re.compile(r"Note: wrote the IPUoF configuration to /.*_ipuof\.conf\.")


def test_the_table_has_enough_lines_of_each_kind() -> None:
    kinds = Counter(line.kind for line in LINES)
    assert kinds.keys() == KINDS
    assert kinds.total() >= LEAST
    assert kinds["script"] >= 12
    assert len({line.name for line in LINES}) == len({line.line for line in LINES}) == len(LINES)
    assert all((line.prints is None) != (line.matches is None) for line in LINES)


@pytest.mark.parametrize("line", LINES, ids=[line.name for line in LINES])
def test_a_line(lab: Lab, line: Line) -> None:
    done = lab.bash(line.line)
    output, errors = done.stdout.rstrip("\n"), done.stderr.rstrip("\n")
    assert done.returncode == line.status, done
    if line.prints is not None:
        assert output == line.prints, done
    else:
        assert re.fullmatch(str(line.matches), output), done
    others = [each for each in errors.splitlines() if not NOTE.fullmatch(each)]
    assert others == errors.splitlines() or re.search("create|reset", line.line), done
    assert re.fullmatch(line.errors, "\n".join(others)), done
    # A line with creations also has the removals.
    assert lab.partitions() == PARTITIONS
    assert lab.files() == ["g2_gcd0_ipuof.conf", "g2_gcd1_ipuof.conf", "p1_ipuof.conf"]
