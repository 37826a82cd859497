#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how many mutants of pure modules the unit tests kill, with mutmut.

It works on a copy of the sources in ``.cache/mutation``. Mutants that were reviewed and found equivalent
to the original are listed with a reason in ``tests/equivalent_mutants.yml``; they do not count. It prints
all other survivors and a table, and returns 1 when the score of a module is below its floor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "mutation"
TREE = CACHE / "tree"
PACKAGES = CACHE / "packages"
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.yml"
COLLECTION = "src/ansible_collections/openipu/pod"
KILLED, SURVIVED = ("killed", "timeout", "segfault", "suspicious"), ("survived", "no tests")


@dataclass(frozen=True, slots=True)
class Target:
    """A module with the tests that must kill its mutants, and the least percentage that they kill."""

    module: str
    tests: tuple[str, ...]
    floor: int


TARGETS = (
    Target(
        "src/openipu/vipu/domain/placement.py",
        (
            "tests/unit/vipu/domain/test_placement.py",
            "tests/unit/vipu/domain/test_rules_capacity.py",
            "tests/unit/vipu/domain/test_rules_partitions.py",
        ),
        95,
    ),
    Target(
        "src/openipu/vipu/domain/capacity.py",
        (
            "tests/unit/vipu/domain/test_placement.py",
            "tests/unit/vipu/domain/test_rules_capacity.py",
            "tests/unit/vipu/domain/test_rules_partitions.py",
            "tests/unit/vipu/domain/test_rules_quarantine.py",
        ),
        95,
    ),
    Target(f"{COLLECTION}/plugins/module_utils/reconcile.py", ("tests/unit/collection/test_reconcile.py",), 95),
    Target(f"{COLLECTION}/plugins/module_utils/openstack/network/plan.py", ("tests/unit/collection/openstack",), 95),
)


# Mutants run in forks of a process that has run the tests before: results in caches would hide them.
CLEAR_CACHES = """

import functools
import gc

import pytest


@pytest.fixture(autouse=True)
def clear_caches():
    gc.unfreeze()  # imports of large libraries hide all objects
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()
"""


def prepare(target: Target) -> None:
    """Copy sources and tests into the tree, and write the configuration of mutmut."""
    shutil.rmtree(TREE, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", TREE / "src", ignore=ignore)  # the link openipu/shared becomes a folder
    shutil.copytree(ROOT / "plugins", TREE / COLLECTION / "plugins", ignore=ignore)
    shutil.copytree(ROOT / "tests", TREE / "tests", ignore=ignore)
    shutil.copytree(ROOT / "tools" / "suites", TREE / "tools" / "suites", ignore=ignore)
    with (TREE / "tests" / "conftest.py").open("a") as file:
        file.write(CLEAR_CACHES)
    selection = ", ".join(f'"{path}"' for path in target.tests)
    (TREE / "pyproject.toml").write_text(
        f'[tool.pytest.ini_options]\ntimeout = 60\n[tool.mutmut]\nsource_paths = ["src"]\n'
        f'only_mutate = ["{target.module}"]\nalso_copy = ["src", "tests", "tools"]\n'
        "timeout_multiplier = 4.0\ntimeout_constant = 2.0\n"
        f"pytest_add_cli_args_test_selection = [{selection}]\n"
        'pytest_add_cli_args = ["-p", "no:cacheprovider", "-m", "not counts_calls"]\n'
    )


def mutmut(*arguments: str) -> str:
    """Return the output of a mutmut command in the tree; end when it fails."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"mutmut {' '.join(arguments)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def change(mutant: str) -> tuple[str, str]:
    """Return the removed and the added lines of a mutant, each joined and stripped."""
    lines = [line for line in mutmut("show", mutant).splitlines() if not line.startswith(("---", "+++"))]
    removed, added = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    return " ".join(removed), " ".join(added)


def measure(target: Target, equivalent: list[dict[str, Any]]) -> tuple[list[Any], list[str], float]:
    """Return the row of a module, its unreviewed survivors, and its score in percent."""
    prepare(target)
    mutmut("run", "--max-children", str(os.cpu_count() or 1))
    results = [line.split(": ") for line in mutmut("results", "--all", "true").splitlines() if ": " in line]
    states = Counter(state.strip() for _, state in results)
    reviewed = {(entry["removed"], entry["added"]) for entry in equivalent if entry["module"] in target.module}
    survivors = [name.strip() for name, state in results if state.strip() in SURVIVED]
    changes = {name: change(name) for name in survivors}
    open_ones = [f"{name}\n    - {a}\n    + {b}" for name, (a, b) in changes.items() if (a, b) not in reviewed]
    same = len(survivors) - len(open_ones)
    killed = sum(states[state] for state in KILLED)
    score = 100 * killed / max(killed + len(open_ones), 1)
    name = target.module.removeprefix(f"{COLLECTION}/").removeprefix("src/")
    return [name, len(results), killed, len(open_ones), same, f"{score:.1f} %", f"{target.floor} %"], open_ones, score


def main() -> int:
    """Measure all targets, or those whose module contains one of the arguments."""
    equivalent = yaml.safe_load(EQUIVALENT.read_text()) or []
    rows, low = [], []
    for target in TARGETS:
        if sys.argv[1:] and not any(word in target.module for word in sys.argv[1:]):
            continue
        row, survivors, score = measure(target, equivalent)
        rows.append(row)
        print(*survivors, sep="\n", flush=True)
        if score < target.floor:
            low.append(row[0])
    print(tabulate(rows, ("Module", "Mutants", "Killed", "Survived", "Equivalent", "Score", "Floor")))
    if low:
        print(f"Mutation score below the floor: {', '.join(low)}", file=sys.stderr)
    return bool(low)


if __name__ == "__main__":
    sys.exit(main())
