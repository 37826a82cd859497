# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the keys of pod.yml and of the columns of machines.csv: all of them, each with a description."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openipu.shared.pod import spec
from openipu.shared.pod.mapping_schema import MappingSchema
from tools.reference import pod_keys

PAGE = pod_keys.pages()["pod-keys.md"]
SECTIONS = dict(re.findall(r"^## `?([\w. \[\]]+)`?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def mappings(path: str, schema: MappingSchema) -> Iterator[tuple[str, MappingSchema]]:
    """Yield a mapping and those in it, with the titles of their sections."""
    yield path or "Top level", schema
    for name, option in schema.declared.items():
        if "schema" in option:
            yield from mappings(
                f"{path}.{name}".lstrip(".") + ("[]" if option["type"] == "list" else ""), option["schema"]
            )


def test_every_key_has_a_description_on_the_page() -> None:
    found = dict(mappings("", spec.POD))
    assert set(SECTIONS) == set(found)
    for title, schema in found.items():
        assert set(schema.about) == set(schema.declared), title
        for name in set(schema.declared) - set(spec.INVENTORY_KEYS):
            (row,) = [line for line in SECTIONS[title].splitlines() if line.startswith(f"| `{name}` |")]
            assert schema.about[name] in row


def test_every_column_has_a_description_on_the_page() -> None:
    page = pod_keys.pages()["machines-csv.md"]
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    assert list(rows) == list(spec.MACHINE.declared) == list(spec.MACHINE.about)
    for name, row in rows.items():
        assert spec.MACHINE.about[name] in row
        assert ("| yes |" in row) == (name in spec.MACHINE_REQUIRED)
    assert rows["unit"] == "| `unit` | number | yes | 1 to 32 | Number in the rack, 1 the lowest. |"


def test_types_defaults_values_and_rules_are_shown() -> None:
    clusters = SECTIONS["clusters[]"]
    assert "| `topology` | text |  | `mesh` | `mesh`, `torus` | Cabling of the IPU-Links" in clusters
    assert "* At most one of: `racks`, `machines`" in clusters
    assert "* At least one of: `racks`, `machines`" in clusters
    assert "| `vlan` | number | 1 to 4094 | VLAN. By default" in SECTIONS["networks.data"]
    assert "| `managed` | true or false |  | `true` |" in SECTIONS["racks[].pdus[]"]
