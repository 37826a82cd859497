# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of module documentation: valid examples, action groups, and options for all fields of the API."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc

from tests import ROOT

BIN = Path(sys.executable).parent
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
TEMPLATE = re.compile(r"\{\{.*\}\}")


def spec(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the argument spec of a module and its constraints, as its action plugin declares them."""
    action = importlib.import_module(f"ansible_collections.openipu.pod.plugins.action.{name}").ActionModule
    task = getattr(action, "task", action)
    return task.argument_spec, task.constraints


def documents(name: str, part: str) -> Any:
    """Return a documentation string of a module as data."""
    module = importlib.import_module(f"ansible_collections.openipu.pod.plugins.modules.{name}")
    return yaml.safe_load(getattr(module, part))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_valid_tasks(name: str) -> None:
    used = 0
    for task in documents(name, "EXAMPLES"):
        for module, options in task.items():
            if not module.startswith("openipu.pod."):
                continue
            used += module == f"openipu.pod.{name}"
            argument_spec, constraints = spec(module.rpartition(".")[2])
            assert set(options) <= set(argument_spec), f"{name}: {set(options) - set(argument_spec)}"
            values = {key: _evaluated(value, argument_spec[key]) for key, value in options.items()}
            errors = ArgumentSpecValidator(argument_spec, **constraints).validate(values).error_messages
            assert not errors, f"{name}: {errors}"
    assert used, f"no example uses {name}"


def _templated(value: Any) -> bool:
    return isinstance(value, str) and bool(TEMPLATE.search(value))


def _evaluated(value: Any, option: dict[str, Any]) -> Any:
    """Return the value of an option with samples in place of templates, also in its suboptions."""
    if _templated(value):
        return _sample(option)
    if "options" in option and isinstance(value, list):
        return [{key: _evaluated(each, option["options"][key]) for key, each in item.items()} for item in value]
    return value


def _sample(option: dict[str, Any]) -> Any:
    """Return a valid value for an option whose value is a template."""
    if option.get("choices"):
        return option["choices"][0]
    return {"int": 1, "float": 1.0, "bool": True, "list": [], "dict": {}}.get(option.get("type", "str"), "x")


@pytest.mark.parametrize("name", MODULES)
def test_documentation_of_every_module(name: str) -> None:
    documentation = documents(name, "DOCUMENTATION")
    fragments = documentation["extends_documentation_fragment"]
    assert any(fragment.startswith("openipu.pod.attributes") for fragment in fragments)
    assert documentation["version_added"] == "0.1.0"
    assert (ROOT / f"plugins/action/{name}.py").exists()


def test_documentation_with_its_fragments() -> None:
    """Ansible reads the last part of a fragment's name as a file, if there is one."""
    command = [str(BIN / "ansible-doc"), "--json", *(f"openipu.pod.{name}" for name in MODULES)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    groups = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]
    shown = json.loads(output)
    assert len(shown) == len(MODULES)
    for name in MODULES:
        document = shown[f"openipu.pod.{name}"]["doc"]
        expected = [f"openipu.pod.{group}" for group, members in groups.items() if name in members]
        assert document["attributes"].get("action_group", {}).get("membership", []) == expected, name
        notes = document.get("notes", [])
        assert len(notes) == len(set(notes)), name


# Fields of requests without an option, and the reason.
EXCEPTIONS = {
    ("ApplyRequest", "users"): "a bulk task has no file for the key; vipu_user writes it to a file",
    ("GetPartitionIpuofConfigRequest", "gcd_id"): "one call returns all GCDs, and the option gcd selects one",
    ("DrainAgentRequest", "validate_only"): "check mode sets it",
    ("AddCertificateRequest", "certificate"): "vipu-admin registers certificates of other authorities",
    ("ListPartitionsRequest", "allocation_id"): "all partitions are read in one call",
    ("ListIPUAttributesRequest", "agents"): "one call returns those of all agents",
}
# Requests that no module makes, and the reason.
UNUSED = {
    "CreateAgentRequest": "the batch takes the same spec",
    "AddDiscoveredAgentsRequest": "playbooks list the agents and register those they expect with vipu_agent",
    "CreateClusterRequest": "the batch takes the same spec",
    "CreateAllocationRequest": "the batch takes the same spec",
    "CreateUserRequest": "the batch takes the same spec",
    "RemoveRequest": "the batch takes the same in its removals",
    "GetAgentRequest": "all agents are read in one call",
    "GetClusterRequest": "all clusters are read in one call",
    "GetAllocationRequest": "all allocations are read in one call",
    "SetAgentServiceRequest": "vipu_agent sets the state with the spec",
    "TakeOverAgentRequest": "vipu_agent takes agents over with the spec",
    "ListQuarantineRequest": "administrators list IPUs in quarantine with vipu-admin",
    "ReleaseQuarantineRequest": "administrators release IPUs with vipu-admin",
    "GetClusterTestRequest": "vipu_cluster_test sets its fields while it waits",
    "StopClusterTestRequest": "there is one run at a time, which is read before it is stopped",
    "WatchRequest": "tasks read the present state and do not wait for events",
}
# Fields of requests and the options that set them.
OPTIONS = {
    "AgentSpec": (
        "vipu_agent",
        {
            "id": "id",
            "host": "host",
            "port": "port",
            "take_over": "take_over",
            "service": "in_service",
            "service_reason": "service_reason",
        },
    ),
    "DrainAgentRequest": (
        "vipu_agent_drain",
        {"id": "id", "service_reason": "service_reason", "force": "force"},
    ),
    "ClusterSpec": (
        "vipu_cluster",
        {
            "id": "id",
            "agent_ids": "agents",
            "num_ilds": "num_ilds",
            "ipu_link_topology": "topology",
            "gw_link_topology": "cluster_topology",
        },
    ),
    "AllocationSpec": (
        "vipu_allocation",
        {"id": "id", "cluster_id": "cluster", "size": "size", "agent_ids": "agents"},
    ),
    "AddCertificateRequest": ("vipu_user", {"user_id": "id", "signing_request": "certificate"}),
    "ListCertificatesRequest": ("vipu_user", {"user_id": "id"}),
    "RevokeCertificateRequest": ("vipu_user", {"user_id": "id", "key": "revoked_certificates"}),
    "UserSpec": (
        "vipu_user",
        {"id": "id", "role": "role", "allocation_ids": "allocations", "all_allocations": "allocations"},
    ),
    "ApplyRequest": (
        "vipu_pod",
        {
            "agents": "agents",
            "clusters": "clusters",
            "allocations": "allocations",
            "partitions": "partitions",
            "removals": "prune",
            "validate_only": "validate",
        },
    ),
    "PartitionRequirements": (
        "vipu_partition",
        {
            "id": "id",
            "size": "size",
            "cluster_id": "cluster",
            "ipulink_routing_type": "routing",
            "num_ipulink_segments": "num_segments",
            "gw_routing_type": "gw_routing",
            "sync_type": "sync_type",
            "num_gcds": "num_gcds",
            "reconfigurable": "reconfigurable",
            "num_replicas": "num_replicas",
            "allocation_id": "allocation",
            "ipus": "ipus",
        },
    ),
    "CreatePartitionRequest": (
        "vipu_partition",
        {"requirements": "size", "disable_auto_reset": "disable_auto_reset", "relocatable": "relocatable"},
    ),
    "ResetPartitionRequest": ("vipu_partition", {"partition_id": "id", "relocatable": "relocatable"}),
    "RemovePartitionRequest": ("vipu_partition", {"partition_id": "id", "force": "force"}),
    "GetPartitionIpuofConfigRequest": ("vipu_ipuof_config", {"partition_id": "id"}),
    "GcdID": ("vipu_ipuof_config", {"id": "gcd"}),
    "PartitionSpec": (
        "vipu_partition",
        {"requirements": "size", "disable_auto_reset": "disable_auto_reset", "relocatable": "relocatable"},
    ),
    "PartitionIpu": (
        "vipu_partition.ipus",
        {
            "ipulink_domain_topology_id": "ild",
            "ipulink_domain_routing_id": "ild_routing_id",
            "topology_id": "topology_id",
            "routing_id": "routing_id",
        },
    ),
    "ObjectRef": ("vipu_pod", {"kind": "prune", "id": "prune", "force": "force"}),
    "StartClusterTestRequest": ("vipu_cluster_test", {"cluster_id": "cluster", "tests": "tests"}),
    "GetPartitionStatusRequest": ("vipu_partition_info", {"partition_id": "id"}),
    "CountFitsRequest": ("vipu_info", {"allocation_id": "gather_subset", "sizes": "sizes"}),
    "ListPartitionOptionsRequest": ("vipu_partition_info", {"partition_ids": "id"}),
    "SetPartitionOptionsRequest": (
        "vipu_partition",
        {"partition_id": "id", "disable_auto_reset": "disable_auto_reset", "relocatable": "relocatable"},
    ),
    "ListPartitionsRequest": ("vipu_partition_info", {}),
    "ListIPUAttributesRequest": ("vipu_info", {}),
}


SERVICES = [(virmgrpc, "UserService"), (virmgrpc, "VersionService"), (admin, "AdminService"), (admin, "TenantService")]


def requests() -> dict[str, Any]:
    """Return the descriptors of all requests that modules make, and of the messages in them, by name."""
    found: dict[str, Any] = {}
    waiting = [method.input_type for package, name in SERVICES for method in package.service(name).methods]
    while waiting:
        message = waiting.pop()
        if message.name in UNUSED or message.name in found:
            continue
        found[message.name] = message
        waiting += [field.message_type for field in message.fields if field.message_type]
    return {name: message for name, message in found.items() if message.fields}


@pytest.mark.parametrize("message", requests().values(), ids=lambda message: message.name)
def test_every_field_of_a_request_has_its_option(message: Any) -> None:
    assert message.name in OPTIONS, f"{message.name}: add it to OPTIONS or to UNUSED"
    location, options = OPTIONS[message.name]
    module, _dot, option = location.partition(".")
    exceptions = {field for name, field in EXCEPTIONS if name == message.name}
    assert {field.name for field in message.fields} == set(options) | exceptions
    known = spec(module)[0][option]["options"] if option else spec(module)[0]
    assert set(options.values()) <= set(known)


def test_lists_have_no_obsolete_entries() -> None:
    named = {method.input_type.name for package, name in SERVICES for method in package.service(name).methods}
    assert set(UNUSED) <= named
    assert set(OPTIONS) <= set(requests())
    assert {name for name, _field in EXCEPTIONS} <= set(requests())


# Options of a port that those of a server do not have, and the reason.
NOT_OF_SERVERS = {
    "mac": "Neutron chooses it",
    "dns_name": "Nova sets it to the name of the server",
    "description": "the name of the port contains that of the server",
    "admin_state_up": "the port of a server is always up",
}
SUFFIX = "name"  # of a port of a server: another meaning than the name of a port


def test_ports_of_servers_have_the_options_of_ports() -> None:
    fragment = importlib.import_module("ansible_collections.openipu.pod.plugins.doc_fragments.openstack_network")
    config = yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"]["config"]["suboptions"]
    ports = config["ports"]["suboptions"]
    servers = documents("openstack_pod_server", "DOCUMENTATION")["options"]["servers"]["suboptions"]
    networks = servers["networks"]["suboptions"]
    assert set(networks) == set(ports) - set(NOT_OF_SERVERS)
    assert set(NOT_OF_SERVERS) <= set(ports)
    in_ports = yaml.safe_load(yaml.safe_dump(networks).replace("servers[].networks[]", "config.ports[]"))
    for name in set(networks) - {SUFFIX, "network"}:
        assert in_ports[name] == ports[name], name

    spec_ports = spec("openstack_pod_network")[0]["config"]["options"]["ports"]["options"]
    spec_networks = spec("openstack_pod_server")[0]["servers"]["options"]["networks"]["options"]
    assert set(spec_networks) == set(networks)
    for name in set(networks) - {SUFFIX}:
        assert spec_networks[name] == spec_ports[name], name
