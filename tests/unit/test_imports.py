# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports of the package and of the collection change nothing else in their process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PROGRAM = [sys.executable, "-m", "tests.unit.import_effects"]
COLLECTION = "ansible_collections.openipu.pod.plugins"
IN_HORIZON = ("openipu.dashboard.panels", "openipu.dashboard.enabled")  # for the environment of Horizon only
SCRIPTS = ("__main__.py", "env.py")  # of Python and of Alembic; not for import


def modules(folder: Path, package: str) -> list[str]:
    """Return the names of all modules in a folder, in the order of their files."""
    files = [file.relative_to(folder).with_suffix("") for file in sorted(folder.rglob("*.py"))]
    return [
        ".".join((package, *file.parts)).removesuffix(".__init__") for file in files if f"{file.name}.py" not in SCRIPTS
    ]


def effects(*names: str, folder: Path = ROOT) -> dict[str, list[str]]:
    """Return the effects of importing these modules in one new process, by module."""
    done = subprocess.run(
        [*PROGRAM, *names], capture_output=True, text=True, timeout=60, cwd=ROOT, env={"PYTHONPATH": str(folder)}
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_no_import_has_effects() -> None:
    names = [
        *(name for name in modules(ROOT / "src" / "openipu", "openipu") if not name.startswith(IN_HORIZON)),
        *modules(ROOT / "plugins" / "module_utils", "openipu.shared"),
        *modules(ROOT / "plugins", COLLECTION),
    ]
    assert len(names) > 400
    assert effects(*names) == {}


def test_all_effects_are_noticed(tmp_path: Path) -> None:
    lines = {
        "import os; os.environ['NEW'] = '1'": "environment NEW: None -> 1",
        "import logging; logging.getLogger('other').disabled = True": "logging other: None -> [0, [], True, True, 0]",
        "import logging; logging.root.setLevel('ERROR')": "logging root: [30, [], False, True, 0] -> [40, ",
        "import threading; threading.Timer(1, print).start()": "threads Thread-1",
        "import socket; opened = socket.socket()": "sockets ",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)": "signals SIGTERM: 0 -> 1",
        "import os; os.chdir('/')": "working folder path: ",
        "import gc; gc.disable()": "garbage collected: True -> False",
        "from pysnmp.entity.engine import SnmpEngine; made = SnmpEngine()": None,
    }
    names = [f"effective{number}" for number in range(len(lines))]
    for name, line in zip(names, lines, strict=True):
        (tmp_path / f"{name}.py").write_text(f"{line}\n")
    found = effects("json", *names, folder=tmp_path)
    assert found.pop("all modules") == ["SNMP engines: 1"]
    for name, effect in zip(names, lines.values(), strict=True):
        assert effect is None or any(each.startswith(effect) for each in found[name]), found
    assert "json" not in found


@pytest.mark.parametrize("module", ["openstack.common.sdk", "vipu.quiet_grpc", "pdu.session"])
def test_large_libraries_are_excluded_from_searches_for_garbage(module: str) -> None:
    count = f"import gc; import {COLLECTION}.module_utils.{module}; print(gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 10_000


PROGRAMS = ("twin.cli.main", "twin.rack.main", "vipu.agent.main", "vipu.server.main", "shared.vipu.client")
VERBOSITY = """
import importlib, os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            print(os.environ.get("GRPC_VERBOSITY"))
sys.meta_path.insert(0, Finder())
importlib.import_module(sys.argv[1])
print("GRPC_VERBOSITY" in os.environ)
"""


@pytest.mark.parametrize(("program", "given"), [*((program, None) for program in PROGRAMS), (PROGRAMS[0], "DEBUG")])
def test_programs_import_a_quiet_grpc(program: str, given: str | None) -> None:
    environment = {"GRPC_VERBOSITY": given} if given else {}
    command = [sys.executable, "-c", VERBOSITY, f"openipu.{program}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    assert done.stdout.split() == [given or "NONE", str(bool(given))]


RICH = """
import importlib.util, sys
importlib.import_module(sys.argv[1])
found = sorted(name for name in sys.modules if name.partition(".")[0] == "rich")
import openipu.process.plain_structlog
try:
    import rich
    later = True
except ImportError:
    later = importlib.util.find_spec("rich") is None
print(found, later)
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_start_without_rich_but_can_import_it_later(program: str) -> None:
    command = [sys.executable, "-c", RICH, f"openipu.{program}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[] True"


def test_the_twin_starts_without_the_controller() -> None:
    """``twin status`` and its other commands start in the time of few modules."""
    listing = "import openipu.twin.cli.main, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, timeout=60, check=True)
    loaded = done.stdout.split()
    assert "openipu.twin.launch.launcher" in loaded
    assert not [
        name for name in loaded if name.startswith(("openipu.vipu.server", "openipu.vipu.api", "prometheus_client"))
    ]


def test_health_checks_start_without_the_controller() -> None:
    """Keepalived starts ``vipu-server health`` every few seconds on each host."""
    health = (
        "import sys; from openipu.vipu.server.main import main\n"
        "try: main(['health', '--port', '1'])\n"
        "finally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", health], capture_output=True, text=True, timeout=60)
    assert "Error OPU616: " in done.stderr
    loaded = done.stdout.split()
    assert "openipu.vipu.server.health" in loaded
    parts = ("api.endpoints", "api.services", "cluster_test", "domain.", "fleet", "lifecycle.service", "storage.store")
    unwanted = (
        *(f"openipu.vipu.{part}" for part in parts),
        "openipu.vipu.storage.etcd",
        "prometheus_client",
        "sqlite3",
    )
    assert not [name for name in loaded if name.startswith(unwanted)]
