# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what vipu-admin and vipu print: result lines, tables, blocks, JSON. Pure.

Every reader goes by what stands there, never by a position: tables by their header, results by the
form of the line. What cannot be read raises ValueError with a sentence that quotes it.
"""

from __future__ import annotations

import json
import re
import typing as t

_RESULT = re.compile(r"^\s*(?P<what>[a-z]+(?: [a-z-]+)? ?\([^)]*\)): (?P<outcome>success|failed: .*?)\.?\s*$")
_ACCESS_KEY = re.compile(r"Access key is '([^']+)'")
_RULE = re.compile(r"^[\s\-+=|]*-[\s\-+=|]*$")
_VERSION = re.compile(r"^\s*version:\s*(\S+)\s*$", re.MULTILINE)


def failure(text: str) -> str | None:
    """The reason of a result line that says failed, None when there is none.

    Graphcore's tools name the subject in three ways: ``test cluster (cl0): failed: …``,
    ``test (cluster): failed: …`` and ``test cluster (status): failed: …``.
    """
    for line in text.splitlines():
        match = _RESULT.match(line.split(". Access key", 1)[0] if "Access key" in line else line)
        if match and match["outcome"].startswith("failed: "):
            return match["outcome"][len("failed: ") :]
    return None


def access_key(text: str) -> str | None:
    """The key that ``create user`` tells."""
    match = _ACCESS_KEY.search(text)
    return match[1] if match else None


def server_version(text: str) -> str:
    """The version that ``--server-version`` prints."""
    match = _VERSION.search(text)
    if not match:
        raise ValueError("no line 'version: …' in %s" % _quoted(text))
    return match[1]


def table(text: str) -> list[dict[str, str]]:
    """The rows of the first table: header in lower case to cell.

    Cells are separated by ``|``; rules of dashes are passed over; a row whose first cell is blank
    goes on with the row before, its cells joined by a space.
    """
    header: list[str] | None = None
    rows: list[dict[str, str]] = []
    for line in text.splitlines():
        if _RULE.match(line) or not line.strip():
            continue
        if header is None:
            if "|" in line:
                header = [cell.lower() for cell in _cells(line)]
            continue
        cells = _cells(line)
        if "|" not in line and len(header) > 1:
            break  # the table is over
        if len(cells) != len(header):
            raise ValueError("a row of %d cells under a header of %d: %s" % (len(cells), len(header), _quoted(line)))
        if not cells[0] and rows:
            for name, cell in zip(header, cells, strict=True):
                if cell:
                    rows[-1][name] = (rows[-1][name] + " " + cell).strip()
        else:
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def block(text: str) -> dict[str, str]:
    """The lines ``name | value`` up to the first line of another form."""
    result: dict[str, str] = {}
    for line in text.splitlines():
        if _RULE.match(line) or not line.strip():
            if result and _RULE.match(line):
                break
            continue
        cells = _cells(line)
        if len(cells) != 2:
            break
        result[cells[0].lower()] = cells[1]
    return result


def pick(row: t.Mapping[str, str], *names: str) -> str | None:
    """The cell of the first of these columns that the table has."""
    return next((row[name] for name in names if name in row), None)


def first_json(text: str) -> t.Any:
    """The JSON in an output; lines before it are passed over."""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.lstrip()[:1] in ("{", "["):
            try:
                return json.JSONDecoder().raw_decode("\n".join(lines[index:]).lstrip())[0]
            except ValueError as error:
                raise ValueError("it looks like JSON and is not (%s): %s" % (error, _quoted(line))) from None
    raise ValueError("no JSON in %s" % _quoted(text))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _quoted(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return repr(line[:80]) if line else "an empty output"
