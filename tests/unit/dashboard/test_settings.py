# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting OPENIPU_POD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import openstack_networks
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.teams import quotas

from openipu.dashboard.settings import Settings, SettingsError, parse
from tests.unit.collection.pod.conftest import PodFiles

AWX = {"url": "https://awx.example.com", "token_file": "/etc/token", "poplar_servers": ["server1"]}


def test_ordering_is_off_by_default() -> None:
    assert parse({}) == Settings()
    found = parse({"credentials": "/etc/pod"})
    assert found.awx is None
    assert found.operator_file == Path("/etc/pod/operator.vipu-cli.hcl")
    assert (Settings().operator_file, Settings().project_file("a1")) == (None, None)


def test_awx_has_the_names_of_its_content() -> None:
    found = parse({"awx": AWX}).awx
    assert found
    assert (found.order, found.release, found.domain) == ("Order a vPOD", "Destroy a vPOD", "default")


def test_quotas_and_tenants_are_variables_of_the_inventory(tmp_path: Path) -> None:
    """The files of a POD have both kinds of tenants, and a team without a project."""
    files = PodFiles(tmp_path)
    tenants = "openstack: {tenants: [{project: own, vlan: 300, allocation: fixed}]}\n"
    teams = "teams:\n- {name: red, ipus: 8, project: research}\n- {name: blue, ipus: 4}\n"
    allocations = "allocations: [{id: fixed, cluster: cl, machines: [m1.1]}]\n"
    pod = load(str(files.write(tail=tenants + teams + allocations)))
    assert pod.cloud
    found = parse({"teams": quotas(pod.teams), "tenants": openstack_networks.tenants(pod, pod.cloud)})
    assert [found.quota(name) for name in ("research", "red", "other")] == [("red", 8), None, None]
    assert "allocation" in found.tenant("own")
    assert found.tenant("research") == found.tenant("other") != found.tenant("own")
    assert (Settings().quota("research"), Settings().tenant("research")) == (None, {})


@pytest.mark.parametrize("url", ["http://localhost:8052", "http://127.0.0.1/awx", "http://[::1]:1", "https://a:1/b/"])
def test_addresses_of_awx(url: str) -> None:
    found = parse({"awx": {**AWX, "url": url}}).awx
    assert found and found.url == url


def test_roles_of_changes() -> None:
    assert list(Settings().roles) == ["member", "admin"]
    assert parse({"roles": ["tenant"], "awx": AWX}).roles == ["tenant"]


@pytest.mark.parametrize(
    "project", ["", ".", "..", "../operator", "a/b", "a\0b", "a\nb", "x" * 65, "operator.x", "operator"]
)
def test_other_projects_have_no_file(project: str) -> None:
    assert Settings("/etc/pod").project_file(project) is None


def test_a_project_has_a_file() -> None:
    assert Settings("/etc/pod").project_file("0a1b") == Path("/etc/pod/0a1b.vipu-cli.hcl")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "Cannot use OPENIPU_POD: it is not a mapping."),
        (
            {"credential": "/etc"},
            "OPENIPU_POD['credential']: it is unknown. Use one of credentials, roles, awx, teams, tenants.",
        ),
        ({"roles": "member"}, "OPENIPU_POD['roles']: it is not a list of texts."),
        ({"credentials": 1}, "OPENIPU_POD['credentials']: it is not a text."),
        ({"awx": 1}, "OPENIPU_POD['awx']: it is not a mapping."),
        ({"teams": [{"name": "red"}]}, "OPENIPU_POD['teams']: it is not a mapping."),
        ({"teams": {"red": 4}}, "OPENIPU_POD['teams']['red']: it is not a mapping."),
        ({"teams": {"red": {}}}, "OPENIPU_POD['teams']['red']['ipus']: it is not a number."),
        ({"teams": {"red": {"ipus": "4"}}}, "OPENIPU_POD['teams']['red']['ipus']: it is not a number."),
        ({"teams": {"red": {"ipus": True}}}, "OPENIPU_POD['teams']['red']['ipus']: it is not a number."),
        ({"tenants": {"*": []}}, "OPENIPU_POD['tenants']['*']: it is not a mapping."),
        ({"awx": {"url": "https://awx"}}, "OPENIPU_POD['awx']: token_file, poplar_servers is missing."),
        ({"awx": {**AWX, "timeout": "5"}}, "OPENIPU_POD['awx']['timeout']: it is not a number."),
        ({"awx": {**AWX, "timeout": True}}, "OPENIPU_POD['awx']['timeout']: it is not a number."),
        ({"awx": {**AWX, "poplar_servers": []}}, "OPENIPU_POD['awx']['poplar_servers']: it is empty."),
        ({"awx": {**AWX, "poplar_servers": [1]}}, "OPENIPU_POD['awx']['poplar_servers']: it is not a list of texts."),
        ({"awx": {**AWX, "url": "awx"}}, "OPENIPU_POD['awx']['url']: it is not an address."),
        ({"awx": {**AWX, "url": "https://[awx"}}, "OPENIPU_POD['awx']['url']: it is not an address."),
        ({"awx": {**AWX, "url": "https://a b"}}, "OPENIPU_POD['awx']['url']: it is not an address."),
        ({"awx": {**AWX, "url": "http://awx.example.com"}}, "OPENIPU_POD['awx']['url']: it is not encrypted."),
        ({"awx": {**AWX, "url": "http://localhost.example.com"}}, "it is not encrypted."),
        ({"awx": {**AWX, "url": "http://127.0.0.1@awx.example.com"}}, "it is not encrypted."),
    ],
)
def test_mistakes_are_named(value: Any, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(value)
    assert message in raised.value.message
