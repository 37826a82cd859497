# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsers of the output of vipu-admin and vipu: result lines, tables, blocks, JSON. No I/O.

Parsers use column names and never positions, because columns moved between releases. Callers create objects that
are missing in a list, so no output is read in part. A line that is not understood raises ValueError with a clause
for an error message that quotes it.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

Row = dict[str, str]

_RESULT = re.compile(
    r"\s*(?P<verb>[a-z]+)(?: [a-z][a-z-]*)? \((?P<subject>[^()]*)\): (?P<outcome>success|failed)(?P<rest>[.:].*)?"
)
_ACCESS_KEY = re.compile(r"Access key is '([^']+)'")
_VERSION = re.compile(r"\s*version:\s*(\S+)\s*")
_NOTHING = re.compile(r"\s*no [a-z-]+( found| exist| available)?\.?\s*", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?)(h|ms|m|us|µs|ns|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Result:
    """Result line of a command; ``reason`` is None after a success."""

    verb: str
    subject: str
    reason: str | None


def result(text: str) -> Result | None:
    """Return the first result line with a failure, else the last one with success, else None.

    Graphcore's tools name the subject in three ways: ``test cluster (cl0): failed: …``,
    ``test (cluster): failed: …`` and ``test cluster (status): failed: …``.
    """
    success = None
    for line in text.splitlines():
        match = _RESULT.fullmatch(line)
        if match and match["outcome"] == "failed":
            reason = (match["rest"] or "").lstrip(":").strip().removesuffix(".")
            return Result(match["verb"], match["subject"], reason or "no cause was given")
        if match:
            success = Result(match["verb"], match["subject"], None)
    return success


def access_key(text: str) -> str | None:
    """Return the key that ``create user`` prints, or None."""
    match = _ACCESS_KEY.search(text)
    return match[1] if match else None


def server_version(text: str) -> str:
    """Return the version that ``--server-version`` prints on one of its two lines."""
    for line in text.splitlines():
        match = _VERSION.fullmatch(line)
        if match:
            return match[1]
    raise ValueError("no line 'version: …' in %s" % quoted(text))


def table(text: str, *key: str) -> list[Row]:
    """Return the rows of the only table in an output: header in lower case to cell.

    ``key`` are the possible names of the column that identifies a row. A row with a blank key continues the
    previous row; its cells are joined with a space. Empty output, ``No agents found`` and a header alone are
    tables without rows.
    """
    found: list[Row] = []
    for first, *more in groups(text, *key):
        for row in more:
            _continue_row(first, row)
        found.append(first)
    return found


def groups(text: str, *key: str) -> list[list[Row]]:
    """Return the rows of a table as groups of lines: first the line with the key, then its continuations."""
    lines = _lines(text)
    if not lines or (len(lines) == 1 and _NOTHING.fullmatch(lines[0])):
        return []
    header, body = _split(lines, key)
    name = next(column for column in header if column in key)
    found: list[list[Row]] = []
    for line in body:
        row = _row(line, header)
        if row[name]:
            if not _is_name(row[name]):
                raise ValueError("%r is not a valid %s: %s" % (row[name], name, quoted(line)))
            found.append([row])
        elif found:
            found[-1].append(row)
        else:
            raise ValueError("a row without %s: %s" % (name, quoted(line)))
    return found


def ipu_attributes(text: str) -> dict[str, dict[int, Row]]:
    """Return the attributes of IPUs by agent and IPU number from ``list ipu-attrs``.

    Agent and IPU are printed in the first line of their group only.
    """
    result: dict[str, dict[int, Row]] = {}
    lines = _lines(text)
    if not lines:
        return result
    header, body = _split(lines, ("attribute",))
    if not {"agent", "ipu", "value"} <= set(header):
        raise ValueError("no columns Agent, IPU and Value: %s" % quoted(text))
    agent, ipu = "", ""
    for line in body:
        row = _row(line, header)
        if row["agent"]:
            agent, ipu = row["agent"], ""
        ipu = row["ipu"] or ipu
        if not agent or not ipu.isdigit() or not row["attribute"]:
            raise ValueError("an attribute without IPU: %s" % quoted(line))
        result.setdefault(agent, {}).setdefault(int(ipu), {})[row["attribute"]] = row["value"]
    return result


def block(text: str, noun: str, key: str) -> tuple[Row, list[Row]]:
    """Return the facts that ``get agent`` and similar commands print, and the rows of their table.

    Names of facts are in lower case. ``noun`` is the object for messages, ``key`` the first column of the table.
    Further lines of a value have blanks in the place of the name.
    """
    lines = _lines(text)
    start = next((n for n, line in enumerate(lines) if _cells(line)[0].lower() == key), len(lines))
    facts: Row = {}
    name = ""
    for line in lines[:start]:
        label, separator, value = line.partition("|") if "|" in line else line.partition(":")
        if not separator or not (label.strip() or name):
            raise ValueError("neither name nor value: %s" % quoted(line))
        more = not label.strip()
        name = name if more else label.strip().lower()
        facts[name] = "%s\n%s" % (facts[name], value.strip()) if more else value.strip()
    if not facts:
        raise ValueError("no %s in %s" % (noun, quoted(text)))
    return facts, table("\n".join(lines[start:]), key)


def ipuof_config(text: str) -> dict[str, t.Any]:
    """Return the JSON object of ``get partition --ipuof-configs``; another line may precede it."""
    start = re.search(r"^\s*\{", text, re.MULTILINE)
    if not start:
        raise ValueError("no JSON in %s" % quoted(text))
    try:
        config: dict[str, t.Any] = json.loads(text[start.start() :])
    except ValueError as error:
        raise ValueError("invalid JSON (%s): %s" % (error, quoted(text[start.start() :]))) from None
    if (type(config.get("devices")), type(config.get("attributes"))) != (list, dict):
        raise ValueError("an object without devices and attributes: %s" % quoted(text))
    return config


def seconds(text: str) -> float:
    """Return a printed duration (``2.154768458s``, ``1m2.5s``, ``850ms``) in seconds."""
    parts = list(_DURATION.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError("not a duration: %s" % quoted(text))
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)


def pick(row: t.Mapping[str, str], *names: str) -> str | None:
    """Return the cell of the first of these columns that the table has, None when it is missing or empty."""
    cell = next((row[name] for name in names if name in row), None)
    return None if cell in ("", "-", None) else cell


def quoted(text: str) -> str:
    """Return the first line that is not blank, for messages, with any access key removed."""
    text = _ACCESS_KEY.sub("Access key is '…'", text)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return repr(line[:80]) if line else "an empty output"


def _lines(text: str) -> list[str]:
    """Return the lines except blank lines, separators and result lines."""
    return [
        line for line in text.splitlines() if line.strip() and not _is_separator(line) and not _RESULT.fullmatch(line)
    ]


def _is_separator(line: str) -> bool:
    """Return whether a line is a separator: dashes in the whole line or in every column."""
    return all(len(cell) >= 3 and set(cell) <= set("-=+") for cell in _cells(line))


def _is_name(cell: str) -> bool:
    return not re.search(r"\s", cell) and any(map(str.isalnum, cell))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _split(lines: list[str], key: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the header and the lines of its rows. Only captions may precede them, and only remarks may follow."""
    index = next((n for n, line in enumerate(lines) if {cell.lower() for cell in _cells(line)} & set(key)), None)
    if index is None or any("|" in line for line in lines[:index]):
        raise ValueError("no column %s: %s" % (" or ".join(map(repr, key)), quoted("\n".join(lines))))
    header = [cell.lower() for cell in _cells(lines[index])]
    if len(set(header)) != len(header):
        raise ValueError("two columns with the same name: %s" % quoted(lines[index]))
    body = lines[index + 1 :]
    if len(header) > 1:
        ends = next((n for n, line in enumerate(body) if "|" not in line), len(body))
        if any("|" in line for line in body[ends:]):
            raise ValueError("a line between the rows of a table: %s" % quoted(body[ends]))
        body = body[:ends]
    return header, body


def _row(line: str, header: list[str]) -> Row:
    cells = _cells(line)
    if len(cells) != len(header):
        raise ValueError("a row of %d cells under a header of %d: %s" % (len(cells), len(header), quoted(line)))
    return dict(zip(header, cells, strict=True))


def _continue_row(row: Row, more: Row) -> None:
    for name, cell in more.items():
        row[name] = (row[name] + " " + cell).strip()
