# SPDX-License-Identifier: GPL-3.0-or-later
"""redfish_info and playbooks/ipum_health.yml against a third-party Redfish service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO

from tests import ROOT
from tests.integration.bringup.own_twin import BIN, changed, run
from tests.peers.openbmc import EMULATOR, PASSWORD, USER, Bmc, openbmc
from tests.ports import free_port

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not EMULATOR.exists(), reason=f"no {EMULATOR}: run 'make test-peers'"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bmc]:
    with openbmc(tmp_path_factory.mktemp("bmc")) as bmc:
        yield bmc


@pytest.fixture
def bmc(served: Bmc) -> Bmc:
    """BMC that is powered on, without remote logging."""
    served.power("On")
    served.logs = {"Address": "", "Port": 0}
    served.writes.clear()
    served.rest = True
    return served


def query(bmc: Bmc, **options: Any) -> dict[str, Any]:
    options = {
        "host": "127.0.0.1",
        "port": bmc.port,
        "username": USER,
        "password": PASSWORD,
        "ca_path": str(bmc.ca),
        **options,
    }
    checked = ArgumentSpecValidator(REDFISH_INFO.argument_spec).validate(options)
    assert not checked.error_messages
    return REDFISH_INFO.perform(checked.validated_parameters, check_mode=False, diff=False)


def test_a_healthy_machine(bmc: Bmc) -> None:
    found = query(bmc)
    assert not found.get("failed"), found
    assert found["problems"] == []
    (system,) = found["systems"]
    assert (system["power"], system["health"], system["state"]) == ("On", "OK", "Enabled")
    (manager,) = found["managers"]
    assert manager["version"]
    # The service root links to a firmware inventory that does not exist.
    assert found["firmware"] == []


def test_a_machine_that_is_powered_off(bmc: Bmc) -> None:
    bmc.power("ForceOff")
    found = query(bmc, fail_on_problem=True)
    assert found["failed"]
    assert found["msg"].endswith(f" of the BMC at 127.0.0.1:{bmc.port} is powered off.")
    read = query(bmc)
    assert not read.get("failed")
    assert read["problems"] == [found["msg"]]


def test_invalid_credentials_and_untrusted_certificates_are_reported(bmc: Bmc, tmp_path: Path) -> None:
    address = f"127.0.0.1:{bmc.port}"
    for options, message in (
        (
            {"password": "wrong"},
            f"Cannot log in to the BMC at {address} as 'root': access denied. Check username and password.",
        ),
        (
            {"username": None, "password": None},
            f"Cannot log in to the BMC at {address} without credentials: access denied. Check username and password.",
        ),
        ({"password": None}, "Cannot log in to the BMC: username is set without password. Set both, or none."),
    ):
        assert query(bmc, **options)["msg"] == message
    error = query(bmc, ca_path=None)["msg"]
    assert error.startswith(f"Cannot verify the certificate of the BMC at {address}: ")
    assert error.endswith(". Set ca_path to a file with its CA certificate.")
    port = free_port()
    assert query(bmc, port=port)["msg"].startswith(
        f"Cannot connect to the BMC at 127.0.0.1:{port}: connection refused. "
    )


def health(bmc: Bmc, folder: Path, *options: str, **variables: Any):
    """Run the health playbook for one machine."""
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(BIN / "python"),
        "pod_agent_id": "ag01",
        "pod_addresses": {"bmc": "127.0.0.1"},
    }
    settings = {
        "virm_agent_connection": {},
        "virm_agent_ssh": False,
        "virm_agent_bmc": {"username": USER, "password": PASSWORD, "ca_path": str(bmc.ca), "port": bmc.port},
        **variables,
    }
    inventory = folder / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"machines": {"hosts": {"ipum01": host}}}))
    playbook = ROOT / "playbooks" / "ipum_health.yml"
    result = run(BIN / "ansible-playbook", playbook, "-i", inventory, "-e", json.dumps(settings), *options, check=False)
    assert PASSWORD not in result.stdout + result.stderr
    return result


def test_the_log_target_of_the_bmc_is_configured(bmc: Bmc, tmp_path: Path) -> None:
    target = {"virm_agent_log_target": {"address": "10.2.1.101", "port": 1514}}
    assert health(bmc, tmp_path, "--check", **target).returncode == 0
    assert bmc.writes == []
    first = health(bmc, tmp_path, "--diff", **target)
    assert (first.returncode, changed(first)) == (0, 1), first.stdout
    assert bmc.logs == {"Address": "10.2.1.101", "Port": 1514}
    assert bmc.writes == ["Port", "Address"]
    second = health(bmc, tmp_path, **target)
    assert (second.returncode, changed(second)) == (0, 0)
    assert "10.2.1.101:1514" in second.stdout
    assert len(bmc.writes) == 2


def test_problems_of_a_machine_are_reported(bmc: Bmc, tmp_path: Path) -> None:
    bmc.power("ForceOff")
    bmc.rest = False
    result = health(bmc, tmp_path, virm_agent_expected_versions={"GWSW": "2.1.0"})
    output = " ".join(result.stdout.split())
    assert result.returncode == 2
    assert "ipum01: System " in output
    assert "is powered off. Cannot read the log target of the BMC (HTTP status 404): set it manually" in output
    assert health(bmc, tmp_path, virm_agent_fail_on_findings=False).returncode == 0
