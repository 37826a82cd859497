# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection of suites, conditions of a passed run, and the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import ROOT
from tests.waiting import until
from tools.suites import __main__ as program
from tools.suites import runner, trace
from tools.suites.declarations import SUITES, Suite, select_by_name
from tools.suites.fingerprint import RECORD, fingerprint
from tools.suites.record import PassedRun, load, save, sort_by_last_pass
from tools.suites.runner import Outcome, State, execute, install, run


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean checkout with a Makefile whose target ``check`` reads ``input`` and runs one pytest session."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "Makefile").write_text(f"check:\n\t@cat input >/dev/null\n\t@{GOOD}\n\t@$(EXTRA)\n")
    (root / "input").write_text("one")
    (root / "other").write_text("one")
    (root / "tests").mkdir()
    (root / ".gitignore").write_text(".cache/\n")
    git(root, "init", "--quiet")
    commit(root)
    return root


def reported(session: str) -> str:
    """Return a command of make that reports a session of pytest, as the plugin does."""
    return f"echo '{session}' >> $$SUITE_REPORT"


PASSED = '{"passed": 1, "failed": 0, "skipped": [], "deselected": 0, "filter": ""}'
GOOD = reported(PASSED)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments], cwd=root, check=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "test")


def suite(extra: str = "true", **options: object) -> Suite:
    arguments = {"inputs": ("Makefile", "input"), "seconds": 1, "variables": (f"EXTRA={extra}",), **options}
    return Suite("check", "a suite of the test", **arguments)  # type: ignore[arg-type]


def test_a_run_that_passes_is_recorded(root: Path) -> None:
    outcome = execute(suite(reported('{"passed": 2, "failed": 0, "skipped": [], "deselected": 0, "filter": ""}')), root)
    assert (outcome.state, outcome.passed, outcome.reason) == (State.PASSED, 3, "")
    entry = load(root)["check"]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert (entry.passed, entry.skipped, entry.commit) == (3, 0, head.strip())


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ("false", "it ended with status 2"),
        ("cat other >/dev/null", "undeclared input: other"),
        ("echo two > input", "its inputs changed while it ran"),
        (
            reported(PASSED.replace("[]", '["no root"]')),
            "unexpected skip: no root",
        ),
        (
            reported(PASSED.replace('"filter": ""', '"filter": "fast"')),
            "filtered: fast",
        ),
    ],
)
def test_a_run_that_does_not_prove_anything_fails(root: Path, extra: str, reason: str) -> None:
    outcome = execute(suite(extra), root)
    assert outcome.state is State.FAILED
    assert reason in outcome.reason
    assert not (root / RECORD).exists()


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (PASSED.replace('"failed": 0', '"failed": 2'), "2 tests failed"),
        (PASSED.replace('"deselected": 0', '"deselected": 4'), "4 tests were deselected"),
    ],
)
def test_a_session_with_failed_or_deselected_tests_fails(root: Path, session: str, reason: str) -> None:
    outcome = execute(suite(reported(session)), root)
    assert (outcome.state, outcome.reason) == (State.FAILED, reason)


def test_files_that_a_suite_excludes_are_no_inputs(root: Path) -> None:
    whole = suite("cat other >/dev/null", inputs=("*",))
    part = suite("cat other >/dev/null", inputs=("*",), excluded=("other",))
    before = fingerprint(whole, root), fingerprint(part, root)
    assert execute(part, root).state is State.PASSED
    (root / "other").write_text("two")
    assert fingerprint(whole, root) != before[0]
    assert fingerprint(part, root) == before[1]


def test_a_run_without_a_passed_test_fails(root: Path) -> None:
    (root / "Makefile").write_text("check:\n\t@cat input >/dev/null\n")
    commit(root)
    assert execute(suite(), root).reason == "no session of pytest reported a passed test"
    assert execute(suite(sessions=False), root).state is State.PASSED


def test_flags_of_the_calling_make_do_not_hide_failures(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "i")
    assert execute(suite("false"), root).state is State.FAILED


def test_a_commit_during_the_run_is_no_proof(root: Path) -> None:
    identity = "-c user.name=t -c user.email=t@localhost"
    line = f"git update-ref HEAD $$(git {identity} commit-tree -m other HEAD^{{tree}} -p HEAD)"  # reads no file
    assert execute(suite(line), root).reason == "another commit was checked out while it ran"


def test_services_of_earlier_runs_are_stopped_first(root: Path) -> None:
    with (root / "Makefile").open("a") as makefile:
        makefile.write("clear:\n\t@rm .cache/left\n")  # fails when the file does not exist
    commit(root)
    cleared = suite("test ! -e .cache/left", before="clear")
    assert fingerprint(cleared, root) != fingerprint(suite("test ! -e .cache/left"), root)
    (root / ".cache").mkdir()
    (root / ".cache" / "left").touch()
    assert execute(suite("test ! -e .cache/left"), root).state is State.FAILED
    assert execute(cleared, root).state is State.PASSED


def test_a_suite_does_not_run_when_services_of_earlier_runs_remain(root: Path) -> None:
    with (root / "Makefile").open("a") as makefile:
        makefile.write("clear:\n\t@exit 1\nslow:\n\t@sleep 30\n")
    commit(root)
    outcome = execute(suite("touch .cache/ran", before="clear"), root)
    assert outcome.state is State.FAILED
    assert outcome.reason.startswith("make clear ended with status 2")
    assert execute(suite("touch .cache/ran", before="slow"), root, seconds=0.2).reason == "the budget ended"
    assert not (root / ".cache" / "ran").exists()
    assert not (root / RECORD).exists()


def test_the_cloud_is_started_by_the_run() -> None:
    [openstack] = select_by_name(["test-openstack"])
    assert [command[-1] for command in openstack.commands] == ["openstack-down", "test-openstack"]


def test_processes_of_a_suite_end_with_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt, *others = runner.STOP_SIGNALS
    monkeypatch.setattr(runner, "STOP_SIGNALS", ((interrupt[0], 0.2), *others))  # a job in background ignores it
    outcome = execute(suite("(sleep 300 & echo $$! > .cache/pid)"), root)
    assert outcome.state is State.PASSED
    pid = int((root / ".cache" / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def test_processes_of_a_suite_end_when_the_command_is_terminated(root: Path) -> None:
    pid = root / ".cache/pid"
    extra = "mkdir -p .cache; echo $$$$ > .cache/new; mv .cache/new .cache/pid; sleep 300"
    code = f"""
import runpy, sys
from pathlib import Path
from tools.suites import declarations, runner
from tools.suites.suite import Suite
found = Suite("check", "a suite", inputs=("Makefile",), seconds=1, variables=({f"EXTRA={extra}"!r},))
declarations.select_by_name = lambda names: [found]
run = runner.run
runner.run = lambda suites, root, **options: run(suites, Path({str(root)!r}), **options)
sys.argv[1:] = ["run"]
runpy.run_module("tools.suites", run_name="__main__", alter_sys=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as command:
        until(pid.exists, 60)
        command.terminate()
        assert command.wait(60) == 1
    state = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not state.exists() or " Z " in state.read_text()


def test_declared_skips_and_filters_pass(root: Path) -> None:
    line = reported('{"passed": 1, "failed": 0, "skipped": ["no root here"], "deselected": 3, "filter": "x"}')
    declared = suite(line, skips=("no root",), variables=(f"EXTRA={line}", "ROLE=x"))
    assert execute(declared, root).state is State.PASSED
    assert load(root)["check"].skipped == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_session_is_reported_once(tmp_path: Path, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tools.suites import report\n\npytest_terminal_summary = report.pytest_terminal_summary\n"
    )
    (tmp_path / "test_it.py").write_text("def test_one(): pass\n\n\ndef test_two(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers), "--rootdir", tmp_path]
    file = tmp_path / "report.jsonl"
    environment = {**os.environ, "SUITE_REPORT": str(file), "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, tmp_path], cwd=tmp_path, env=environment, check=True, timeout=100, capture_output=True)
    [session] = map(json.loads, file.read_text().splitlines())
    assert session == {"passed": 2, "failed": 0, "skipped": [], "deselected": 0, "filter": ""}


def test_a_run_with_uncommitted_changes_is_not_recorded(root: Path) -> None:
    (root / "other").write_text("two")
    outcome = execute(suite(), root)
    assert (outcome.state, outcome.reason) == (State.PASSED, "not recorded: uncommitted changes")
    assert not (root / RECORD).exists()


def test_a_filter_of_the_caller_is_rejected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k fast")
    assert execute(suite(), root).state is State.UNVERIFIED


def test_ci_reports_suites_that_emulate_a_machine_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def execute(suite: Suite, *_: object) -> Outcome:
        started.append(suite.name)
        return Outcome(suite.name, State.PASSED)

    monkeypatch.setattr(runner, "execute", execute)
    (line,) = (line for line in (ROOT / ".ci/run").read_text().splitlines() if "tools.suites run" in line)
    options = {word for word in line.split() if word.startswith("--")} - {"--budget", "--install", "--changed"}
    result = CliRunner().invoke(program.main, ["run", *options])
    emulated = {suite.name for suite in SUITES if "qemu-system-x86" in suite.packages} | {"test-poplar-server"}
    rows = [row for row in result.stdout.splitlines() if "it emulates a machine, so it runs by hand" in row]
    assert {row.split()[0] for row in rows} == emulated
    assert emulated.isdisjoint(started)


def test_only_suites_with_changed_inputs_run(root: Path) -> None:
    shown: list[Outcome] = []
    for state in (State.PASSED, State.PROVED):
        run([suite()], root, changed=True, budget=None, show=shown.append)
        assert shown[-1].state is state
    (root / "other").write_text("two")
    run([suite()], root, changed=True, budget=None, show=shown.append)
    assert shown[-1].state is State.PROVED
    (root / "input").write_text("two")
    commit(root)
    run([suite()], root, changed=True, budget=None, show=shown.append)
    assert shown[-1].state is State.PASSED


def test_suites_beyond_the_budget_are_not_verified(root: Path) -> None:
    outcome = run([suite(seconds=100)], root, changed=True, budget=60, show=lambda _: None)[0]
    assert (outcome.state, outcome.seconds) == (State.UNVERIFIED, 0)
    assert execute(suite("sleep 30"), root, seconds=0.2).reason == "the budget ended"


@pytest.mark.parametrize(
    ("state", "options", "status"),
    [
        (State.PASSED, [], 0),
        (State.PROVED, ["--changed"], 0),
        (State.FAILED, [], 1),
        (State.UNVERIFIED, [], 1),
        (State.FAILED, ["--budget", "9"], 1),
        (State.UNVERIFIED, ["--budget", "9"], 0),
    ],
)
def test_only_a_budget_allows_suites_without_proof(
    state: State, options: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [Outcome("test", State.PASSED), Outcome("test-peers", state)]
    monkeypatch.setattr(program, "run", lambda *_, **__: outcomes)
    assert CliRunner().invoke(program.main, ["run", *options]).exit_code == status


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'E: no such mirror' >&2; exit 100", "apt-get update: E: no such mirror"),
        ("exit 100", "apt-get update: status 100"),
        ('[ "$1" = update ] || { echo E: gone >&2; exit 100; }', "apt-get install: E: gone"),
        ("", "apt-get does not exist on this machine"),
    ],
)
def test_suites_without_their_packages_are_not_verified(
    script: str, reason: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    if script:
        (folder / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "apt-get").chmod(0o755)
    needs = suite(packages=("openipu-no-such-package",))
    monkeypatch.setattr(runner.os, "geteuid", lambda: 0)
    with monkeypatch.context() as context:
        context.setenv("PATH", str(folder))
        error = install([needs])
    outcomes = run([needs, suite()], root, changed=False, budget=None, show=lambda _: None, install_error=error)
    assert [each.state for each in outcomes] == [State.UNVERIFIED, State.PASSED]
    assert outcomes[0].reason == f"packages cannot be installed: {reason}"


def test_suites_are_sorted_by_their_last_pass(root: Path) -> None:
    def entry(date: str) -> PassedRun:
        return PassedRun("", date, "", 1, 1, 0)

    names = ["new", "old", "never"]
    suites = [Suite(name, "", ("*",), 1) for name in names]
    record = {"new": entry("2026-02-01T00:00:00+00:00"), "old": entry("2026-01-01T00:00:00+00:00")}
    assert [each.name for each in sort_by_last_pass(suites, record)] == ["never", "old", "new"]


def test_the_record_does_not_change_the_fingerprint(root: Path) -> None:
    all_files = suite(inputs=("*",))
    before = fingerprint(all_files, root)
    save(root, "check", PassedRun("", "2026-01-01", "", 1, 1, 0))
    git(root, "add", "--all")
    assert fingerprint(all_files, root) == before
    assert fingerprint(suite(inputs=("*",), variables=("EXTRA=false",)), root) != before


def test_reads_are_traced(tmp_path: Path) -> None:
    (tmp_path / "read").write_text("x")
    (tmp_path / "unread").write_text("x")
    trace.start(tmp_path, ["read", "unread"])
    (tmp_path / "read").read_text()
    (tmp_path / "unread").stat()
    assert trace.files_read(tmp_path, ["read", "unread"]) == ["read"]
    assert trace.records_reads(tmp_path)


def test_every_suite_has_inputs_and_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for each in SUITES:
        for target in filter(None, (each.name, each.before)):
            assert f"\n{target}:" in makefile, each.name
        for pattern in each.inputs:
            probe = Suite("probe", "", (pattern,), 1)
            assert any(probe.reads(path) for path in listed.splitlines()), f"{each.name}: {pattern} matches no file"


def test_an_unknown_suite_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"^Cannot run suite 'tset': it does not exist\. Choose from test, "):
        select_by_name(["tset"])
