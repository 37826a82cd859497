# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses without ports, as a killed Neutron leaves them in its database, and the documented remedies."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.neutron_pod import AccessLog, Plan, run
from tools.openstack.site import CHECKOUT, PORTS, Secrets, Site

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

ADDRESSES = ("10.1.5.1", "10.1.5.2")
PORT_NAMES = ("ipum01-rnic", "ipum02-rnic")

Database = Callable[[str], list[str]]


@pytest.fixture
def database(cloud: Path) -> Database:
    """Return a function that executes a statement in the database of Neutron and returns the rows."""
    site = Site(cloud, Secrets.read(cloud / "secrets.json"))
    command = ["mariadb", f"--host={site.address}", f"--port={PORTS['mariadb']}", "--user=openstack"]
    environment = {**os.environ, "MYSQL_PWD": site.secrets.database}

    def execute(statement: str) -> list[str]:
        line = [*command, "--skip-column-names", f"--execute={statement}", "neutron"]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return execute


def remedy(subnet: str) -> str:
    """Return the statement of the documentation for a subnet."""
    page = (CHECKOUT / "docs" / "how-to" / "openstack.md").read_text()
    (statement,) = re.findall(r"```text\n +(DELETE .*?)```", page, re.DOTALL)
    assert "'SUBNET'" in statement
    return statement.replace("SUBNET", subnet)


def records(database: Database, subnet: str) -> set[str]:
    """Return the recorded addresses of a subnet."""
    return set(
        database(
            "SELECT ip_address FROM ipamallocations JOIN ipamsubnets ON id = ipam_subnet_id "
            f"WHERE neutron_subnet_id = '{subnet}'"
        )
    )


def run_with_records(database: Database, admin: Connection, plan: Plan, options: dict[str, Any]) -> str:
    """Create the networks, record addresses without ports, and run the task twice. Return the id of the subnet."""
    config = {kind: options["config"][kind] for kind in ("networks", "subnets")}
    assert not run(pod=plan.name, config=config).get("failed")
    subnet = str(admin.network.find_subnet(f"{plan.name}-data", ignore_missing=False).id)
    for address in ADDRESSES:
        database(
            "INSERT INTO ipamallocations (ip_address, status, ipam_subnet_id) "
            f"SELECT '{address}', 'ALLOCATED', id FROM ipamsubnets WHERE neutron_subnet_id = '{subnet}'"
        )
    assert records(database, subnet) >= set(ADDRESSES)
    for _run in range(2):
        result = run(**options)
        assert result["failed"]
        errors = {error["id"]: error["msg"] for error in result["errors"]}
        assert errors == {
            name: f"Cannot create port '{name}': Neutron returned an error: IP address {address} already allocated in "
            f"subnet {subnet}. If no port has this address, a killed Neutron left its record. Delete the record from "
            "the table ipamallocations of Neutron, or remove the subnet with all its ports. Then run the task again."
            for name, address in zip(PORT_NAMES, ADDRESSES, strict=True)
        }
        assert len(plan.ports(admin)) == 12 - len(ADDRESSES)
    return subnet


def check_complete(admin: Connection, plan: Plan, log: AccessLog, options: dict[str, Any]) -> None:
    """Run the task, and check that it creates the ports and that another run writes nothing."""
    result = run(**options)
    assert not result.get("failed"), result
    ports = plan.ports(admin)
    assert len(ports) == 12
    assert [ports[name].fixed_ips[0]["ip_address"] for name in PORT_NAMES] == list(ADDRESSES)
    with log.no_writes():
        assert not run(**options)["changed"]


def test_the_documented_statement_deletes_the_records(
    database: Database, admin: Connection, plan: Plan, log: AccessLog
) -> None:
    options = plan.options()
    subnet = run_with_records(database, admin, plan, options)
    before = records(database, subnet)
    database(remedy(subnet))
    assert before - records(database, subnet) == set(ADDRESSES)
    check_complete(admin, plan, log, options)


def test_a_removal_of_the_pod_deletes_the_records(
    database: Database, admin: Connection, plan: Plan, log: AccessLog
) -> None:
    options = plan.options()
    subnet = run_with_records(database, admin, plan, options)
    assert not run(pod=plan.name, state="absent").get("failed")
    assert records(database, subnet) == set()
    check_complete(admin, plan, log, options)
