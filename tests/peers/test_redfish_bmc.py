# SPDX-License-Identifier: GPL-3.0-or-later
"""redfish_info, and playbooks/ipum_health.yml, against a Redfish service that nobody here wrote."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO
from openbmc import EMULATOR, PASSWORD, USER, Bmc, openbmc
from own_twin import BIN, ROOT, changed, run

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
    """It is on, and sends its logs nowhere."""
    served.power("On")
    served.logs = {"Address": "", "Port": 0}
    served.writes.clear()
    served.rest = True
    return served


def ask(bmc: Bmc, **options: Any) -> dict[str, Any]:
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


def test_a_machine_that_is_on_and_healthy(bmc: Bmc) -> None:
    found = ask(bmc)
    assert not found.get("failed"), found
    assert found["problems"] == []
    (system,) = found["systems"]
    assert (system["power"], system["health"], system["state"]) == ("On", "OK", "Enabled")
    (manager,) = found["managers"]
    assert manager["version"]
    # The root names an inventory of firmware, and there is none.
    assert found["firmware"] == []


def test_a_machine_that_is_off(bmc: Bmc) -> None:
    bmc.power("ForceOff")
    found = ask(bmc)
    assert found["failed"]
    assert found["msg"].endswith(f" of the BMC at 127.0.0.1:{bmc.port} is powered off.")
    assert ask(bmc, fail_on_problem=False)["problems"] == [found["msg"]]


def test_who_may_not_and_who_is_not_trusted_are_told(bmc: Bmc, tmp_path: Path) -> None:
    called = f"127.0.0.1:{bmc.port}"
    for options, sentence in (
        ({"password": "wrong"}, f"The BMC at {called} does not let user 'root' in: check username and password."),
        (
            {"username": None, "password": None},
            f"The BMC at {called} does not let callers without a login in: check username and password.",
        ),
        ({"password": None}, "A username is of no use without its password."),
    ):
        assert ask(bmc, **options)["msg"] == sentence
    told = ask(bmc, ca_path=None)["msg"]
    assert told.startswith(f"The certificate of the BMC at {called} cannot be trusted (")
    assert told.endswith("): give its authority with ca_path.")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert ask(bmc, port=port)["msg"].startswith(f"The BMC at 127.0.0.1:{port} does not answer (connection refused")


def health(bmc: Bmc, folder: Path, *options: str, **variables: Any):
    """Run the playbook for one machine."""
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
    done = run(BIN / "ansible-playbook", playbook, "-i", inventory, "-e", json.dumps(settings), *options, check=False)
    assert PASSWORD not in done.stdout + done.stderr
    return done


def test_logs_of_the_bmc_go_where_they_belong(bmc: Bmc, tmp_path: Path) -> None:
    target = {"virm_agent_log_target": {"address": "10.2.1.101", "port": 1514}}
    assert health(bmc, tmp_path, "--check", **target).returncode == 0
    assert bmc.writes == []
    done = health(bmc, tmp_path, "--diff", **target)
    assert (done.returncode, changed(done)) == (0, 1), done.stdout
    assert bmc.logs == {"Address": "10.2.1.101", "Port": 1514}
    assert bmc.writes == ["Port", "Address"]
    again = health(bmc, tmp_path, **target)
    assert (again.returncode, changed(again)) == (0, 0)
    assert "10.2.1.101:1514" in again.stdout
    assert len(bmc.writes) == 2


def test_what_is_wrong_with_a_machine_is_told_of_it(bmc: Bmc, tmp_path: Path) -> None:
    bmc.power("ForceOff")
    bmc.rest = False
    done = health(bmc, tmp_path, virm_agent_expected_versions={"GWSW": "2.1.0"})
    said = " ".join(done.stdout.split())
    assert done.returncode == 2
    assert "ipum01: System " in said
    assert "is powered off. Its BMC does not tell where logs go (HTTP status 404): set it there by hand" in said
    assert health(bmc, tmp_path, virm_agent_fail=False).returncode == 0
