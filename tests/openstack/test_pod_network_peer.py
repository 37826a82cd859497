# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a POD in a real Neutron, read by the modules of ``openstack.cloud``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests import ROOT
from tests.openstack.neutron_pod import Plan, run

PEERS = ROOT / ".cache/peers"
PEER_PYTHON = ROOT / ".cache/peers-openstack/bin/python"
RESULT = re.compile(r"^localhost \| SUCCESS => (?=\{)", re.MULTILINE)

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
    pytest.mark.skipif(
        not (PEERS / ".ready").exists() or not PEER_PYTHON.exists(),
        reason="needs make .cache/peers/.ready .cache/peers-openstack/.ready",
    ),
]


def peer(module: str, **options: Any) -> dict[str, Any]:
    """Run a module of ``openstack.cloud`` and return its result."""
    line = [Path(sys.executable).with_name("ansible"), "localhost", "-i", "localhost,", "-c", "local"]
    line += ["-e", f"ansible_python_interpreter={PEER_PYTHON}"]
    result = subprocess.run(
        [*line, "-m", f"openstack.cloud.{module}", *(["-a", json.dumps(options)] if options else [])],
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(PEERS),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    match = RESULT.search(result.stdout)
    assert match, result.stdout + result.stderr
    found: dict[str, Any] = json.JSONDecoder().raw_decode(result.stdout, match.end())[0]
    return found


def test_openstack_cloud_reads_the_same_objects(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    result = run(**options)
    assert not result.get("failed"), result
    config, tags = options["config"], [f"openipu.pod={plan.name}"]
    networks = {net["name"]: net for net in peer("networks_info")["networks"]}
    for desired in config["networks"]:
        actual = networks[desired["name"]]
        assert (actual["id"], actual["tags"]) == (result["ids"]["networks"][desired["name"]], tags)
        if "vlan" in desired:  # Neutron selects that of the control network
            assert actual["provider_segmentation_id"] == desired["vlan"]
        for name in {"mtu", "dns_domain"} & set(desired):
            assert actual[name] == desired[name]
    ids = {net["id"]: name for name, net in networks.items()}
    subnets = {sub["name"]: sub for sub in peer("subnets_info")["subnets"]}
    for desired in config["subnets"]:
        actual = subnets[desired["name"]]
        assert (actual["cidr"], ids[actual["network_id"]]) == (desired["cidr"], desired["network"])
        assert actual["dns_nameservers"] == desired.get("dns_servers", [])
    found = peer("port_info")["ports"]
    ports = {(ids[port["network_id"]], port["name"]): port for port in found if port["tags"] == tags}
    assert len(ports) == 12
    for desired in config["ports"]:
        actual = ports[desired["network"], desired["name"]]
        assert (actual["mac_address"], actual["dns_name"]) == (desired["mac"], desired["dns_name"])
        assert [fixed["ip_address"] for fixed in actual["fixed_ips"]] == desired["addresses"]
        assert actual["is_port_security_enabled"] == desired.get("port_security", True)
    groups = {group["name"]: group for group in peer("security_group_info")["security_groups"]}
    for desired in config["security_groups"]:
        assert len(groups[desired["name"]]["security_group_rules"]) == len(desired["rules"])
    (router,) = peer("routers_info", name=plan.name)["routers"]
    assert router["external_gateway_info"]["network_id"] == admin.network.find_network(plan.external).id
    interfaces = [
        port for port in found if port["device_id"] == router["id"] and port["device_owner"].endswith("interface")
    ]
    assert {port["fixed_ips"][0]["ip_address"] for port in interfaces} == {"10.4.0.254", "10.1.5.254"}
    project = admin.identity.find_project("tenant-a", ignore_missing=False).id
    policies = peer("neutron_rbac_policies_info")["policies"]
    shared = {ids.get(policy["object_id"]) for policy in policies if policy["target_project_id"] == project}
    assert shared >= {share["name"] for share in config["shares"] if share["kind"] == "network"}
