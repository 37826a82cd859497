# SPDX-License-Identifier: GPL-3.0-or-later
"""A POD made known to a real Neutron, and read back by the modules of ``openstack.cloud``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from neutron_pod import Plan, run
from openstack.connection import Connection

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".cache/peers"
PEER_PYTHON = ROOT / ".cache/peers-openstack/bin/python"
TOLD = re.compile(r"^localhost \| SUCCESS => (?=\{)", re.MULTILINE)

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
    pytest.mark.skipif(
        not (PEERS / ".ready").exists() or not PEER_PYTHON.exists(),
        reason="needs make .cache/peers/.ready .cache/peers-openstack/.ready",
    ),
]


def peer(module: str, **options: Any) -> dict[str, Any]:
    """What a module of ``openstack.cloud`` tells."""
    line = [Path(sys.executable).with_name("ansible"), "localhost", "-i", "localhost,", "-c", "local"]
    line += ["-e", f"ansible_python_interpreter={PEER_PYTHON}"]
    ended = subprocess.run(
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
    told = TOLD.search(ended.stdout)
    assert told, ended.stdout + ended.stderr
    found: dict[str, Any] = json.JSONDecoder().raw_decode(ended.stdout, told.end())[0]
    return found


def test_what_the_collection_for_openstack_sees(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    config, tags = options["config"], [f"openipu.pod={plan.name}"]
    networks = {net["name"]: net for net in peer("networks_info")["networks"]}
    for asked in config["networks"]:
        told = networks[asked["name"]]
        assert (told["provider_segmentation_id"], told["tags"]) == (asked["vlan"], tags)
        for name in {"mtu", "dns_domain"} & set(asked):
            assert told[name] == asked[name]
    ids = {net["id"]: name for name, net in networks.items()}
    subnets = {sub["name"]: sub for sub in peer("subnets_info")["subnets"]}
    for asked in config["subnets"]:
        told = subnets[asked["name"]]
        assert (told["cidr"], ids[told["network_id"]]) == (asked["cidr"], asked["network"])
        assert told["dns_nameservers"] == asked.get("dns_servers", [])
    found = peer("port_info")["ports"]
    ports = {(ids[port["network_id"]], port["name"]): port for port in found if port["tags"] == tags}
    assert len(ports) == 12
    for asked in config["ports"]:
        told = ports[asked["network"], asked["name"]]
        assert (told["mac_address"], told["dns_name"]) == (asked["mac"], asked["dns_name"])
        assert [fixed["ip_address"] for fixed in told["fixed_ips"]] == asked["addresses"]
        assert told["is_port_security_enabled"] == asked.get("port_security", True)
    groups = {group["name"]: group for group in peer("security_group_info")["security_groups"]}
    for asked in config["security_groups"]:
        assert len(groups[asked["name"]]["security_group_rules"]) == len(asked["rules"])
    (router,) = peer("routers_info", name=plan.name)["routers"]
    assert router["external_gateway_info"]["network_id"] == admin.network.find_network(plan.external).id
    joined = [
        port for port in found if port["device_id"] == router["id"] and port["device_owner"].endswith("interface")
    ]
    assert {port["fixed_ips"][0]["ip_address"] for port in joined} == {"10.1.3.254", "10.1.5.254"}
    project = admin.identity.find_project("tenant-a", ignore_missing=False).id
    policies = peer("neutron_rbac_policies_info")["policies"]
    shared = {ids.get(policy["object_id"]) for policy in policies if policy["target_project_id"] == project}
    assert shared >= {share["name"] for share in config["shares"] if share["kind"] == "network"}
