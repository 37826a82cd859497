# SPDX-License-Identifier: GPL-3.0-or-later
"""MIB module of tables, as SMIv1 text: ``snmptable`` of Net-SNMP needs the columns of a table."""

from __future__ import annotations

from pathlib import Path

from openipu.shared.pdu.smi import Syntax, Table

NAME = "PEERS-MIB"
_SYNTAX = {Syntax.INTEGER: "INTEGER", Syntax.GAUGE: "Gauge", Syntax.TEXT: "OCTET STRING"}


def write_mib(folder: Path, *tables: Table) -> Path:
    """Write a module with these tables into a folder, and return the folder."""
    lines = [f"{NAME} DEFINITIONS ::= BEGIN"]
    for table in tables:
        parent = " ".join(map(str, table.entry[1:-2]))
        common = "ACCESS read-only STATUS mandatory"
        entry, columns = table.name + "Entry", list(table.values())
        members = ", ".join(f"{column.name} {_SYNTAX[column.syntax]}" for column in columns)
        lines += [
            f"{table.name}Parent OBJECT IDENTIFIER ::= {{ iso {parent} }}",
            f"{table.name}Table OBJECT-TYPE SYNTAX SEQUENCE OF {entry.upper()} ACCESS not-accessible "
            f"STATUS mandatory ::= {{ {table.name}Parent {table.entry[-2]} }}",
            f"{entry} OBJECT-TYPE SYNTAX {entry.upper()} ACCESS not-accessible STATUS mandatory "
            f"INDEX {{ {columns[0].name} }} ::= {{ {table.name}Table {table.entry[-1]} }}",
            f"{entry.upper()} ::= SEQUENCE {{ {members} }}",
            *(
                f"{column.name} OBJECT-TYPE SYNTAX {_SYNTAX[column.syntax]} {common} ::= {{ {entry} {column.oid[-1]} }}"
                for column in columns
            ),
        ]
    (folder / f"{NAME}.txt").write_text("\n".join([*lines, "END", ""]))
    return folder
