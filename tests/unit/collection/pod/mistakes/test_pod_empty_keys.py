# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of pod.yml without a value, for each key of each mapping."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import spec
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import Block

from tests.unit.collection.pod.mistakes.test_pod_mistyped_keys import LINE, SCHEMAS

KEYS = [(label, key) for label, schema in SCHEMAS.items() if schema is not spec.MACHINE for key in schema.declared]


def mistakes(label: str, key: str, value: object) -> list[tuple[int | None, str]]:
    """Return line and message of the mistakes of a mapping with a single key."""
    block = Block("pod.yml", 1)
    block.put(key, value, LINE)
    with pytest.raises(PodError) as caught:
        SCHEMAS[label].check(block)
    return [(each.line, each.message) for each in caught.value.mistakes]


@pytest.mark.parametrize(("label", "key"), KEYS)
def test_a_key_without_a_value_is_a_mistake(label, key):
    (message,) = [message for line, message in mistakes(label, key, None) if line == LINE]
    remedy = "set one" if SCHEMAS[label].declared[key].get("required") else "set one, or remove the line"
    assert message.endswith(f"'{key}' has no value: {remedy}")


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("{host: 10.3.1.101}", "{host: }"),
        ("{host: 10.3.1.101}", "{host: 10.3.1.101, port: null}"),
        ("number: 1}", "number: 1, servers: }"),
        ("number: 1}", "number: 1, servers: [{name: s1, roles: , managed: ~}]}"),
        ("{id: cl, racks: [rack1]}", "{id: cl, racks: }"),
        ("{id: cl, racks: [rack1]}", "{id: cl, racks: [rack1], num_ilds: , topology: }"),
        ("name: test\n", "name: test\nmachines:\nshared_inventory:\nagent_port:\nusers:\ncompose:\n"),
        ("name: test\n", "name: test\nopenstack: {mtu: , networks: , tenants: }\n"),
        ("{subnet: 10.5.0.0/16}", "{subnet: , vlan: }"),
        ("controller: {host: 10.3.1.101}", "controller: "),
    ],
)
def test_nothing_else_is_reported(pod, text, empty):
    path = pod.write(networks="networks: {data: {subnet: 10.5.0.0/16}}")
    path.write_text(path.read_text().replace(text, empty))
    with pytest.raises(PodError) as caught:
        load(str(path))
    found = [each.message for each in caught.value.mistakes]
    assert found, path.read_text()
    assert [message for message in found if "has no value: set one" not in message] == []
