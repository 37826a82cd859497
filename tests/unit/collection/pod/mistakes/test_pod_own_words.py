# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages with a remedy for templates, missing parts and several documents."""

from __future__ import annotations

import pytest

from .test_pod_mistakes import mistakes


@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ("subnet: 10.5.0.0/16", "subnet: '%s'", "network 'data': invalid subnet"),
        ("name: test", "name: '%s'", "pod: invalid name"),
        ("number: 1", "number: '%s'", "rack 'rack1': invalid number"),
        ("number: 1", "number: 1, servers: [{name: s, macs: {p1: '%s'}}]", "server's interface: invalid p1"),
        ("number: 1", "number: 1, pdus: [{name: p, managed: '%s'}]", "PDU 'p': invalid managed"),
        ("racks: [rack1]", "racks: ['%s']", "cluster 'cl': invalid racks"),
        ("02:01:00:00:01:02", "%s", "machine 'm1.2': invalid bmc_mac"),
    ],
)
@pytest.mark.parametrize("template", ["{{ x }}", "{% x %}"])
def test_templates_are_not_rendered(pod, old, new, start, template):
    path = pod.write()
    (file,) = (file for file in (path, pod.machines_csv) if old in file.read_text())
    file.write_text(file.read_text().replace(old, new % template, 1))
    ((_line, message),) = mistakes(path)
    assert message == f"{start} '{template}': templates are not rendered here: write the value"


def test_keys_of_the_inventory_plugin_contain_templates(pod):
    assert pod.load(tail="compose: {x: '{{ y }}'}\n").name == "test"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", racks: [rack1]}", "}", "cluster 'cl': 'racks' or 'machines' is missing: add one of them"),
        ("name: rack1, number: 1", "", "rack: 'name' and 'number' are missing: add them"),
        ("name: test", "name: test\n---", "starts a second YAML document: remove this line, or write the document to"),
        (", racks: [rack1]", ", racks: [rack1], num_ilds: 0", "cluster 'cl': invalid num_ilds 0: use 1 or more"),
    ],
)
def test_messages_have_a_remedy(pod, old, new, message):
    path = pod.write()
    path.write_text(path.read_text().replace(old, new, 1))
    found = [each for _line, each in mistakes(path)]
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize("key", ["num_gcds", "num_replicas", "num_segments"])
@pytest.mark.parametrize("number", [0, -1])
def test_divisors_of_a_partition_are_positive(pod, key, number):
    tail = "allocations: [{id: a, cluster: cl, size: 1}]\n"
    tail += f"partitions: [{{id: p, allocation: a, size: 4, {key}: {number}}}]\n"
    assert [each for _line, each in mistakes(pod.write(tail=tail))] == [
        f"partition 'p': invalid {key} {number}: use 1 or more"
    ]
