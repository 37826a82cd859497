# SPDX-License-Identifier: GPL-3.0-or-later
"""The key ``teams`` of pod.yml: one quota for V-IPU, Kubernetes and OpenStack, and errors with line and remedy."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError

from tests.unit.collection.pod.inventories import value

SERVERS = ", servers: [{name: server1, roles: [controller, poplar]}]"
PLACES = "kubernetes: {}\nopenstack: {}\n"  # lines 9 and 10
TEAMS = """
teams:
  - {name: vision, ipus: 12, namespace: vision-jobs, project: Vision}
  - {name: speech, ipus: 2, project: speech, instances: 5}
  - {name: guests, ipus: 16}
"""


def test_one_declaration_serves_orders_namespaces_and_projects(pod):
    path = pod.write(rack_tail=SERVERS, tail=PLACES + TEAMS)
    shown = value(path, "server1", "[pod_teams, pod_kubernetes_quotas, pod_openstack_projects]")
    assert shown == [
        {
            "vision": {"ipus": 12, "namespace": "vision-jobs", "project": "Vision"},
            "speech": {"ipus": 2, "project": "speech"},
            "guests": {"ipus": 16},
        },
        [{"namespace": "vision-jobs", "ipus": 12}],
        [
            {"name": "Vision", "quotas": {"compute": {"instances": 3}}},
            {"name": "speech", "quotas": {"compute": {"instances": 5}}},
        ],
    ]


def test_a_pod_without_the_key_has_no_teams(pod):
    assert pod.load(tail=PLACES, rack_tail=SERVERS).teams == ()


@pytest.mark.parametrize(
    ("team", "message"),
    [
        ("{name: vision}", "team 'vision': 'ipus' is missing: add it"),
        ("{name: vision, ipu: 4}", "team 'vision': unknown key 'ipu': did you mean 'ipus'?"),
        ("{name: vision.a, ipus: 4}", "invalid name 'vision.a': use 1 to 31 letters, digits, '_' or '-'"),
        ("{name: %s, ipus: 4}" % ("v" * 32), "use 1 to 31 letters"),
        ("{name: vision, ipus: many}", "'ipus' must be a number, not 'many'"),
        ("{name: vision, ipus: 0}", "team 'vision': the quota must be 1 to 16 IPUs, the IPUs of the POD, not 0"),
        ("{name: vision, ipus: 17}", "team 'vision': the quota must be 1 to 16 IPUs, the IPUs of the POD, not 17"),
        ("{name: vision, ipus: 4, namespace: Vision}", "invalid namespace 'Vision': use 1 to 63 lower-case letters"),
        ("{name: vision, ipus: 4, instances: 1}", "'instances' limits the VMs of a project: set 'project'"),
        ("{name: vision, ipus: 4, project: a, instances: -1}", "invalid instances -1: use 0 to"),
        ("{name: other, ipus: 4}", "team 'other' is used twice, in line 12 and line 13: use different names"),
        (
            "{name: vision, ipus: 4, namespace: o}",
            "namespace o is used by both team 'other' (line 12) and team 'vision'",
        ),
        ("{name: vision, ipus: 4, project: o}", "project o is used by both team 'other' (line 12) and team 'vision'"),
    ],
)
def test_mistakes_have_line_and_remedy(pod, team: str, message: str):
    first = "teams:\n  - {name: other, ipus: 4, namespace: o, project: o}\n"
    with pytest.raises(PodError) as caught:
        pod.load(rack_tail=SERVERS, tail=f"{PLACES}{first}  - {team}\n")
    assert caught.value.line == 13
    assert message in str(caught.value)


@pytest.mark.parametrize(("key", "required"), [("namespace", "kubernetes"), ("project", "openstack")])
def test_a_place_needs_its_key(pod, key: str, required: str):
    with pytest.raises(PodError, match=f"the POD has no key '{required}': add it, or remove '{key}'"):
        pod.load(rack_tail=SERVERS, tail=f"teams: [{{name: vision, ipus: 4, {key}: vision}}]\n")


def test_an_allocation_of_the_project_must_fit_into_the_quota(pod):
    tail = (
        "allocations: [{id: a, cluster: cl, machines: [m1.1, m1.2]}]\n"
        "openstack: {tenants: [{project: vision, vlan: 21, allocation: a}]}\n"
        "teams: [{name: vision, ipus: %d, project: vision}]\n"
    )
    assert pod.load(tail=tail % 8).teams[0].ipus == 8
    with pytest.raises(PodError, match="the allocation of project 'vision' has 8 IPUs: raise 'ipus', or reduce"):
        pod.load(tail=tail % 7)


def test_other_mistakes_are_reported_without_consequences(pod):
    tail = "openstack: {tenants: 3}\nteams: [{name: vision, ipus: 4, project: vision}]\n"
    with pytest.raises(PodError, match="'tenants' must be a list") as caught:
        pod.load(tail=tail)
    assert len(caught.value.mistakes) == 1
