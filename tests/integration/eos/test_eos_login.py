# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections and logins of eos_pod: credentials, certificates, error messages, and protection of secrets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.info_task import EOS_POD_INFO

from openipu.twin.devices.eos.switch import Credentials
from openipu.vipu.tls import issue, load
from tests.integration.collection.playbook import play
from tests.integration.eos.eos_runs import perform, run
from tests.integration.eos_switches import ENABLE, PASSWORD, USER, Rack, ServedSwitch

COMMUNITY = "c0mmunity-for-tests"
VLAN = {"vlans": [{"id": 40, "name": "forty"}]}


def message_of(switch: ServedSwitch, **options: Any) -> str:
    """Return the message of a run that must fail, with SWITCH in place of the address."""
    result = run(switch, VLAN, **options)
    assert result["failed"] and not result["changed"], result
    return str(result["msg"]).replace(f"127.0.0.1:{switch.port}", "SWITCH")


def test_a_wrong_password(switch: ServedSwitch) -> None:
    advice = "authentication failed. Check username and password."
    assert message_of(switch, password="wrong-one") == f"Cannot log in to SWITCH as 'admin': {advice}"
    assert message_of(switch, username="stranger") == f"Cannot log in to SWITCH as 'stranger': {advice}"
    assert message_of(switch, username=None) == f"Cannot log in to SWITCH without username: {advice}"
    switch.fault(wrong_credentials=True)
    assert message_of(switch) == f"Cannot log in to SWITCH as 'admin': {advice}"


def test_a_rejected_connection(switch: ServedSwitch) -> None:
    switch.fault(rejecting=True)
    assert message_of(switch) == (
        "Cannot reach SWITCH: connection refused. Check host and port, and that eAPI is enabled "
        "(management api http-commands)."
    )


def test_a_timeout(switch: ServedSwitch) -> None:
    switch.fault(slow=2)
    assert message_of(switch, timeout=0.3) == (
        "Cannot reach SWITCH: no response within 0.3 seconds. Check that it is up, or increase timeout."
    )


def test_a_certificate_of_an_unknown_authority(switch: ServedSwitch, rack: Rack, tmp_path: Path) -> None:
    assert message_of(switch, ca_path=None).startswith("Cannot verify the certificate of SWITCH: ")
    issue.create(tmp_path / "others", ["127.0.0.1"])
    message = message_of(switch, ca_path=str(tmp_path / "others/ca" / load.CA))
    assert message.startswith("Cannot verify the certificate of SWITCH: ")
    assert message.endswith(". Set ca_path to the file of its CA.")
    assert switch.requests == 0  # no password was sent
    assert run(switch, VLAN, ca_path=None, validate_certs=False)["changed"]


def test_a_certificate_of_another_host(rack: Rack, tmp_path: Path) -> None:
    rack.certs = tmp_path / "elsewhere"
    issue.create(rack.certs, ["switch.example.org"])
    assert "IP address mismatch" in message_of(rack.switch())


@pytest.mark.parametrize("option", ["ca_path", "client_cert"])
def test_certificates_that_cannot_be_read(switch: ServedSwitch, tmp_path: Path, option: str) -> None:
    missing = str(tmp_path / "missing.pem")
    more = {"client_key": missing} if option == "client_cert" else {}
    message = message_of(switch, **{option: missing}, **more)
    assert message.startswith("Cannot load the certificates for SWITCH from ")
    assert message.endswith(": no such file or directory. Check the files.")


def test_tls_to_a_plain_port(rack: Rack) -> None:
    plain = rack.switch(secure=False)
    message = message_of(plain, use_ssl=True)
    assert message.startswith("Cannot establish TLS with SWITCH: ")


def test_a_read_only_user(rack: Rack) -> None:
    switch = rack.switch(operators=frozenset({"viewer"}))
    message = message_of(switch, username="viewer")
    assert message.startswith("Cannot run 'configure session openipu-")
    assert message.endswith(
        "Authorization denied for command. User 'viewer' is not permitted to run it. Set username to another user."
    )
    assert switch.sessions() == {}


def test_the_password_of_privileged_mode(rack: Rack) -> None:
    switch = rack.switch(enable=ENABLE)
    assert message_of(switch) == "Cannot run 'enable' on SWITCH: Bad secret. Nothing was changed."
    assert ENABLE not in message_of(switch, enable_password=ENABLE + "x")
    assert run(switch, VLAN, enable_password=ENABLE)["changed"]


def test_a_certificate_instead_of_a_password(switch: ServedSwitch, rack: Rack, tmp_path: Path) -> None:
    shutil.copytree(rack.certs / "client", tmp_path / "client")
    certificate = {
        "username": None,
        "password": None,
        "client_cert": str(tmp_path / "client/client.crt"),
        "client_key": str(tmp_path / "client/client.key"),
    }
    assert message_of(switch, **certificate) == (
        "Cannot log in to SWITCH without username: authentication failed. Check username and password."
    )
    switch.do(setattr, switch.switch, "credentials", Credentials({issue.common_name(load.CLIENT): "unused"}))
    assert run(switch, VLAN, **certificate)["changed"]
    assert "vlan 40" in switch.config()


def test_plain_http_must_be_requested(rack: Rack) -> None:
    plain = rack.switch(secure=False)
    assert run(plain, VLAN, use_ssl=False)["changed"]
    assert "vlan 40" in plain.config()
    secure = rack.switch()
    assert message_of(secure, use_ssl=False).startswith("Cannot reach SWITCH: ")
    assert secure.requests == 0


def test_credentials_from_the_environment(switch: ServedSwitch, tmp_path: Path) -> None:
    options = {name: value for name, value in switch.options().items() if name not in ("username", "password")}
    task = {
        "openipu.pod.eos_pod": {**options, "config": VLAN},
        "environment": {"ANSIBLE_NET_USERNAME": USER, "ANSIBLE_NET_PASSWORD": PASSWORD},
    }
    played = play(tmp_path, [task])
    assert (played.changed, played.failed) == (1, 0), played.output


def test_secrets_are_not_printed(rack: Rack, tmp_path: Path) -> None:
    switch = rack.switch(enable=ENABLE)
    switch.node().enable_authentication(ENABLE)
    login = switch.options(enable_password=ENABLE)
    config = {"snmp_communities": [COMMUNITY], "snmp_location": "row 3", "interfaces": [{"name": "Ethernet1/1"}]}
    wrong = {**config, "snmp_contact": "x" * 10, "interfaces": [{"name": "Ethernet1/1", "mtu": 99999}]}
    tasks = [
        {
            "openipu.pod.eos_pod": {**login, **options},
            "check_mode": check,
            "ignore_errors": True,
            "vars": {"openipu_fast_path": path},
        }
        for path in (True, False)
        for options, check in (
            ({"state": "rendered", "config": config}, False),
            ({"config": config}, True),
            ({"config": wrong}, False),
            ({"config": config}, False),
            ({"state": "gathered"}, False),
            ({"state": "replaced", "config": {"snmp_communities": []}}, False),
            ({"config": config, "enable_password": ENABLE + "-wrong"}, False),
            ({"config": config, "password": PASSWORD + "-wrong"}, False),
        )
    ]
    played = play(tmp_path, tasks, "-vvvv", "--diff", where=str(tmp_path))
    for secret in (PASSWORD, ENABLE, COMMUNITY):
        assert secret not in played.output
    assert "row 3" in played.output
    assert (played.changed, played.failed) == (6, 0), played.output
    assert not any(COMMUNITY in line for line in switch.config())


def test_unmanaged_secrets_are_not_returned(switch: ServedSwitch, tmp_path: Path) -> None:
    hidden = ("s3cret-of-others", "0ther-community", "k3y-of-others")
    switch.node().config(
        [
            f"snmp-server community {hidden[1]} ro",
            f"username operator secret 0 {hidden[0]}",
            f"ntp authentication-key 1 md5 {hidden[2]}",
            "interface Ethernet1/1",
            "mtu 1600",
        ]
    )
    changed = {"snmp_communities": ["mine"], "interfaces": [{"name": "Ethernet1/1", "mtu": 9000}]}
    for options in ({"state": "gathered"}, {"state": "replaced", "config": changed}):
        result = str(run(switch, **options))
        assert not [secret for secret in hidden if secret in result], result
    facts = perform(EOS_POD_INFO, switch.options())
    assert not [secret for secret in hidden if secret in str(facts)]
