# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules by which devices become bare-metal nodes: settings of their BMCs, states, and what a run reports before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.device_nodes import (
    Device,
    bmc_settings,
    busy_machines,
    complete,
    nodes,
    skipped,
    undefined_variables,
)
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

ACCOUNT = {"username": "root", "password": "hidden"}
EMPTY = {"username": "", "password": "", "ca_path": ""}
OWN = {"address": "https://a", "system_id": "/S/1", "ca_path": "/own.pem", "validate_certs": True}


class Undefined(str):
    """Name of an undefined variable, in place of a value. Its evaluation fails the test."""


class Variables(dict[str, Any]):
    """Variables of a host, without templates."""

    def value(self, name: str, keys: Sequence[str] | None = None) -> Any:
        value = self.get(name)
        if keys is not None and isinstance(value, dict):
            value = {key: value[key] for key in keys if key in value}
        read = list(value.values()) if isinstance(value, dict) else [value]
        assert not [each for each in read if isinstance(each, Undefined)], f"{name} was evaluated"
        return value

    def undefined(self, name: str, keys: Sequence[str] | None = None) -> list[tuple[str, str]]:
        value = self.get(name)
        if not isinstance(value, dict):
            uses = [(value, name)]
        elif keys is None:
            uses = [(text, name) for text in value.values()]
        else:
            uses = [(value[key], f"{name}.{key}") for key in keys if key in value]
        return [(str(text), use) for text, use in uses if isinstance(text, Undefined)]


def machine(name: str = "ipum01", **variables: Any) -> Device:
    return Device(f"host-{name}", name, True, Variables(variables))


def server(name: str = "server1", **variables: Any) -> Device:
    return Device(f"host-{name}", name, False, Variables(variables))


@pytest.mark.parametrize(
    ("group", "own", "settings"),
    [
        (ACCOUNT, {}, ACCOUNT),
        (ACCOUNT, OWN, {**OWN, **ACCOUNT}),
        (
            {**ACCOUNT, "ca_path": "/group.pem", "system_id": "/S/g"},
            OWN,
            {**OWN, **ACCOUNT, "ca_path": "/group.pem", "system_id": "/S/g"},
        ),
        # Settings that a credential of AWX does not have are empty.
        ({**ACCOUNT, "ca_path": ""}, OWN, {**OWN, **ACCOUNT}),
        ({**ACCOUNT, "password": ""}, {}, {"username": "root"}),
    ],
)
def test_settings_of_a_group_are_completed_by_those_of_the_device(group, own, settings):
    assert complete(group, own) == settings


@pytest.mark.parametrize("verifies", [False, "no", "false", 0, None])
def test_a_device_that_is_not_verified_gets_no_ca_of_its_group(verifies):
    group = {**ACCOUNT, "ca_path": "/group.pem"}
    assert complete(group, {"validate_certs": verifies}) == {**ACCOUNT, "validate_certs": verifies}
    assert complete({**group, "validate_certs": False}, {}) == {**group, "validate_certs": False}


@pytest.mark.parametrize("verifies", [True, "yes", 1])
def test_a_device_that_is_verified_gets_the_ca_of_its_group(verifies):
    settings = complete({**ACCOUNT, "ca_path": "/group.pem"}, {"validate_certs": verifies})
    assert settings == {**ACCOUNT, "ca_path": "/group.pem", "validate_certs": verifies}


def test_each_kind_of_device_has_a_variable_for_its_group():
    variables = {"openstack_machine_bmc": {"username": "m"}, "openstack_server_bmc": {"username": "s"}}
    assert bmc_settings(machine(**variables)) == {"username": "m"}
    assert bmc_settings(server(**variables)) == {"username": "s"}


@pytest.mark.parametrize("missing", [{}, {"openstack_machine_bmc": None}, {"openstack_server_bmc": ACCOUNT}])
def test_without_settings_of_its_group_a_device_has_its_own(missing):
    assert bmc_settings(machine(openstack_bmc={**ACCOUNT, **OWN}, **missing)) == {**ACCOUNT, **OWN}
    assert bmc_settings(machine(openstack_bmc={}, **missing)) == {}
    assert bmc_settings(machine(openstack_bmc=None, **missing)) is None
    assert bmc_settings(machine(**missing)) is None


@pytest.mark.parametrize("group", [{}, {"openstack_machine_bmc": None}])
@pytest.mark.parametrize(
    "run", [bmc_settings, lambda device: skipped([device]), lambda device: nodes([device], {}, (), "")]
)
def test_an_empty_text_is_no_bmc_without_credentials(group, run):
    with pytest.raises(UserError) as caught:
        run(machine(openstack_bmc="", **group))
    assert caught.value.message == (
        "Cannot register host 'host-ipum01': openstack_bmc is empty. Set username and password in it. To skip the "
        "host, remove openstack_bmc; for a BMC without authentication, set it to {}."
    )
    assert bmc_settings(machine(openstack_bmc="", openstack_machine_bmc=ACCOUNT)) == ACCOUNT


@pytest.mark.parametrize("group", [EMPTY, {}, "", {"password": "hidden"}])
def test_without_the_user_name_of_its_group_a_device_is_skipped(group):
    """Its own settings are not evaluated."""
    device = machine(openstack_machine_bmc=group, openstack_bmc={"system_id": Undefined("serial")})
    assert bmc_settings(device) is None
    assert undefined_variables([device], "inventory") == []


def test_an_account_that_is_replaced_is_not_evaluated():
    """A job of AWX does not have the vault of the inventory."""
    own = {"username": Undefined("vault_user"), "password": Undefined("vault_password"), "system_id": "/S/1"}
    device = machine(openstack_bmc=own, openstack_machine_bmc=ACCOUNT)
    assert bmc_settings(device) == {**ACCOUNT, "system_id": "/S/1"}
    assert undefined_variables([device], "inventory") == []
    assert bmc_settings(machine(openstack_bmc=own, openstack_machine_bmc=EMPTY)) is None


@pytest.mark.parametrize("name", ["openstack_bmc", "openstack_machine_bmc"])
@pytest.mark.parametrize("value", ["s3cret", ["s3cret"], 1])
def test_settings_of_another_type_are_rejected_without_their_value(name, value):
    with pytest.raises(UserError) as caught:
        bmc_settings(machine(**{"openstack_machine_bmc": ACCOUNT, name: value}))
    assert caught.value.message == (
        f"Cannot read the BMC of host 'host-ipum01': {name} is not a dictionary. "
        "Set username, password and others in it."
    )


def test_undefined_variables_are_reported_with_their_use_and_hosts():
    account = {"username": Undefined("vault_user"), "password": Undefined("vault_password")}
    devices = [
        machine("ipum01", openstack_bmc=account),
        machine("ipum02", openstack_bmc={**account, "username": "own"}),
        machine("ipum03", openstack_machine_bmc={"password": Undefined("vault_password")}, openstack_bmc=account),
        machine("ipum04"),
        server(openstack_bmc={"username": Undefined("vault_user"), "password": Undefined("vault_user")}),
    ]
    assert undefined_variables(devices, "inventory") == [
        "vault_user (used in openstack_bmc of host-ipum01, host-server1)",
        "vault_password (used in openstack_bmc of host-ipum01, host-ipum02)",
        "vault_password (used in openstack_machine_bmc of host-ipum03)",
    ]


@pytest.mark.parametrize(
    ("group", "found"),
    [
        (ACCOUNT, ["serial (used in openstack_bmc.system_id of host-ipum01)"]),
        (EMPTY, []),
        (None, [f"{name} (used in openstack_bmc of host-ipum01)" for name in ("vault_password", "serial")]),
    ],
)
def test_only_settings_that_are_used_must_be_defined(group, found):
    own = {"password": Undefined("vault_password"), "system_id": Undefined("serial")}
    assert undefined_variables([machine(openstack_machine_bmc=group, openstack_bmc=own)], "inventory") == found


def test_settings_that_are_one_template_are_reported_once():
    device = machine(openstack_machine_bmc=ACCOUNT, openstack_bmc=Undefined("vault_bmc"))
    assert undefined_variables([device], "inventory") == ["vault_bmc (used in openstack_bmc of host-ipum01)"]


@pytest.mark.parametrize(
    ("settings", "answer", "found"),
    [
        ({"openstack_bmc": ACCOUNT}, "inventory", ["state"]),
        ({"openstack_bmc": {"password": Undefined("vault_password")}}, "inventory", ["vault_password", "state"]),
        ({"openstack_bmc": ACCOUNT}, "available", []),
        ({}, "inventory", []),  # the server is skipped
    ],
)
def test_the_state_of_a_server_must_be_defined_if_it_is_used(settings, answer, found):
    texts = undefined_variables([server(openstack_server_state=Undefined("state"), **settings)], answer)
    assert [text.partition(" ")[0] for text in texts] == found
    assert (
        undefined_variables([machine(openstack_server_state=Undefined("state"), openstack_bmc=ACCOUNT)], answer) == []
    )


def test_hosts_of_devices_without_settings_are_skipped():
    devices = [
        machine("ipum01"),
        machine("ipum02", openstack_bmc={}),
        machine("ipum03", openstack_bmc=None),
        server(openstack_server_bmc=EMPTY),
    ]
    assert skipped(devices) == ["host-ipum01", "host-ipum03", "host-server1"]


def test_nodes_are_those_of_the_pod_with_settings_of_their_bmcs():
    pod_nodes = {
        name: {"name": name, "state": "manageable", "disable_power_off": True, "bmc": {"address": f"10.1.1.{number}"}}
        for number, name in enumerate(("ipum01", "ipum02", "ipum03", "server1"), 1)
    }
    devices = [
        machine("ipum02", openstack_bmc={**ACCOUNT, "address": "https://other"}),
        machine("ipum01", openstack_bmc=ACCOUNT),
        machine("ipum03"),
        server(openstack_bmc=ACCOUNT),
    ]
    found = nodes(devices, pod_nodes, ["ipum01"], "available")
    assert [node["name"] for node in found] == ["ipum02", "ipum01", "server1"]
    assert [node["bmc"]["address"] for node in found] == ["https://other", "10.1.1.1", "10.1.1.4"]
    assert [node["disable_power_off"] for node in found[:2]] == [True, False]
    assert [node["state"] for node in found] == ["manageable", "manageable", "available"]
    assert pod_nodes["ipum02"]["bmc"] == {"address": "10.1.1.2"}  # the description stays


@pytest.mark.parametrize(
    ("answer", "variables", "state"),
    [
        ("inventory", {}, "manageable"),
        ("inventory", {"openstack_server_state": None}, "manageable"),
        ("inventory", {"openstack_server_state": "available"}, "available"),
        ("manageable", {"openstack_server_state": "available"}, "manageable"),
        ("manageable", {"openstack_server_state": Undefined("vault_state")}, "manageable"),
    ],
)
def test_the_survey_may_keep_the_state_of_the_inventory(answer, variables, state):
    pod_nodes = {"server1": {"name": "server1", "bmc": {}}}
    (node,) = nodes([server(openstack_bmc=ACCOUNT, **variables)], pod_nodes, [], answer)
    assert node["state"] == state


def test_machines_with_partitions_are_busy():
    devices = [machine(f"ipum0{number}", pod_agent_id=f"ag0{number}") for number in (1, 2, 3, 4)]
    partitions = {"ag01": ["p1", "p2"], "ag02": [], "ag03": ["p3"]}
    assert busy_machines(devices, ["ipum01", "ipum02", "ipum04"], partitions) == ["ipum01 (p1, p2)"]


def test_the_partitions_of_a_machine_without_an_agent_are_unknown():
    partitions = {"ag01": ["p1"]}
    assert busy_machines([machine("ipum01")], ["ipum02"], partitions) == []
    with pytest.raises(UserError) as caught:
        busy_machines([machine("ipum01")], ["ipum01"], partitions)
    assert caught.value.message == (
        "Cannot check the partitions of host 'host-ipum01': it has no variable pod_agent_id. "
        "Set pod_agent_id, or remove the host from the group machines."
    )
