# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of pod.yml without a value, for each key of each mapping, and single values in the place of mappings."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import spec
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import Block

from tests.unit.collection.pod.mistakes.test_pod_mistyped_keys import LINE, SCHEMAS

KEYS = [(label, key) for label, schema in SCHEMAS.items() if schema is not spec.MACHINE for key in schema.declared]
MAPPINGS = [(label, key) for label, key in KEYS if SCHEMAS[label].declared[key].get("type") == "dict"]


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
    remedy = "set one" if SCHEMAS[label].declared[key].get("required") else "set one, or remove the key"
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


@pytest.mark.parametrize(("label", "key"), MAPPINGS)
def test_a_single_value_is_no_mapping(label, key):
    ((_line, message), *_missing) = [found for found in mistakes(label, key, "foo") if found[0] == LINE]
    assert f"'{key}' must be a mapping: " in message
    nested = SCHEMAS[label].declared[key].get("schema")
    if nested:
        assert f"its keys are {', '.join(nested.declared)}, as in '{key}: {{{next(iter(nested.declared))}: " in message
    else:
        assert message.endswith(f"write '{key}: {{NAME: VALUE}}'")


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("controller: foo", "its keys are server, host, port, as in 'controller: {server: foo}'"),
        ("controller: 13", "its keys are server, host, port, as in 'controller: {server: …}'"),
        ("networks: foo", "its keys are bmc, gw, management, data, storage, as in 'networks: {bmc: {vlan: …}}'"),
        ("kubernetes: yes", "its keys are label, servers, node_names, as in 'kubernetes: {label: …}'"),
        ("deploy: common", "its keys are controllers, machines, poplar_servers, as in 'deploy: {controllers: […]}'"),
    ],
)
def test_the_message_has_the_keys_and_an_example(pod, line, remedy):
    key = line.partition(":")[0]
    path = pod.write(drop=f"{key}:", tail=f"{line}\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    (mistake,) = caught.value.mistakes
    assert mistake.message == f"pod 'test': '{key}' must be a mapping: {remedy}"
    assert path.read_text().splitlines()[mistake.line - 1] == line
