# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what the command lines print, in the forms that Graphcore documents."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu import cli_output
from hypothesis import given
from hypothesis import strategies as st
from tabulate import DataRow, Line, TableFormat, tabulate


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("create agent (ag1): success.", None),
        ("create user (alice): success. Access key is 'Ab3dE6gH9kL'.", None),
        ("create partition (p1): failed: no free IPUs.", "no free IPUs"),
        ("test cluster (cl0): failed: Some tests failed.", "Some tests failed"),
        ("test (cluster): failed: Some tests failed.", "Some tests failed"),
        ("test cluster (status): failed: No results available. Last test in cluster cl0 was stopped.",
         "No results available. Last test in cluster cl0 was stopped"),
        ("Showing results\n a | b\nremove cluster (c.1-x): failed: it is in use", "it is in use"),
        ("", None),
    ],
)  # fmt: skip
def test_result_lines(text: str, reason: str | None) -> None:
    assert cli_output.failure(text) == reason


def test_access_key() -> None:
    assert cli_output.access_key("create user (alice): success. Access key is 'Ab3dE6gH9kL'.\nUse it.") == "Ab3dE6gH9kL"
    assert cli_output.access_key("create user (alice): success.") is None


def test_server_version() -> None:
    assert cli_output.server_version("version: 1.18.0\nhost: localhost:8090\n") == "1.18.0"
    with pytest.raises(ValueError, match="'nonsense'"):
        cli_output.server_version("nonsense")


OLDER = """\
------------------------------------------------------------------------------
 Partition | Cluster | ILDs | GW Routing | ILD Routing | Size | GCDs | State
------------------------------------------------------------------------------
 p1        | cl0     | 1    | DEFAULT    | DNC         | 4    | 1    | ACTIVE
 p2        | cl0     | 1    | DEFAULT    | SWNC        | 32   | 2    | ERROR
------------------------------------------------------------------------------
"""
NEWER = """\
 Cluster | Allocation | Partition | ILDs | Size | GCDs | State
------------------------------------------------------------------
 cl0     | a1         | p1        | 1    | 4    | 1    | ACTIVE
"""


def test_columns_go_by_their_header() -> None:
    assert [(row["partition"], row["size"], row["state"]) for row in cli_output.table(OLDER)] == [
        ("p1", "4", "ACTIVE"),
        ("p2", "32", "ERROR"),
    ]
    assert [(row["partition"], row["allocation"]) for row in cli_output.table(NEWER)] == [("p1", "a1")]


def test_continuation_lines_belong_to_the_row_before() -> None:
    rows = cli_output.table(" Allocation ID | Agents\n---\n a1 | ag01 ag02\n    | ag03\n a2 | ag04\n")
    assert rows == [
        {"allocation id": "a1", "agents": "ag01 ag02 ag03"},
        {"allocation id": "a2", "agents": "ag04"},
    ]


def test_a_row_that_does_not_fit_its_header_is_refused_and_quoted() -> None:
    with pytest.raises(ValueError, match=r"2 cells under a header of 3: 'x \| y'"):
        cli_output.table(" A | B | C\n x | y\n")


def test_json_after_a_line_that_is_none() -> None:
    text = 'IPUoF configs for partition p1:\n{"devices": [{"ip": "10.5.1.1"}],\n "attributes": {}}\n'
    assert cli_output.first_json(text) == {"devices": [{"ip": "10.5.1.1"}], "attributes": {}}
    with pytest.raises(ValueError, match="looks like JSON and is not"):
        cli_output.first_json("{nothing")


WORD = st.text("abcXYZ019._-", min_size=1, max_size=8).filter(lambda text: text.strip("-"))
FORMAT = TableFormat(
    lineabove=Line("", "-", "---", ""),
    linebelowheader=Line("", "-", "---", ""),
    linebetweenrows=None,
    linebelow=Line("", "-", "---", ""),
    headerrow=DataRow(" ", " | ", ""),
    datarow=DataRow(" ", " | ", ""),
    padding=0,
    with_header_hide=None,
)


@given(st.lists(WORD, min_size=2, max_size=5, unique_by=str.lower), st.data())
def test_a_printed_table_is_read_back(header: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(WORD, min_size=len(header), max_size=len(header)), max_size=5))
    text = tabulate(rows, headers=header, tablefmt=FORMAT, disable_numparse=True)
    names = [name.lower() for name in header]
    assert cli_output.table(text) == [dict(zip(names, row, strict=True)) for row in rows]
