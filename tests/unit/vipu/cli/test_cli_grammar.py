# SPDX-License-Identifier: GPL-3.0-or-later
"""Grammar of the commands: verbs, nouns, flags, help, and errors before any call."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from openipu.vipu.cli.admin import vipu_admin
from openipu.vipu.cli.grammar import Verb
from openipu.vipu.cli.user import vipu

USER = {
    "create": ["partition"],
    "get": ["allocation", "partition"],
    "list": ["allocations", "ipu-attrs", "partitions"],
    "remove": ["partition"],
    "reset": ["partition"],
    "watch": ["allocations", "partitions"],
}
ADMIN = {
    "create": ["agent", "allocation", "certificate", "cluster", "partition", "user"],
    "discover": ["agent"],
    "drain": ["agent"],
    "get": ["agent", "allocation", "cluster", "partition"],
    "list": ["agents", "allocations", "certificates", "clusters", "ipu-attrs", "partitions", "quarantine", "users"],
    "remove": ["agent", "allocation", "certificate", "cluster", "partition", "user"],
    "reset": ["partition"],
    "release": ["quarantine"],
    "take-over": ["agent"],
    "test": ["cluster"],
    "update": ["agent"],
    "watch": ["agents", "all", "allocations", "clusters", "partitions", "users"],
}


def run(*arguments: str, program: click.Group = vipu_admin) -> tuple[int, str]:
    done = CliRunner().invoke(program, arguments, prog_name=program.name)
    return done.exit_code, done.output


def leaves(program: click.Group) -> Iterator[tuple[str, str, click.Command]]:
    for verb, group in program.commands.items():
        assert isinstance(group, Verb)
        for noun, leaf in group.commands.items():
            yield verb, noun, leaf


@pytest.mark.parametrize(("program", "expected"), [(vipu, USER), (vipu_admin, ADMIN)])
def test_verbs_and_nouns(program: click.Group, expected: dict[str, list[str]]) -> None:
    assert {verb: sorted(group.commands) for verb, group in program.commands.items()} == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize("program", [vipu, vipu_admin])
def test_help_on_every_level(program: click.Group) -> None:
    levels: list[tuple[str, ...]] = [(), *((verb,) for verb in program.commands)]
    levels += [(verb, noun) for verb, noun, _ in leaves(program)]
    for level in levels:
        status, text = run(*level, "--help", program=program)
        assert status == 0 and text.startswith(f"Usage: {' '.join([str(program.name), *level])} "), level
        assert run(*level, "-h", program=program) == (status, text)


def test_every_command_and_flag_is_explained() -> None:
    for verb, noun, leaf in leaves(vipu_admin):
        assert leaf.help, f"{verb} {noun}"
        for parameter in leaf.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{verb} {noun} {parameter.name}"


@pytest.mark.parametrize("noun", ["agent", "agents", "ipu-attr", "ipu-attrs", "allocation", "allocations"])
def test_nouns_in_singular_and_plural(noun: str) -> None:
    status, text = run("list", noun, "--help")
    assert status == 0 and noun in text.splitlines()[0]


@pytest.mark.parametrize("noun", ["agentss", "s", "", "agen"])
def test_unknown_nouns(noun: str) -> None:
    assert run("list", noun)[0] == 2


def test_no_arguments_show_the_help_and_fail() -> None:
    status, text = run()
    assert status == 2 and "Commands:" in text


@pytest.mark.parametrize("id", ["../etc", "a/b", "-rf", ".hidden", "a b", "", "é", "a\n", "x" * 64, "a;b", "$(a)"])
@pytest.mark.parametrize("command", ["create partition --size 1", "remove partition", "get agent", "create user"])
def test_invalid_ids_are_rejected_before_any_call(command: str, id: str) -> None:
    status, text = run(*command.split(), "--", id)
    assert status == 2 and "the id of a" in text


@pytest.mark.parametrize("id", ["2xPOD64", "c64_1-16", "ag.13.01", "10.1.2.10-8080", "_a", "x" * 63])
def test_valid_ids(id: str) -> None:
    # No server listens on port 1: a valid id fails there only.
    status, text = run("--api-host", "127.0.0.1", "--api-port", "1", "get", "agent", id)
    assert status == 1 and text.startswith(f"get agent ({id}): failed: the V-IPU controller at 127.0.0.1:1 ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("create partition p", "Missing option '--size'"),
        ("create partition p --size 0", "'--size'"),
        ("create partition p --size x --allocation a", "'x' is not a valid number"),
        (
            "create partition p --size 4 --routing up",
            "Cannot use IPU-Link routing 'up': it is unknown. Choose from dnc, swnc",
        ),
        ("create partition p --size 4 --sync-type x", "Choose from c2-compatible"),
        ("create agent a", "Missing option '--host'"),
        ("create agent a --host h --port 70000", "'--port'"),
        ("create cluster c", "Missing option '--agents'"),
        ("create cluster c --agents a,,b", "'--agents'"),
        ("create allocation a --cluster c", "Give --size or --agents"),
        ("create allocation a --cluster c --size 1 --agents a", "Give --size or --agents"),
        ("list agents -o xml", "'xml' is not one of 'text', 'json'"),
        ("--api-port 0 list agents", "'--api-port'"),
        ("test cluster", "Name the cluster to test."),
        ("test cluster cl0 --start --stop", "Choose one of --start, --status and --stop."),
        ("test cluster --status --cabling", "--status and --stop refer to the last test"),
    ],
)
def test_usage_errors(line: str, message: str) -> None:
    status, text = run(*line.split())
    assert status == 2 and message in text


@pytest.mark.parametrize(
    "flags",
    [
        "--num-gcds 2 --gcd-sync-replicas 16 --routing ringswnc --sync-type pod-native",
        "--gcds=2 --total-num-replicas=16 --routing ring-swnc --sync-type pod-native-default",
    ],
)
def test_names_that_public_scripts_use(flags: str) -> None:
    (create,) = (leaf for verb, noun, leaf in leaves(vipu) if (verb, noun) == ("create", "partition"))
    fields = create.make_context("create partition", ["gcl128", "--size", "128", *flags.split()]).params
    assert [fields[name] for name in ("num_gcds", "num_replicas", "routing", "sync_type")] == [
        *(2, 16, "ringswnc", "pod-native")
    ]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("list agents", "vipu-admin list agents"),
        ("test cluster cl0", "vipu-admin test"),
        ("create user u", "vipu-admin create user"),
        ("drain agent ag1", "vipu-admin drain"),
        ("update agent ag1", "vipu-admin update"),
    ],
)
def test_the_error_names_the_other_program(line: str, instead: str) -> None:
    status, text = run(*line.split(), program=vipu)
    assert status == 2 and f"it is {instead}." in text
    for words in ("list frobs", "agents", "list test"):  # the other program does not have these, either
        assert "vipu-admin" not in run(*words.split(), program=vipu)[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("craete partition p", "No such command 'craete'. Did you mean 'create'?"),
        ("list partion", "No such command 'partion'. Did you mean 'partitions'?"),
        ("delete partition p", "No such command 'delete'. Did you mean 'remove'?"),
        ("show partition p", "No such command 'show'. Did you mean 'get'?"),
        ("ls partitions", "No such command 'ls'. Did you mean 'list'?"),
        ("get partitionz p", "No such command 'partitionz'. Did you mean 'partition'?"),
    ],
)
def test_mistyped_words_have_a_suggestion(line: str, message: str) -> None:
    status, text = run(*line.split(), program=vipu)
    assert status == 2 and message in text
    assert "Did you mean" not in run("frobnicate", "partition", program=vipu)[1]


def test_the_access_key_is_in_no_output() -> None:
    # No server listens on port 1.
    for arguments in (
        ["--help"],
        ["list", "agents", "--frob"],
        ["--api-port", "1", "-H", "127.0.0.1", "list", "agents"],
    ):
        assert "s3cret" not in run("--api-access-key", "s3cret", *arguments)[1]


def test_help_does_not_load_libraries() -> None:
    code = """
import sys
from openipu.vipu.cli.admin import vipu_admin
vipu_admin(["create", "partition", "--help"], standalone_mode=False)
print(sorted({"grpc", "google.protobuf", "hcl2", "tabulate", "json.decoder"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(r"^\[('json.decoder')?\]$", done.stdout, re.MULTILINE), done.stdout.splitlines()[-1]
