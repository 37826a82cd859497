# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped keys of every mapping of pod.yml and of machines.csv: the message has line, place and the right key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import spec
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.mapping_schema import MappingSchema
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import Block, Items

LINE = 7


def schemas(schema: MappingSchema) -> Iterator[MappingSchema]:
    """Yield a schema and those of all mappings in it."""
    yield schema
    for option in schema.declared.values():
        if "schema" in option:
            yield from schemas(option["schema"])


SCHEMAS = {schema.label: schema for schema in (*schemas(spec.POD), spec.MACHINE)}


def swapped(key: str) -> str:
    """Return the key with its second and third letters exchanged, or with its last letter twice."""
    other = key[0] + key[2] + key[1] + key[3:] if len(key) > 3 else key
    return other if other != key else key + key[-1]


@pytest.mark.parametrize("label", SCHEMAS)
def test_every_mistyped_key_suggests_the_right_one(label: str) -> None:
    schema = SCHEMAS[label]
    missed = []
    for key in schema.declared:
        for name in (swapped(key), key.upper(), key.capitalize(), key.replace("_", "-")):
            if name in schema.declared:
                continue
            block = Block("pod.yml", 1)
            block.put(name, "value", LINE)
            with pytest.raises(PodError) as caught:
                schema.check(block)
            (mistake, *_others) = caught.value.mistakes
            if f"unknown key '{name}': did you mean '{key}'?" not in mistake.message or mistake.line != LINE:
                missed.append((name, str(mistake)))
    assert missed == []


@pytest.mark.parametrize("label", SCHEMAS)
def test_every_mistyped_choice_suggests_the_right_one(label: str) -> None:
    schema = SCHEMAS[label]
    missed = []
    for key, option in schema.declared.items():
        for choice in option.get("choices", ()):
            for given in (swapped(choice), choice.upper()):
                value: str | Items = given
                if option.get("type") == "list":
                    value = Items()
                    value.append(given)
                    value.lines.append(LINE)
                block = Block("pod.yml", 1)
                block.put(key, value, LINE)
                with pytest.raises(PodError) as caught:
                    schema.check(block)
                expected = f"unknown value of {key} '{given}': did you mean '{choice}'?"
                found = [each for each in caught.value.mistakes if expected in each.message and each.line == LINE]
                missed += [] if found else [(given, str(caught.value))]
    assert missed == []


def test_each_unknown_item_of_a_list_has_its_place(pod) -> None:
    path = pod.write(tail="deploy:\n  controllers:\n    - comon\n    - common\n    - monitorin\n    - chrony\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    first, second, third = caught.value.mistakes
    assert [(each.line, each.column) for each in (first, second, third)] == [(11, 7), (13, 7), (14, 7)]
    assert first.message == "deploy: unknown value of controllers 'comon': did you mean 'common'?"
    assert second.message.endswith("'monitorin': did you mean 'monitoring'?")
    assert third.message.startswith(
        "deploy: unknown value of controllers 'chrony': known are common, management_server"
    )


def test_the_values_of_a_missing_key_are_listed(pod) -> None:
    with pytest.raises(PodError, match="'kind: data' or 'kind: management' is missing: add it"):
        load(str(pod.write(rack_tail=", switches: [{name: tor}]")))


def test_the_schemas_of_all_levels_are_checked() -> None:
    assert {"pod", "rack", "server", "switch", "PDU", "cable", "tenant", "IPU", "network of openstack"} <= set(SCHEMAS)


def test_a_mistyped_key_in_a_file_has_its_place(pod) -> None:
    path = pod.write(rack_tail=", swiches: []")
    with pytest.raises(
        PodError, match=r"pod\.yml, line \d+: rack 'rack1': unknown key 'swiches': did you mean 'switches'"
    ):
        load(str(path))
