# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that all programs share, and arguments and environment variables that are no text."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest
import structlog
from click.testing import CliRunner

from openipu.process.arguments import Command, escaped, is_text

PROGRAMS = {
    "vipu": "openipu.vipu.cli.user:vipu",
    "vipu-admin": "openipu.vipu.cli.admin:vipu_admin",
    "vipu-cli": "openipu.vipu.cli.older:vipu_cli",
    "vipu-server": "openipu.vipu.server.main:main",
    "virm-agent": "openipu.vipu.agent.main:main",
    "twin": "openipu.twin.cli.main:main",
    "rack": "openipu.twin.rack.main:main",  # a process of the twin
    "openipu-pod": "openipu.pod_files.cli.main:main",
    "gc-launcher": "openipu.kubernetes.launcher.main:main",
    "gc-proxy": "openipu.kubernetes.proxy.main:main",
    "ipu-operator": "openipu.kubernetes.operator.main:main",
}
ENCODING = sys.getfilesystemencoding().upper()
REASON = f"it is not {ENCODING} text. Replace the bytes that are no characters."
VARIABLES = [
    ("vipu", "VIPU_CLI_API_HOST", ["list", "partitions"]),
    ("vipu", "VIPU_CLI_API_ACCESS_KEY", ["list", "partitions"]),
    ("vipu", "VIPU_CLI_CONFIG", ["list", "partitions"]),
    ("vipu-admin", "VIPU_CLI_CA_PATH", ["list", "agents"]),
    ("vipu-server", "VIPU_SERVER_HOST", []),
    ("vipu-server", "VIPU_SERVER_BACKUP_CERTS", ["backup", "x"]),
    ("virm-agent", "VIRM_AGENT_HOST", []),
    ("twin", "TWIN_STATE_DIR", ["status"]),
    ("openipu-pod", "TWIN_STATE_DIR", ["rehearse", "."]),
    ("gc-launcher", "IPUJOB_TOOLS", ["--namespace=n", "--name=j", "--workers=w", "--proxy=p"]),
    ("gc-proxy", "GC_PROXY_NAMESPACE", []),
    ("ipu-operator", "IPU_OPERATOR_NAMESPACE", ["--launcher-image=i"]),
]


def load(program: str) -> click.Command:
    module, _, name = PROGRAMS[program].partition(":")
    found: click.Command = getattr(importlib.import_module(module), name)
    return found


def commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from commands(each)


def test_all_programs_are_tested() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert {*project["scripts"]} == PROGRAMS.keys() - {"rack"}


@pytest.mark.parametrize("program", sorted(PROGRAMS.keys() - {"rack"}))
def test_the_version_is_printed(program: str) -> None:
    done = CliRunner().invoke(load(program), ["--version"])
    assert (done.exit_code, done.output) == (0, f"{program} {version('openipu')}\n")


@pytest.mark.parametrize("program", sorted(PROGRAMS.keys() - {"rack"}))
def test_every_command_and_option_has_a_help_text(program: str) -> None:
    missing = []
    for each in commands(load(program)):
        options = [option for option in each.params if isinstance(option, click.Option) and not option.hidden]
        missing += [f"{each.name} {option.name}" for option in options if not option.help]
        if not each.help:
            missing.append(each.name or program)
    assert missing == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_commands_reject_such_values(program: str) -> None:
    assert [each.name for each in commands(load(program)) if not isinstance(each, Command)] == []


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "arguments", [["caf\udce9"], ["list", "caf\udce9"], ["--api-host=caf\udce9"], ["x", "caf\udce9"]]
)
def test_arguments(program: str, arguments: list[str]) -> None:
    done = CliRunner().invoke(load(program), arguments)
    shown = arguments[-1].replace("\udce9", "\\xe9")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: Cannot use the argument '{shown}': {REASON}")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("vipu", ["--api-access-key=s3cr\udce9t", "list", "partitions"]),
        ("vipu", ["--api-access-key", "s3cr\udce9t", "list", "partitions"]),
        ("twin", ["up", "--snmp-community", "s3cr\udce9t"]),
    ],
)
def test_secrets_are_not_in_the_message(program: str, arguments: list[str]) -> None:
    done = CliRunner().invoke(load(program), arguments)
    option = next(each.partition("=")[0] for each in arguments if each.startswith("--"))
    assert done.stderr.splitlines()[-1] == f"Error: Cannot use the value of '{option}': {REASON}"


@pytest.fixture
def log() -> Iterator[None]:
    """Restore the log after programs that configure it."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("program", "variable", "arguments"), VARIABLES)
def test_environment_variables(program: str, variable: str, arguments: list[str]) -> None:
    """The message has no value, which may be a secret."""
    done = CliRunner(env={variable: "caf\udce9"}).invoke(load(program), arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"Error: Cannot use the environment variable '{variable}': {REASON}"


def test_variables_that_an_option_overrides_are_not_used() -> None:
    runner = CliRunner(env={"VIPU_CLI_CONFIG": "caf\udce9"})
    done = runner.invoke(load("vipu"), ["--config=missing.hcl", "list", "partitions"])
    assert (done.exit_code, "'missing.hcl': it does not exist" in done.stderr) == (1, True)
    assert runner.invoke(load("vipu"), ["--help"]).exit_code == 0


@pytest.mark.parametrize(
    "arguments", [["create", "partition"], ["--api-host"], ["list", "partitions", "--api-user-id"]]
)
def test_bytes_on_a_command_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "openipu.vipu.cli.user", *arguments, b"\xff"]
    done = subprocess.run(
        command, capture_output=True, timeout=60, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.splitlines()[-1].startswith(rb"Error: Cannot use the argument '\xff': it is not UTF-8 text.")


def test_characters_that_the_locale_cannot_encode(tmp_path: Path) -> None:
    (tmp_path / "pod→.yml").touch()
    command = [sys.executable, "-m", "openipu.pod_files.cli.main", "validate", "pod→.yml"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stdout.partition(b":")[0]) == (1, rb"pod\u2192.yml")


@pytest.mark.parametrize(
    ("program", "option"),
    [("vipu-server", "--partition-timeout"), ("virm-agent", "--announce-interval")],
)
@pytest.mark.parametrize("value", ["nan", "inf", "1e+10"])
def test_numbers_are_limited(program: str, option: str, value: str) -> None:
    result = CliRunner().invoke(load(program), [option, value])
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': {float(value)} is " in result.output


@pytest.mark.parametrize(
    ("value", "shown"),
    [("plain é", "plain é"), ("\udcff\udcfe", r"\xff\xfe"), ("a\n\x1b", r"a\n\x1b"), ("\ud800", r"\ud800")],
)
def test_escaped(value: str, shown: str) -> None:
    assert (escaped(value), is_text(value)) == (shown, not "\ud800" <= value <= "\udfff")


def test_long_arguments_are_cut() -> None:
    assert escaped("x" * 201) == f"{'x' * 200}…"
