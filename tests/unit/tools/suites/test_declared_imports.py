# SPDX-License-Identifier: GPL-3.0-or-later
"""Each suite declares the modules of ``tests`` and ``tools`` that its tests import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tools.suites.declarations import SUITES, Suite
from tools.suites.suite import undeclared

RULE = re.compile(r"^(?P<target>[\w-]+):.*\n(?P<recipe>(?:\t.*\n)*)", re.MULTILINE)


def paths_of_targets() -> dict[str, list[Path]]:
    """Return the files and folders after ``pytest`` in the recipe of each target that calls it."""
    found = {}
    makefile = (ROOT / "Makefile").read_text().replace("$(ROLE_TESTS)", "tests/roles")
    for rule in RULE.finditer(makefile):
        words = [word for line in re.findall(r"\bpytest (.*)", rule["recipe"]) for word in line.split()]
        if words:
            found[rule["target"]] = [ROOT / word for word in words if word.startswith("tests/")]
    return found


TARGETS = paths_of_targets()


def started(target: str) -> Iterator[Path]:
    """Yield the modules that the command of a target collects, with the ``conftest.py`` of their folders."""
    for path in TARGETS[target]:
        if path.is_dir():
            yield from path.rglob("test_*.py")
            yield from path.rglob("conftest.py")
        else:
            yield path


def imports(path: Path) -> Iterator[Path]:
    """Yield the modules of ``tests`` and ``tools`` that a module imports, with the packages around them."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            names = [source, *(f"{source}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] in ("tests", "tools"):
                for length in range(1, len(parts) + 1):
                    yield from files(ROOT.joinpath(*parts[:length]))


def files(module: Path) -> list[Path]:
    return [path for path in (module.with_suffix(".py"), module / "__init__.py") if path.is_file()]


def reached(target: str) -> set[str]:
    """Return the modules that the tests of a target import, directly or not, as paths from the root."""
    waiting, found = list(started(target)), set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += imports(path)
    return {str(path.relative_to(ROOT)) for path in found}


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite.name in TARGETS], ids=lambda suite: suite.name)
def test_declares_the_modules_that_its_tests_import(suite: Suite) -> None:
    assert undeclared(suite, sorted(reached(suite.name))) == []


def test_finds_the_imports_of_most_suites() -> None:
    assert len(TARGETS) > 12
    assert {"tests/docs/blocks.py", "tests/__init__.py"} <= reached("test-ha")
