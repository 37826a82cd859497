# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the state of earlier code: ``python -m tests.earlier_releases.make COMMIT`` (needs etcd).

The programs of that commit run in a work tree of its own, with the requirements of this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from openipu.vipu.storage.etcd import keys
from tests import ROOT
from tests.earlier_releases import content
from tests.ha.etcd_nodes import EtcdCluster
from tests.ports import free_port
from tests.waiting import until

SERVER = (sys.executable, "-m", "openipu.vipu.server.main")


def run(tree: Path, *options: str) -> None:
    """Initialise a store, run the controller of a work tree on it, and create the objects."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    subprocess.run([*SERVER, "--init", *options], env=environment, check=True)
    port = free_port()
    with subprocess.Popen([*SERVER, "--port", str(port), *options], env=environment) as server:
        try:
            until(lambda: _responds(f"127.0.0.1:{port}"), 60, "the controller responds")
            content.create(f"127.0.0.1:{port}")
            content.OBJECTS.write_text(json.dumps(content.read(f"127.0.0.1:{port}"), indent=1) + "\n")
        finally:
            server.terminate()


def _responds(address: str) -> bool:
    try:
        return bool(content.read(address))
    except Exception:
        return False


def main() -> None:
    """Write the database and the records of the code of a commit."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as agents:
        tree, database = Path(folder) / "tree", Path(folder) / "vipu.db"
        subprocess.run(["git", "worktree", "add", "--detach", tree, sys.argv[1]], cwd=ROOT, check=True)
        try:
            for host in content.AGENTS.values():
                agent = [sys.executable, "-m", "openipu.vipu.agent.main", "--host", host, "--port", str(content.PORT)]
                process = subprocess.Popen(agent, env={**os.environ, "PYTHONPATH": str(tree / "src")})
                agents.callback(process.kill)
            run(tree, "--database", str(database))
            content.dump_database(database)
            cluster = EtcdCluster(Path(folder) / "etcd")
            try:
                run(tree, "--store", f"{cluster.url}/earlier")
                content.dump_records(keys.parse(f"{cluster.url}/earlier"))
            finally:
                cluster.stop()
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
