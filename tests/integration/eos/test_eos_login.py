# SPDX-License-Identifier: GPL-3.0-or-later
"""How eos_pod reaches a switch and logs in, what it says when it cannot, and that no secret gets out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.infos import EOS_POD_INFO
from eos_runs import perform, run
from eos_switches import ENABLE, PASSWORD, USER, Rack, ServedSwitch
from playbook import play

from openipu.twin.eos.switch import Credentials
from openipu.vipu import tls

COMMUNITY = "c0mmunity-of-nobody"
VLAN = {"vlans": [{"id": 40, "name": "forty"}]}


def said(switch: ServedSwitch, **options: Any) -> str:
    """The sentence of a run that fails, with this switch called by one name."""
    result = run(switch, VLAN, **options)
    assert result["failed"] and not result["changed"], result
    return str(result["msg"]).replace(f"127.0.0.1:{switch.port}", "SWITCH")


def test_a_wrong_password(switch: ServedSwitch) -> None:
    assert said(switch, password="wrong-one") == "SWITCH does not let admin in: check username and password."
    assert said(switch, username="nobody") == "SWITCH does not let nobody in: check username and password."
    assert said(switch, username=None) == "SWITCH does not let anybody unnamed in: check username and password."
    switch.fault(wrong_credentials=True)
    assert said(switch) == "SWITCH does not let admin in: check username and password."


def test_nobody_there(switch: ServedSwitch) -> None:
    switch.fault(refusing=True)
    assert said(switch) == (
        "Cannot reach SWITCH (connection refused): check host and port, and that eAPI is on "
        "(management api http-commands)."
    )


def test_too_slow(switch: ServedSwitch) -> None:
    switch.fault(slow=2)
    assert said(switch, timeout=0.3) == (
        "SWITCH did not answer within 0.3 seconds: check that it is up, or allow more with timeout."
    )


def test_a_certificate_of_nobody_known(switch: ServedSwitch, rack: Rack, tmp_path: Path) -> None:
    assert said(switch, ca_path=None).startswith("The certificate of SWITCH cannot be trusted (")
    tls.create(tmp_path / "others", ["127.0.0.1"])
    told = said(switch, ca_path=str(tmp_path / "others/ca" / tls.CA))
    assert told.startswith("The certificate of SWITCH cannot be trusted (")
    assert told.endswith("): give its CA with ca_path.")
    assert switch.requests == 0  # nobody unknown is told a password
    assert run(switch, VLAN, ca_path=None, validate_certs=False)["changed"]


def test_a_certificate_of_another_host(rack: Rack, tmp_path: Path) -> None:
    rack.certs = tmp_path / "elsewhere"
    tls.create(rack.certs, ["switch.example.org"])
    assert "IP address mismatch" in said(rack.switch())


@pytest.mark.parametrize("option", ["ca_path", "client_cert"])
def test_certificates_that_cannot_be_read(switch: ServedSwitch, tmp_path: Path, option: str) -> None:
    missing = str(tmp_path / "missing.pem")
    more = {"client_key": missing} if option == "client_cert" else {}
    told = said(switch, **{option: missing}, **more)
    assert told.startswith("Cannot use the certificates for SWITCH in ")
    assert told.endswith("(no such file or directory): check the files.")


def test_no_eapi_at_all(rack: Rack) -> None:
    plain = rack.switch(secure=False)
    told = said(plain, use_ssl=True)
    assert told.startswith("SWITCH and we found no way to speak TLS (")


def test_who_may_only_look(rack: Rack) -> None:
    switch = rack.switch(operators=frozenset({"viewer"}))
    told = said(switch, username="viewer")
    assert told.startswith("SWITCH refused 'configure session openipu-")
    assert told.endswith("Authorization denied for command (viewer may not do that; use another username).")
    assert switch.sessions() == {}


def test_the_password_of_privileged_mode(rack: Rack) -> None:
    switch = rack.switch(enable=ENABLE)
    assert said(switch) == "SWITCH refused 'enable': Bad secret (nothing was changed)."
    assert ENABLE not in said(switch, enable_password=ENABLE + "x")
    assert run(switch, VLAN, enable_password=ENABLE)["changed"]


def test_a_certificate_instead_of_a_password(switch: ServedSwitch, rack: Rack, tmp_path: Path) -> None:
    shutil.copytree(rack.certs / "client", tmp_path / "client")
    shown = {
        "username": None,
        "password": None,
        "client_cert": str(tmp_path / "client/client.crt"),
        "client_key": str(tmp_path / "client/client.key"),
    }
    assert said(switch, **shown) == "SWITCH does not let anybody unnamed in: check username and password."
    switch.do(setattr, switch.switch, "credentials", Credentials({"vipu client": "unused"}))
    assert run(switch, VLAN, **shown)["changed"]
    assert "vlan 40" in switch.config()


def test_http_only_when_it_is_asked_for(rack: Rack) -> None:
    plain = rack.switch(secure=False)
    assert run(plain, VLAN, use_ssl=False)["changed"]
    assert "vlan 40" in plain.config()
    secure = rack.switch()
    assert said(secure, use_ssl=False).startswith("Cannot reach SWITCH (")
    assert secure.requests == 0


def test_the_environment_gives_what_options_leave_out(switch: ServedSwitch, tmp_path: Path) -> None:
    options = {name: value for name, value in switch.options().items() if name not in ("username", "password")}
    task = {
        "openipu.pod.eos_pod": {**options, "config": VLAN},
        "environment": {"ANSIBLE_NET_USERNAME": USER, "ANSIBLE_NET_PASSWORD": PASSWORD},
    }
    played = play(tmp_path, [task])
    assert (played.changed, played.failed) == (1, 0), played.output


def test_secrets_are_in_nothing_that_anybody_sees(rack: Rack, tmp_path: Path) -> None:
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


def test_secrets_that_others_configured_are_not_told(switch: ServedSwitch, tmp_path: Path) -> None:
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
        told = str(run(switch, **options))
        assert not [secret for secret in hidden if secret in told], told
    facts = perform(EOS_POD_INFO, switch.options())
    assert not [secret for secret in hidden if secret in str(facts)]
