# SPDX-License-Identifier: GPL-3.0-or-later
"""The Makefile, the hooks, the workflows, the documentation and the versions agree."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests import ROOT
from tools import contract, prose
from tools.suites import declarations
from tools.suites.suite import Suite

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE))
SUITES = {suite.name for suite in declarations.SUITES}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FILTERS = {"--check", "--strict"}  # options that decide whether a check can fail


def load(path: str) -> Any:
    """Return the content of a YAML file."""
    return yaml.safe_load((ROOT / path).read_text())


def recipe(target: str) -> list[list[str]]:
    """Return the commands of a target, each as a list of words, without the wrapper that skips passed checks."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found, target
    wrapper = re.compile(r"@?(?:tools/unless_passed\.sh (?:--all )?(?:--writes \S+ )?)?")
    return [wrapper.sub("", line.strip(), count=1).split() for line in found[1].splitlines()]


def check(words: list[str]) -> tuple[str, ...]:
    """Return program, script or subcommand, and deciding options of a command, without paths of the environment."""
    program = words[0].removeprefix(".venv/bin/")
    operands = [word for word in words[1:] if not word.startswith("-")]
    subject = operands[:1] if program in ("python", "ruff", "reuse", "antsibull-changelog") else []
    return (program, *subject, *sorted(FILTERS & set(words)))


def steps(workflow: Path) -> list[tuple[dict[str, list[str]], str]]:
    """Return the matrix and the command of each step of a workflow."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [
        (job.get("strategy", {}).get("matrix", {}), step["run"])
        for job in jobs
        for step in job["steps"]
        if "run" in step
    ]


def expand(word: str, matrix: dict[str, list[str]]) -> list[str]:
    """Return the values of a word that may be a reference to the matrix."""
    reference = re.fullmatch(r"\$\{\{ *matrix\.(\w+) *\}\}", word)
    return matrix[reference[1]] if reference else [word]


def commands(suite: Suite) -> list[str]:
    """Return the commands of a suite's target and of its prerequisites, and the lines of their scripts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    line = [*suite.command, "--dry-run", "--always-make"]
    shown = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    scripts = sorted(set(re.findall(r"tools/[\w/]+\.sh", shown)))
    return [*shown.splitlines(), *(line for name in scripts for line in (ROOT / name).read_text().splitlines())]


def test_pre_commit_runs_the_checks_of_make_lint() -> None:
    hooks = [hook for repo in load(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert {check(hook["entry"].split()) for hook in hooks} == {check(command) for command in recipe("lint")}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("proto/openipu/vipu/agent/v1/agent.proto", True),
        ("tools/contract.py", True),
        ("src/openipu/twin/rack/contract.py", True),
        ("src/openipu/twin/rack/main.py", False),
    ],
)
def test_the_hook_of_the_contracts_runs_on_its_inputs(path: str, expected: bool) -> None:
    hooks = {hook["id"]: hook for repo in load(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]}
    assert bool(re.search(hooks["contracts"]["files"], path)) is expected


def test_only_generated_contracts_are_not_checked() -> None:
    generated = set(contract.CONTRACTS)
    paths = sorted(generated | {"tools/contract.py"})
    shown = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--show-files", *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    linted = {Path(line).relative_to(ROOT).as_posix() for line in shown.stdout.splitlines()}
    checked = {path.relative_to(ROOT).as_posix() for path in prose.files(paths)}
    [excluded, _] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["exclude"]
    typed = {path for path in paths if not re.search(excluded, path)}
    assert linted == checked == typed == {"tools/contract.py"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_existing_targets_and_suites(workflow: Path) -> None:
    targets: set[str] = set()
    suites: set[str] = set()
    for matrix, command in steps(workflow):
        targets.update(re.findall(r"\bmake ([a-z][a-z-]*)", command))
        for arguments in re.findall(r"python -m tools\.suites run(.*)", command):
            words = re.findall(r"\$\{\{.*?\}\}|\S+", arguments)
            suites.update(itertools.chain(*(expand(word, matrix) for word in words if not word.startswith("-"))))
    assert targets
    assert targets <= TARGETS
    assert suites <= SUITES


def test_suites_of_the_schedule_cover_all_that_no_other_workflow_runs() -> None:
    scheduled = set(load(".github/workflows/suites.yml")["jobs"]["suite"]["strategy"]["matrix"]["suite"])
    made = {name for _, command in steps(WORKFLOWS[-1]) for name in re.findall(r"\bmake ([a-z-]+)", command)}
    assert scheduled | made >= SUITES


def test_lock_files_of_a_suite_are_its_inputs() -> None:
    found = {
        suite: {name for line in commands(suite) for name in re.findall(r"requirements/[\w-]+\.txt", line)}
        for suite in declarations.SUITES
    }
    assert {"requirements/dev.txt", "requirements/oldest.txt"} <= set().union(*found.values())
    undeclared = [(suite.name, name) for suite, names in found.items() for name in names if not suite.reads(name)]
    assert undeclared == []


def test_only_the_bootstrap_changes_the_environment_of_all_suites() -> None:
    installs = re.findall(r"\buv pip (?:install|sync) .*", MAKEFILE)
    assert installs
    locked = r"(?:--require-hashes|--no-deps --no-build-isolation --editable \.$)"
    separate = rf"--require-hashes .*--target \$\((?!BIN)|--python \$\((?!BIN)\w+\)/bin/python {locked}"
    assert [line for line in installs if not re.search(separate, line)] == []


def test_the_oldest_set_is_locked_at_the_lowest_allowed_releases() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line.partition("#")[0] for line in (ROOT / "requirements/oldest.in").read_text().splitlines()]
    listed = [*project["dependencies"], *project["optional-dependencies"]["twin"], *filter(None, lines)]
    text = (ROOT / "requirements/oldest.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==([^ ;]+)", text, flags=re.MULTILINE))
    for requirement in map(Requirement, listed):
        [bound] = [each.version for each in requirement.specifier if each.operator == ">="]
        release = locked[canonicalize_name(requirement.name)]
        assert release in SpecifierSet(f"=={bound}.*"), f"{requirement}: {release}. Run: make lock"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("oldest", "--require-hashes -r requirements/oldest.txt --build-constraints requirements/oldest.txt"),
        ("2.20", "ansible-core==2.20.* -r pyproject.toml --extra twin --extra kubernetes -r requirements/oldest.in"),
    ],
)
def test_the_oldest_set_is_installed_from_its_lock_file(tmp_path: Path, release: str, expected: str) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/other_releases.sh", tmp_path / "tools")
    folder, log = tmp_path / ".cache/releases" / release / "bin", tmp_path / "log"
    programs = {folder / "python": f"echo {tmp_path}/site", folder / "ansible": "true", folder / "pytest": "true"}
    for path, line in {**programs, tmp_path / "bin/uv": f'echo "$*" >>{log}'}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    subprocess.run(["sh", "tools/other_releases.sh", release], cwd=tmp_path, env=environment, check=True)
    installs = [line.partition("/bin/python ")[2] for line in log.read_text().splitlines() if "pip" in line]
    assert installs[0] == expected
    assert [line.split()[0] for line in installs[1:]] == ["--no-deps"]


def test_collection_and_package_have_one_version() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert load("galaxy.yml")["version"] == package["project"]["version"]


def test_the_support_matrix_is_tested() -> None:
    matrix = load(".github/workflows/test.yml")["jobs"]["matrix"]["strategy"]["matrix"]
    excluded = {(each["core"], each["python"]) for each in matrix["exclude"]}
    tested = set(itertools.product(matrix["core"], matrix["python"])) - excluded
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Support matrix\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d[^|]*) \| ([^|]*) \|$", section, flags=re.MULTILINE)
    documented = {pair for cores, pythons in rows for pair in itertools.product(cores.split(", "), pythons.split(", "))}
    assert documented == tested


def test_the_archive_of_the_collection_has_no_development_files(tmp_path: Path) -> None:
    command = [
        Path(sys.executable).with_name("ansible-galaxy"),
        "collection",
        "build",
        "--output-path",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        top = {name.partition("/")[0] for name in archive.getnames()}
    assert {"plugins", "roles", "playbooks", "meta", "MANIFEST.json"} <= top
    assert not top & {
        ".ci",
        ".github",
        ".pre-commit-config.yaml",
        "Makefile",
        "pyproject.toml",
        "src",
        "tests",
        "tools",
    }


def test_the_security_page_names_an_attack_for_each_promise() -> None:
    promises = (ROOT / "docs/explanation/security.md").read_text().split("## Promises")[1].split("##")[0]
    _, _, *rows = (line for line in promises.splitlines() if line.startswith("|"))
    named = [re.fullmatch(r"\| [A-Z][a-z ]+ \| .+ \| `(test_\w+\.py)` \|", row) for row in rows]
    assert [row for row, test in zip(rows, named, strict=True) if not test] == []
    assert {test[1] for test in named if test} == {path.name for path in (ROOT / "tests/attack").glob("test_*.py")}


def test_the_page_of_the_reference_design_names_existing_tests() -> None:
    page = (ROOT / "docs/explanation/vpod-design.md").read_text()
    cells = [line.strip("|").split("|") for line in page.splitlines() if re.match(r"\| [34]", line)]
    assert len(cells) > 50
    for *_, implementation, test in cells:
        named = re.fullmatch(r" `([\w/]+\.py)::(test_\w+)` ", test)
        if named is None:  # only the site can provide it
            assert (test.strip(), "site" in implementation) == ("", True)
        else:
            assert f"\ndef {named[2]}(" in (ROOT / "tests" / named[1]).read_text(), test
