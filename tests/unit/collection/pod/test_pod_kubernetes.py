# SPDX-License-Identifier: GPL-3.0-or-later
"""The key ``kubernetes`` of pod.yml: nodes with their label, and errors with line and remedy."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.kubernetes_nodes import controllers
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

SERVERS = (
    ", servers: [{name: Server1, roles: [controller, poplar]}, {name: server2}, {name: admin, roles: [controller]}]"
)


def loaded(pod, key: str, servers: str = SERVERS):
    """Return the variable of a POD with a key ``kubernetes``, on line 9 of its file."""
    found = pod.load(rack_tail=servers, tail=key)
    return controllers(found, found.kubernetes)


def test_a_pod_without_the_key_has_no_nodes(pod):
    assert pod.load(rack_tail=SERVERS).kubernetes is None


def test_all_poplar_servers_are_nodes_by_default(pod):
    [controller] = loaded(pod, "kubernetes: {}\n")
    assert controller == {
        "host": "10.3.1.101",
        "port": 8090,
        "label": "vipu-ctrl=test",
        "nodes": ["server1", "server2"],
    }


def test_settings_replace_the_defaults(pod):
    key = "kubernetes:\n  label: a.example/ipunode=node1\n  servers: [server2]\n  node_names: {server2: n2.example}\n"
    [controller] = loaded(pod, key)
    assert (controller["label"], controller["nodes"]) == ("a.example/ipunode=node1", ["n2.example"])


@pytest.mark.parametrize(
    ("key", "servers", "line", "message"),
    [
        ("kubernetes: yes\n", SERVERS, 9, "'kubernetes' must be a mapping"),
        ("kubernetes: {lable: a=b}\n", SERVERS, 9, "unknown key 'lable': did you mean 'label'?"),
        ("kubernetes:\n  label: ipunode\n", SERVERS, 10, "invalid label 'ipunode': use a label of Kubernetes, such as"),
        ("kubernetes:\n  label: a=b:c\n", SERVERS, 10, "invalid label 'a=b:c'"),
        (
            "kubernetes:\n  servers: [server3]\n",
            SERVERS,
            10,
            "unknown Poplar server 'server3': did you mean 'server2'?",
        ),
        ("kubernetes:\n  servers: [admin]\n", SERVERS, 10, "unknown Poplar server 'admin': known are Server1, server2"),
        ("kubernetes:\n  node_names:\n    server3: a\n", SERVERS, 11, "unknown key 'server3': did you mean 'server2'?"),
        (
            "kubernetes:\n  node_names:\n    server2: A_b\n",
            SERVERS,
            11,
            "invalid server2 'A_b': use 1 to 253 lower-case",
        ),
        (
            "kubernetes:\n  node_names:\n    Server1: a\n    server2: a\n",
            SERVERS,
            12,
            "node a is used by both server 'Server1' (line 11) and server 'server2'",
        ),
        ("kubernetes: {}\n", "", 9, "the POD has no server with the role 'poplar': add one"),
        ("kubernetes: {}\n", ", servers: [{name: a_b}]", 9, "no node can have the name 'a_b': set it in 'node_names'"),
    ],
)
def test_errors_have_line_and_remedy(pod, key: str, servers: str, line: int, message: str):
    with pytest.raises(PodError) as caught:
        loaded(pod, key, servers)
    assert caught.value.line == line
    assert message in str(caught.value)


def test_the_name_of_a_pod_may_be_no_label(pod):
    path = pod.write(rack_tail=SERVERS, tail="kubernetes: {}\n")
    path.write_text(path.read_text().replace("name: test", "name: test-"))
    with pytest.raises(PodError, match=r"makes the invalid label 'vipu-ctrl=test-': set kubernetes\.label"):
        load(str(path))
