# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the parsers of command line output, with the formats that Graphcore documents."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport import cli_output
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.cli_output import Result
from hypothesis import assume, given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create agent (ag1): success.", Result("create", "ag1", None)),
        ("create user (alice): success. Access key is 'Ab3dE6gH9kL'.", Result("create", "alice", None)),
        ("create partition (p1): failed: no free IPUs.", Result("create", "p1", "no free IPUs")),
        ("remove cluster (c.1-x): failed: it is in use\n", Result("remove", "c.1-x", "it is in use")),
        ("remove agent (ag1): failed.", Result("remove", "ag1", "no cause was given")),
        ("test cluster (cl0): failed: Some tests failed.", Result("test", "cl0", "Some tests failed")),
        ("test (cluster): failed: Some tests failed.", Result("test", "cluster", "Some tests failed")),
        (
            "test cluster (status): failed: No results available. Last test in cluster cl0 was stopped.",
            Result("test", "status", "No results available. Last test in cluster cl0 was stopped"),
        ),
        ("Showing\n a | b\ntest (cluster): failed: 1.2.3 is old.\n", Result("test", "cluster", "1.2.3 is old")),
        ("create agent (a): success.\ncreate agent (b): failed: no.\n", Result("create", "b", "no")),
        ("", None),
        ("success", None),
        ("Error: create agent (ag1): success.", None),
        ("create agent (ag1): succeeded", None),
    ],
)
def test_result_lines(text: str, expected: Result | None) -> None:
    assert cli_output.result(text) == expected


def test_access_key() -> None:
    assert cli_output.access_key("create user (alice): success. Access key is 'Ab3dE6gH9kL'.\nUse it.") == "Ab3dE6gH9kL"
    assert cli_output.access_key("create user (alice): success.") is None


def test_server_version() -> None:
    assert cli_output.server_version("version: 1.18.0\nhost: localhost:8090\n") == "1.18.0"
    with pytest.raises(ValueError, match="'nonsense'"):
        cli_output.server_version("nonsense")


OLDER = """\
 Partition   | Cluster  | ILDs | GW Routing | ILD Routing | Size | GCDs | State
---------------------------------------------------------------------------------
 p64         | c64_1-16 | 1    | DEFAULT    | RINGSWNC    | 64   | 1    | ACTIVE
 p2          | c64_1-16 | 1    | DEFAULT    | SWNC        | 32   | 2    | ERROR
---------------------------------------------------------------------------------
"""
NEWER = """\
------------------------------------------------------------------
 Cluster | Allocation | Partition | ILDs | Size | GCDs | State
------------------------------------------------------------------
 cl0     | a1         | p1        | 1    | 4    | 1    | ACTIVE
         |            | p2        | 1    | 8    | 1    | PENDING
------------------------------------------------------------------
"""


def test_columns_are_found_by_header() -> None:
    rows = cli_output.table(OLDER, "partition")
    assert [(row["partition"], row["size"], row["state"]) for row in rows] == [
        ("p64", "64", "ACTIVE"),
        ("p2", "32", "ERROR"),
    ]
    rows = cli_output.table(NEWER, "partition id", "partition")
    assert [(row["partition"], row["allocation"], row["state"]) for row in rows] == [
        ("p1", "a1", "ACTIVE"),
        ("p2", "", "PENDING"),  # a separate row, because it has a key
    ]


def test_row_without_key_continues_the_previous_row() -> None:
    rows = cli_output.table(" Allocation ID | Agents\n---\n a1 | ag01 ag02\n    | ag03\n a2 | ag04\n", "allocation id")
    assert rows == [
        {"allocation id": "a1", "agents": "ag01 ag02 ag03"},
        {"allocation id": "a2", "agents": "ag04"},
    ]


@pytest.mark.parametrize("separator", ["------", "-----+-----", "----- | -----", "======"])
def test_separators_of_every_form(separator: str) -> None:
    text = f"{separator}\n User | Role\n{separator}\n -a- | -\n{separator}\n"
    assert cli_output.table(text, "user") == [{"user": "-a-", "role": "-"}]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "--------\n", "No users found.\n", "no users\n", " User | Role\n---\n---\n", "User\n----\n"]
)
def test_output_without_rows_is_an_empty_table(text: str) -> None:
    assert cli_output.table(text, "user") == []


def test_table_with_one_column() -> None:
    assert cli_output.table("User\n-----\nalice\nbob\n-----\n", "user") == [{"user": "alice"}, {"user": "bob"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" User | B | C\n x | y\n", r"2 cells under a header of 3: 'x \| y'"),
        ("Error: connection refused\n", "no column 'user': 'Error: connection refused'"),
        ("No route to host\n", "no column 'user': 'No route to host'"),
        (" Name | Role\n alice | user\n", r"no column 'user': 'Name \| Role'"),
        (" User | Role\n | user\n", r"a row without user: '\| user'"),
        (" User | Role | Role\n", "two columns with the same name"),
        (" User | Role\n the user | x\n", "'the user' is not a valid user"),
        (" User | Role\n alice | user\nWARN: slow\n bob | user\n", "between the rows of a table: 'WARN: slow'"),
        (" Some | thing\n User | Role\n alice | user\n", r"no column 'user': 'Some \| thing'"),
    ],
)
def test_invalid_table_is_rejected_and_quoted(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cli_output.table(text, "user")


def test_captions_and_remarks_are_skipped() -> None:
    text = "Showing all users\n User | Role\n alice | user\nlist users (all): success.\n1 user\n"
    assert cli_output.table(text, "user") == [{"user": "alice", "role": "user"}]


AGENT = """\
-----------------------------------------------------------
 Agent ID              | ag1
 Host                  | 10.1.5.1
 Port                  | 8080
 Status                | Up
 Exporter              | http://10.1.5.1:2112/metrics
 IPUoF server version  | v1.3.3
 Num of IPUs           | 4
-----------------------------------------------------------
 IPU | PCI     | Device    | Firmware | Architecture | Num Tiles
-----------------------------------------------------------
 0   | 0000:1a | gc200     | 2.4.4    | 21           | 1472
 1   | 0000:1b | gc200     | 2.4.4    | 21           | 1472
-----------------------------------------------------------
"""


@pytest.mark.parametrize("text", [AGENT, AGENT.replace("  | v", ": v").replace(" | ag1", ": ag1")])
def test_agent(text: str) -> None:
    facts, ipus = cli_output.block(text, "agent", "ipu")
    assert facts["agent id"] == "ag1"
    assert facts["exporter"] == "http://10.1.5.1:2112/metrics"
    assert facts["ipuof server version"] == "v1.3.3"
    assert [(ipu["ipu"], ipu["num tiles"]) for ipu in ipus] == [("0", "1472"), ("1", "1472")]


@pytest.mark.parametrize(
    ("text", "message"), [("", "an empty output"), ("rubbish\n", "neither name nor value: 'rubbish'")]
)
def test_invalid_agent(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cli_output.block(text, "agent", "ipu")


PARTITION = """\
-----------------------------
Partition     | p1
Errors        | Agent 'ag01' rejected its share: no link.
              | Agent 'ag02' is down.
Auto Resets   | 3 of 3
-----------------------------
------------------------------------
Segment | Id | ILD | Topology Id
------------------------------------
0       | 0  | 0   | 3
"""


def test_value_with_several_lines() -> None:
    facts, ipus = cli_output.block(PARTITION, "partition", "segment")
    assert facts["errors"] == "Agent 'ag01' rejected its share: no link.\nAgent 'ag02' is down."
    assert (facts["auto resets"], ipus) == ("3 of 3", [{"segment": "0", "id": "0", "ild": "0", "topology id": "3"}])
    with pytest.raises(ValueError, match="neither name nor value"):
        cli_output.block("  | goes on with nothing\n", "partition", "segment")


ATTRIBUTES = """\
 Agent      | IPU | Attribute                         | Value
---------------------------------------------------------------------------
 ag0        | 0   | board ipu index                   | 1
            |     | board serial number               | 0024.0002.8203921
            | 1   | board ipu index                   | 2
 ag1        | 0   | clock                             | 1330MHz
            |     | hexopt active size (bytes)        | 0
---------------------------------------------------------------------------
"""


def test_ipu_attributes() -> None:
    assert cli_output.ipu_attributes(ATTRIBUTES) == {
        "ag0": {
            0: {"board ipu index": "1", "board serial number": "0024.0002.8203921"},
            1: {"board ipu index": "2"},
        },
        "ag1": {0: {"clock": "1330MHz", "hexopt active size (bytes)": "0"}},
    }
    assert cli_output.ipu_attributes("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" Agent | IPU | Attribute | Value\n | | clock | 1\n", r"an attribute without IPU: '\| \| clock \| 1'"),
        (" Agent | IPU | Attribute | Value\n a | 0 | x | 1\n b | | x | 1\n", r"an attribute without IPU: 'b \|"),
        (" Agent | Attribute | Value\n a | x | 1\n", "no columns Agent, IPU and Value"),
    ],
)
def test_invalid_attributes(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cli_output.ipu_attributes(text)


def test_discovered_agents() -> None:
    text = (
        "Host        | Port | Network Interface | Time Since Last Seen | Agent Auto-Add ID\n"
        "-----------------------------------------------------------------------------------\n"
        "10.2.1.5    | 8081 | eno3              | 2.154768458s         | 10.2.1.5-8081\n"
    )
    (row,) = cli_output.table(text, "host")
    assert (row["port"], row["agent auto-add id"]) == ("8081", "10.2.1.5-8081")
    assert cli_output.seconds(row["time since last seen"]) == pytest.approx(2.154768458)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0.0), ("850ms", 0.85), ("1m2.5s", 62.5), ("1h0m3s", 3603.0), ("12µs", 12e-6), ("7ns", 7e-9)],
)
def test_durations(text: str, seconds: float) -> None:
    assert cli_output.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "2", "soon", "2s ago", "-2s"])
def test_invalid_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        cli_output.seconds(text)


def test_ipuof_config() -> None:
    config = '{"devices": [{"ip": "10.5.1.1"}],\n "attributes": {"GCD Id": "0"}}\n'
    expected = {"devices": [{"ip": "10.5.1.1"}], "attributes": {"GCD Id": "0"}}
    assert cli_output.ipuof_config(config) == expected
    assert cli_output.ipuof_config("IPUoF configs for partition p1 {all}:\n" + config) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON in an empty output"),
        ("partition p1 is PENDING\n", "no JSON in 'partition p1 is PENDING'"),
        ('{"devices": [', "invalid JSON"),
        ('line\n{"attributes": {}, "devices": []} more', "invalid JSON"),
        ('{"devices": []}', "an object without devices and attributes"),
    ],
)
def test_invalid_ipuof_config(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cli_output.ipuof_config(text)


# Cells hold words without bars. Keys are names with at least one letter or digit.
WORD = st.text("abcXYZ019._-:/()[]", min_size=1, max_size=8)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
CELL = st.lists(WORD, max_size=5)
COLUMN = st.from_regex(r"[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8})?", fullmatch=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, str, list[dict[str, str]]]:
    """Return a printed table, the name of its key column, and its rows.

    Cells with several words are split over lines at random. Separators and captions are optional.
    """
    columns = draw(st.lists(COLUMN, min_size=2, max_size=6, unique_by=str.lower))
    key = draw(st.sampled_from(columns))
    separator = draw(st.sampled_from(["-" * 40, "\n" + "-" * 12 + "\n", ""]))
    width = draw(st.integers(1, 20))
    lines = [draw(st.sampled_from(["", "Showing all objects"])), separator, _line(columns, width), separator]
    rows = []
    for name in draw(st.lists(NAME, max_size=5)):
        row = {column: [name] if column == key else draw(CELL) for column in columns}
        depth = max(map(len, row.values())) if draw(st.booleans()) else 1
        for level in range(max(depth, 1)):
            parts = [words[level : level + 1] if depth > 1 else words for words in row.values()]
            lines.append(_line([" ".join(part) for part in parts], width))
        rows.append({column.lower(): " ".join(words) for column, words in row.items()})
    return "\n".join([*lines, separator, ""]), key.lower(), rows


def _line(cells: list[str], width: int) -> str:
    return " " + " | ".join(cell.ljust(width) for cell in cells)


@given(tables())
def test_printed_table_is_parsed(printed: tuple[str, str, list[dict[str, str]]]) -> None:
    text, key, rows = printed
    assert cli_output.table(text, key, "some other name") == rows


@given(tables(), st.data())
def test_truncated_line_is_rejected(printed: tuple[str, str, list[dict[str, str]]], data: st.DataObject) -> None:
    text, key, _rows = printed
    lines = text.splitlines()
    rows = [n for n, line in enumerate(lines) if line.count("|") > 1][1:]
    assume(rows)
    broken = data.draw(st.sampled_from(rows))
    lines[broken] = lines[broken].rpartition("|")[0]
    with pytest.raises(ValueError, match="cells under a header"):
        cli_output.table("\n".join(lines), key)


@given(st.text())
def test_any_text_is_parsed_or_rejected_with_a_message(text: str) -> None:
    for read in (
        lambda: cli_output.table(text, "user"),
        lambda: cli_output.ipu_attributes(text),
        lambda: cli_output.block(text, "agent", "ipu"),
        lambda: cli_output.ipuof_config(text),
        lambda: cli_output.server_version(text),
        lambda: cli_output.result(text),
    ):
        try:
            read()
        except ValueError as error:
            assert str(error)
