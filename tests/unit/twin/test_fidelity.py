# SPDX-License-Identifier: GPL-3.0-or-later
"""The page `fidelity.md` lists exactly what the tests of foreign clients prove, and all of our commands and methods."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
import yaml

from openipu.shared.vipu.cluster_test.table import FLAGS
from openipu.vipu.cli import cluster_test_output
from openipu.vipu.cli.admin import vipu_admin
from openipu.vipu.domain.model import Operation, ReadyState
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.server.main import main as vipu_server
from tests import ROOT
from tests.peers import test_anta, test_arista_eos, test_napalm

PEERS = ROOT / "tests/peers"
USER_API = ROOT / "proto/vipuuser.proto"
PAGE = (ROOT / "docs/reference/fidelity.md").read_text()
AUTODISCOVERY = {"-a", "--autodiscovery-listen-interfaces"}
ORIGIN = re.compile(r"published|inferred|ours|derived|named after|observed")


def section(heading: str, start: str = "", end: str = "") -> str:
    """Return the text under a heading, from the line with ``start`` until the line with ``end``."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    text = found[1]
    text = text[text.index(start) :] if start else text
    return text[: text.index(end)] if end else text


def code(text: str) -> set[str]:
    """Return all names in code format."""
    return set(re.findall(r"`([^`]+)`", text))


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of all tables, without headers and rules."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def commands() -> Iterator[str]:
    """Yield every command with its noun."""
    context = click.Context(vipu_admin)
    for verb in vipu_admin.list_commands(context):
        group = vipu_admin.get_command(context, verb)
        assert isinstance(group, click.Group)
        yield from (f"{verb} {noun}" for noun in group.list_commands(context))


def test_every_client_test_is_listed() -> None:
    listed = {name for name in code(section("Clients")) if name.startswith("tests/peers/")}
    assert listed == {f"tests/peers/{path.name}" for path in PEERS.glob("test_*.py")}


def test_the_modules_of_arista_eos() -> None:
    used = set(re.findall(r"arista\.eos\.(eos_\w+)", (PEERS / "test_arista_eos.py").read_text()))
    rejected = {name.removeprefix("arista.eos.") for name in test_arista_eos.REJECTED}
    end = "Changes of these modules are rejected"
    assert {name for name in code(section("arista.eos", end=end)) if name.startswith("eos_")} == used - rejected
    assert code(section("arista.eos", start=end, end="These modules can read")) == rejected


def test_the_methods_of_napalm() -> None:
    assert code(section("NAPALM", start="* `get_facts`", end="`get_arp_table` is always")) == {
        *test_napalm.GETTERS,
        "get_config",
        "cli",
    }
    assert code(section("NAPALM", start="Rejected:", end="The driver for EOS")) == {
        name for name, _arguments in test_napalm.REJECTED
    }


def test_the_tests_of_anta() -> None:
    catalog = yaml.safe_load(test_anta.CATALOG.read_text())
    passing = rows(section("ANTA", end="These tests fail"))
    assert {cells[0]: code(cells[1]) for cells in passing if cells[0] != "Module"} == {
        module.rpartition(".")[2]: set(test_anta.names({module: tests})) for module, tests in catalog.items()
    }
    other = rows(section("ANTA", start="These tests fail", end="All other tests"))
    assert set().union(*(code(cells[0]) for cells in other)) == set(test_anta.names(test_anta.OTHER))
    rejected = set(test_anta.names(test_anta.REJECTED))
    assert code(section("ANTA", start="* `VerifyTransceiversTemperature`")) == rejected


def test_every_command_has_an_origin() -> None:
    listed = {name for cells in rows(section("Command lines")) for name in code(cells[0])}
    nouns = {name for name in listed if re.fullmatch(r"[a-z][a-z-]* [a-z-]+", name)}
    assert nouns == set(commands())


def test_the_last_lines_of_failed_cluster_tests() -> None:
    tests = {flag: name for name, flag in FLAGS.items()}
    found: dict[str, int] = {}
    for selected, _, last in rows(section("Output of cluster tests", end="| Part of the guide")):
        for flag in code(selected) & set(tests):
            run = {"requested": [tests[flag]], "ok": "passed" in selected, "results": [], "cluster": "ID"}
            subject = cluster_test_output.layout(run).failed_subject
            assert code(last) == ({f"{subject}: failed: …"} if subject else set()), selected
            found[flag] = found.get(flag, 0) + 1
    assert found == dict.fromkeys(tests, 1) | {"--traffic": 2}


def test_every_method_of_the_user_api_has_an_origin() -> None:
    methods = set(re.findall(r"rpc (\w+)\(", USER_API.read_text()))
    assert len(methods) == 8
    listed = {name for cells in rows(section("API", end="| Other parts")) for name in code(cells[0])}
    assert listed == methods


def test_every_state_has_an_origin() -> None:
    states = {state.name for state in (*ReadyState, *Operation)} | {state.name.capitalize() for state in AgentState}
    assert {name for cells in rows(section("States")) for name in code(cells[0])} == states


def test_the_published_options_of_the_controller() -> None:
    listed = code(next(rows(section("Options of the controller", start="| `--init`")))[0])
    assert listed == {"--init", "--secure", "--tls-init", "--default-user-id", *AUTODISCOVERY}
    assert listed <= {name for option in vipu_server.params for name in option.opts}


@pytest.mark.parametrize("heading", ["Command lines", "Options of the controller", "API", "States", "Rules"])
def test_every_row_names_its_origin(heading: str) -> None:
    heads = {"Command", "Options of `vipu-server`", "Behaviour of `vipu-server`", "Method", "State", "Rule"}
    found = [cells for cells in rows(section(heading)) if cells[0] not in heads]
    assert len(found) >= 6
    for cells in found:
        if not cells[0].startswith("Other parts"):
            assert all(ORIGIN.search(cell) for cell in cells[1:2]), cells
            assert len(cells) == 2 or ORIGIN.search(cells[2]) or "names of attributes" in cells[2], cells
    assert not re.search(r"published(?! \(| states)", section(heading).replace("published parts", "")), heading
