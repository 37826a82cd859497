# SPDX-License-Identifier: GPL-3.0-or-later
"""The key ``controller`` of pod.yml with one or several hosts, and everything that is derived from them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.allowed_traffic import security_groups, upstream
from ansible_collections.openipu.pod.plugins.module_utils.pod.kubernetes_nodes import controllers
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

from openipu.kubernetes.domain.controllers import parse
from tests.unit.collection.pod.inventories import parse as inventory

ONE = "controller: {host: 10.3.1.101}"
SEVERAL = "controller: {host: [10.3.1.101, 10.3.1.102, vipu3.pod.example], port: 8091}"


def changed(pod, controller: str, **content):
    """Return the POD with another key ``controller``, which is on line 4 of its file."""
    pod.write(**content)
    text = pod.pod_yml.read_text()
    assert ONE in text
    pod.pod_yml.write_text(text.replace(ONE, controller))
    return load(str(pod.pod_yml))


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("10.3.1.101", ("10.3.1.101",)),
        ("vipu.pod.example", ("vipu.pod.example",)),
        ("fd00::1", ("fd00::1",)),
        ("[10.3.1.101]", ("10.3.1.101",)),
        ("[10.3.1.102, 10.3.1.101]", ("10.3.1.102", "10.3.1.101")),
        ("[10.3.1.101, 'fd00::2', vipu3]", ("10.3.1.101", "fd00::2", "vipu3")),
    ],
)
def test_hosts_of_the_controller(pod, host, hosts):
    found = changed(pod, f"controller: {{host: {host}}}")
    assert (found.controller_hosts, found.controller_host) == (hosts, hosts[0])
    assert (found.api_host, found.controller_port) == (",".join(hosts), 8090)


def test_a_host_without_a_value_is_that_of_the_server(pod):
    servers = ", servers: [{name: s1, roles: [controller]}]"
    for empty in ("host: ''", "port: 8090"):
        found = changed(pod, f"controller: {{{empty}}}", rack_tail=servers)
        assert found.controller_hosts == ("10.3.1.101",)


@pytest.mark.parametrize(
    ("host", "line", "message"),
    [
        ("[]", 5, "controller: the list 'host' is empty: add at least one name or address, or omit 'host'"),
        ("10.3.1.101,10.3.1.102", 5, "digit or ':'. Write several hosts as a list"),
        ("{first: 10.3.1.101}", 5, "controller: 'host' must be a single value or a list"),
        (
            "\n    - 10.3.1.101\n    - 10.3.1.101",
            7,
            "controller: host '10.3.1.101' is listed twice: remove one of them",
        ),
        ("[vipu1, VIPU1]", 5, "controller: host 'VIPU1' is listed twice"),
        ("['fd00::1', 'fd00:0::1']", 5, "controller: host 'fd00:0::1' is listed twice"),
        ("\n    - 10.3.1.101\n    - 'a b'", 7, "controller: invalid host 'a b': use 1 to 128 letters"),
        ("[10.3.1.101, '']", 5, "controller: invalid host '': use 1 to 128 letters"),
        ("[10.3.1.101, null]", 5, "controller: 'host' must be a list of single values"),
        ("[10.3.1.101, [10.3.1.102]]", 5, "controller: 'host' must be a list of single values"),
        ("[10.3.1.101, {host: 10.3.1.102}]", 5, "controller: 'host' must be a list of single values"),
        ("[vipu1, yes]", 5, "controller: 'host' contains a truth value of YAML: quote it"),
        ("['vipu1,vipu2']", 5, "controller: invalid host 'vipu1,vipu2': use 1 to 128 letters"),
        (
            "[vipu1, 'vipu2:8091']",
            5,
            "controller: host 'vipu2:8091' has a port: remove it, and set controller.port for all hosts",
        ),
        ("10.3.1.101:8090", 5, "controller: host '10.3.1.101:8090' has a port: remove it, and set controller.port"),
        ("'vipu1:'", 5, "controller: host 'vipu1:' has a port: remove it, and set controller.port"),
        ("http://10.3.1.101", 5, "controller: host 'http://10.3.1.101' is not a name or address: write the host only"),
        ("[a, 'http://b:1/x']", 5, "controller: host 'http://b:1/x' is not a name or address: write the host only"),
        ("yes", 5, "controller: 'host' is a truth value in YAML: quote it"),
    ],
)
def test_invalid_hosts_are_rejected_with_their_line(pod, host, line, message):
    with pytest.raises(PodError) as caught:
        changed(pod, f"controller:\n  host: {host}")
    assert (caught.value.line, caught.value.file) == (line, str(pod.pod_yml))
    assert message in caught.value.message


def test_one_run_shows_all_mistakes_of_the_controller(pod):
    with pytest.raises(PodError) as caught:
        changed(
            pod,
            "controller:\n  host: ['a:1', b, B]\n  port: 0",
            rack_tail=", servers: [{name: s1}]",
            tail="kubernetes: {}\n",
        )
    assert [(each.line, each.message.partition(": ")[2]) for each in caught.value.mistakes] == [
        (5, "host 'a:1' has a port: remove it, and set controller.port for all hosts"),
        (5, "host 'B' is listed twice: remove one of them"),
        (6, "invalid port 0: use 1 to 65535"),
    ]


def test_hosts_and_a_server_are_mutually_exclusive(pod):
    with pytest.raises(PodError, match="'server' and 'host' exclude each other"):
        changed(pod, "controller: {server: s1, host: [a, b]}", rack_tail=", servers: [{name: s1}]")


def test_the_inventory_has_the_addresses_in_the_form_of_the_modules(pod):
    changed(pod, SEVERAL)
    found = inventory(pod.pod_yml).vars("m1.1")
    addresses = "10.3.1.101,10.3.1.102,vipu3.pod.example"
    assert (found["vipu_api_host"], found["vipu_api_port"]) == (addresses, 8091)
    assert found["vipu_connection"] == {"api_host": addresses, "api_port": 8091}


def test_the_operator_gets_all_hosts(pod):
    found = changed(pod, SEVERAL, rack_tail=", servers: [{name: s1}]", tail="kubernetes: {}\n")
    [controller] = controllers(found, found.kubernetes)
    assert controller["host"] == "10.3.1.101|10.3.1.102|vipu3.pod.example"
    [parsed] = parse("{host}:{port}:{label}".format(**controller))
    assert (parsed.hosts, parsed.address) == (found.api_host, "10.3.1.101:8091")


def test_the_operator_accepts_no_ipv6_addresses_of_several_hosts(pod):
    content = {"rack_tail": ", servers: [{name: s1}]", "tail": "kubernetes: {}\n"}
    assert changed(pod, "controller: {host: 'fd00::1'}", **content).kubernetes is not None
    with pytest.raises(PodError, match="accepts no IPv6 addresses of several hosts: write names in"):
        changed(pod, "controller: {host: [vipu1, 'fd00::1']}", **content)


def test_control_instances_may_reach_all_hosts_in_the_gateway_network(pod):
    found = changed(pod, "controller: {host: [10.2.0.10, 10.3.1.101, 10.2.0.11, vipu3]}", tail="openstack: {}\n")
    rules = upstream(found)
    assert [(rule["remote"], rule["port"]) for rule in rules] == [("10.2.0.10/32", 8090), ("10.2.0.11/32", 8090)]
    [group] = [each for each in security_groups(found, found.cloud) if each["name"].endswith("-control-instance-gw")]
    assert all(rule in group["rules"] for rule in rules)
    assert upstream(replace(found, controller_hosts=("10.2.0.10",))) == rules[:1]
