# SPDX-License-Identifier: GPL-3.0-or-later
"""Output forms, and their parsing by the collection."""

from __future__ import annotations

import string

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from openipu.shared.vipu import contract
from openipu.shared.vipu.client import VipuError
from openipu.shared.vipu.transport import cli_output
from openipu.vipu.cli import agents, grammar, listing, output, partitions
from openipu.vipu.cli.admin import vipu_admin
from openipu.vipu.cli.session import Session
from openipu.vipu.cli.user import vipu

PARTITION = {
    "id": "p1",
    "allocation": "a1",
    "cluster": "cl0",
    "size": 2,
    "num_gcds": 2,
    "num_replicas": 4,
    "num_segments": 1,
    "routing": "ringswnc",
    "gw_routing": None,
    "sync_type": "c2-compatible",
    "reconfigurable": True,
    "ipus": [
        {"ild": 0, "topology_id": 3, "ild_routing_id": 0, "routing_id": 0},
        {"ild": 1, "topology_id": 3, "ild_routing_id": 1, "routing_id": 0},
    ],
    "state": "ACTIVE",
}
STATUS = {
    "id": "p1",
    "state": "ERROR",
    "operation": "FAILED",
    "errors": ["Agent 'ag01' is Down.", "IPU 3 failed."],
    "max_retries": 3,
    "retries": 1,
    "last_auto_reset": None,
}


def test_a_table_has_rules_and_no_padding() -> None:
    text = output.table(("Allocation ID", "Agents"), [("alloc-1", "ag0 ag1 ag2 ag3"), ("a2", "")])
    assert text.splitlines() == [
        "---------------------------------",
        " Allocation ID | Agents",
        "---------------------------------",
        " alloc-1       | ag0 ag1 ag2 ag3",
        " a2            |",
        "---------------------------------",
    ]


def test_a_table_without_a_rule_before_it() -> None:
    ruled = output.table(("A", "B"), [("x", "y")])
    assert output.table(("A", "B"), [("x", "y")], ruled=False).splitlines() == ruled.splitlines()[1:]


def test_a_table_without_a_rule_after_it() -> None:
    ruled = output.table(("A", "B"), [("x", "y")]).splitlines()
    assert output.table(("A", "B"), [("x", "y")], closed=False).splitlines() == ruled[:-1]


def test_discovered_agents_in_the_form_of_the_guide() -> None:
    """Graphcore's guide prints this block. Its addresses and ids are not public, and it lacks the first space."""
    found = [
        {"host": host, "port": port, "interface": "eno3", "age": age, "auto_add_id": f"{host}-{port}", "conflict": None}
        for host, port, age in (("10.1.101.18", 8081, 2.154768458), ("10.1.101.9", 8080, 4.741639744))
    ]
    assert agents.discovered(found).splitlines() == [
        " Host        | Port | Network Interface | Time Since Last Seen | Agent Auto-Add ID",
        "-----------------------------------------------------------------------------------",
        " 10.1.101.18 | 8081 | eno3              | 2.154768458s         | 10.1.101.18-8081",
        " 10.1.101.9  | 8080 | eno3              | 4.741639744s         | 10.1.101.9-8080",
    ]
    assert len(agents.discovered([]).splitlines()) == 2


def test_an_empty_table_has_a_header() -> None:
    assert output.table(("User", "Role"), []).splitlines() == [
        "-------------",
        " User | Role",
        "-------------",
        "-------------",
    ]


def test_a_cell_of_several_lines_continues_under_blank_cells() -> None:
    text = output.table(("A", "B", "C"), [("x", ["one", "two"], 7), ("y", "three\nfour", "")])
    assert text.splitlines()[3:7] == [" x | one   | 7", "   | two   |", " y | three |", "   | four  |"]


def test_cells_are_printed_as_they_are() -> None:
    rows = [("007", "1e3"), ("1.50", "0x1F"), ("", "-1")]
    text = output.table(("A", "B"), rows)
    assert [[cell.strip() for cell in line.split("|")] for line in text.splitlines()[3:-1]] == [*map(list, rows)]


def test_terminal_control_characters_are_escaped() -> None:
    assert output.block([("Host", "a\x1b[2Jb\r\u202ec")]).splitlines()[1] == " Host | a\\x1b[2Jb\\r\\u202ec"


def test_result_lines() -> None:
    assert output.success(output.subject("create", "agent", "ag1")) == "create agent (ag1): success."
    assert output.failure("create agent (ag1)", "it is\nthere.") == "create agent (ag1): failed: it is there."
    assert output.failure("get agent (a)", "it is not there. Did you mean 'b'?").endswith("Did you mean 'b'?")
    assert output.subject("list", "agents", None) == "list (agents)"


@pytest.mark.parametrize("id", ["ag1", None])
def test_the_collection_reads_the_result_line(id: str | None) -> None:
    line = output.failure(output.subject("list", "ipu-attrs", id), "no response (rejected): try: again.")
    assert cli_output.result(line) == cli_output.Result("list", id or "ipu-attrs", "no response (rejected): try: again")
    done = output.success(output.subject("remove", "agent", id))
    assert cli_output.result(done) == cli_output.Result("remove", id or "agent", None)


WORD = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=12).filter(
    lambda word: any(map(str.isalnum, word))
)


@given(st.lists(WORD.map(str.title), min_size=2, max_size=5, unique_by=str.lower), st.data())
def test_the_collection_reads_every_table(header: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(WORD, min_size=len(header), max_size=len(header)), max_size=5))
    read = cli_output.table(output.table(header, rows), header[0].lower())
    assert [list(row.values()) for row in read] == rows
    assert all(list(row) == [name.lower() for name in header] for row in read)


def test_a_partition_in_the_list() -> None:
    row = cli_output.table(output.table(partitions.LIST_HEADER, [partitions.list_row(PARTITION)]), "partition")[0]
    assert row == {
        "allocation": "a1",
        "cluster": "cl0",
        "partition": "p1",
        "ilds": "2",
        "gw routing": "UNDEFINED",
        "ild routing": "RINGSWNC",
        "size": "2",
        "gcds": "2",
        "state": "ACTIVE",
    }


def test_a_partition_without_allocation_has_no_blank_first_cell() -> None:
    other = {**PARTITION, "id": "p2", "allocation": ""}
    rows = [partitions.list_row(PARTITION), partitions.list_row(other)]
    read = cli_output.table(output.table(partitions.LIST_HEADER, rows), "partition")
    assert [row["partition"] for row in read] == ["p1", "p2"]


def test_a_partition_in_full() -> None:
    text = partitions.full(PARTITION, STATUS)
    for line in (" State             | ERROR", " Auto Resets       | 1 of 3", " Last Auto Reset   | never"):
        assert f"\n{line}\n" in text
    assert " Errors            | Agent 'ag01' is Down.\n                   | IPU 3 failed.\n" in text
    assert text.splitlines()[-3:-1] == [" 0       | 0  | 0   | 3", " 1       | 0  | 1   | 3"]


def test_an_agent_that_is_down_has_a_reason_and_no_ipus() -> None:
    item = {"id": "ag1", "host": "h", "port": 8080, "state": "Down", "reason": "no response", "facts": {}, "ipus": []}
    item |= {"in_service": False, "service_reason": "fan"}
    facts = {"agent id": "ag1", "host": "h", "port": "8080", "status": "Down", "reason": "no response"}
    facts |= {"service": "Out of service", "service reason": "fan"}
    lines = agents.full(item).splitlines()[1:-1]
    assert {name.strip().lower(): value.strip() for name, value in (line.split("|") for line in lines)} == facts


def test_attributes_name_an_agent_and_an_ipu_once() -> None:
    found = [
        {"agent": "ag1", "ipu": 0, "attributes": {"a": "1", "b": "2"}},
        {"agent": "ag1", "ipu": 1, "attributes": {"a": "3"}},
        {"agent": "ag2", "ipu": 0, "attributes": {"a": "4"}},
    ]
    text = output.table(("Agent", "IPU", "Attribute", "Value"), agents.attribute_rows(found))
    assert cli_output.ipu_attributes(text) == {"ag1": {0: {"a": "1", "b": "2"}, 1: {"a": "3"}}, "ag2": {0: {"a": "4"}}}
    assert [[cell.strip() for cell in line.split("|")] for line in text.splitlines()[3:-1]] == [
        ["ag1", "0", "a", "1"],
        ["", "", "b", "2"],
        ["", "1", "a", "3"],
        ["ag2", "0", "a", "4"],
    ]


@pytest.mark.parametrize(
    ("count", "arguments", "end"),
    [
        (20, (), ", p19."),
        (22, (), ", p19 and 2 more."),
        (0, (), "partition 'none' does not exist."),
        (2, ("-o", "json"), "partition 'none' does not exist."),
    ],
)
@pytest.mark.parametrize("stop", ["", "."])
def test_a_hint_has_at_most_twenty_ids(
    monkeypatch: pytest.MonkeyPatch, count: int, arguments: tuple[str, ...], end: str, stop: str
) -> None:
    def call(*_request: object) -> None:
        raise VipuError(f"partition 'none' does not exist{stop}", "NOT_FOUND")

    monkeypatch.setattr(Session, "call", call)
    monkeypatch.setattr(grammar, "_is_terminal", lambda: True)
    monkeypatch.setattr(listing, "ids", lambda *_: [f"p{number}" for number in range(count)])
    line = CliRunner().invoke(vipu, ["get", "partition", "none", *arguments]).stderr
    assert line.startswith("get partition (none): failed: partition 'none' does not exist.")
    assert line.endswith(f"{end}\n")


@pytest.mark.parametrize(("count", "end"), [(5000, "Did you mean 'p17'?"), (5001, "and 4981 more.")])
def test_many_ids_are_not_compared(monkeypatch: pytest.MonkeyPatch, count: int, end: str) -> None:
    def call(*_request: object) -> None:
        raise VipuError("partition 'p17x' does not exist.", "NOT_FOUND")

    monkeypatch.setattr(Session, "call", call)
    monkeypatch.setattr(grammar, "_is_terminal", lambda: True)
    monkeypatch.setattr(listing, "ids", lambda *_: [f"p{number}" for number in range(count)])
    assert CliRunner().invoke(vipu, ["get", "partition", "p17x"]).stderr.endswith(f"{end}\n")


@pytest.mark.parametrize("fails", [True, False])
def test_a_hint_needs_one_list_at_most(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    lists = []

    def call(_session: Session, _service: str, method: str, _request: object, timeout: float = 0) -> object:
        if not method.startswith("List"):
            raise VipuError("cluster 'c' does not exist.", "NOT_FOUND")
        lists.append((method, timeout))
        if fails:
            raise VipuError("the controller does not respond", "DEADLINE_EXCEEDED")
        return getattr(contract.admin, f"{method}Reply")()

    monkeypatch.setattr(Session, "call", call)
    monkeypatch.setattr(grammar, "_is_terminal", lambda: True)
    line = CliRunner().invoke(vipu_admin, ["create", "allocation", "a", "--cluster", "c", "--agents", "ag1"]).stderr
    assert line == "create allocation (a): failed: cluster 'c' does not exist.\n"
    assert lists == [("ListClusters", grammar.LIST_SECONDS)]
