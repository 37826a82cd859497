# SPDX-License-Identifier: GPL-3.0-or-later
"""Users, passwords, certificates and cookies of the twin of an EOS switch."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

import pyeapi
import pytest
from pyeapi.eapilib import CommandError, ConnectionError

from openipu.twin.devices.eos import server
from openipu.vipu.tls import issue, load
from tests.integration.eos_switches import PASSWORD, USER, Rack, ServedSwitch
from tests.integration.twin_eos.eapi_support import show, show_text


def test_read_only_users_and_rejected_logins(rack: Rack) -> None:
    switch = rack.switch(operators=frozenset({"viewer"}))
    viewer = switch.node("viewer")
    assert show(viewer, "show hostname")["hostname"] == "tor1"
    with pytest.raises(CommandError) as rejected:
        viewer.config(["vlan 11"])
    assert rejected.value.error_code == 1005
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node(password="wrong").enable("show version")
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node("stranger").enable("show version")
    switch.fault(wrong_credentials=True)
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node().enable("show version")


def test_the_enable_password(rack: Rack) -> None:
    switch = rack.switch(enable="s3cret")
    with pytest.raises(CommandError) as rejected:
        switch.node().enable("show running-config", encoding="text")
    assert "Bad secret" in str(rejected.value.output)
    node = switch.node()
    node.enable_authentication("s3cret")
    assert "hostname tor1" in show_text(node, "show running-config")


def test_a_certificate_instead_of_a_password(rack: Rack) -> None:
    from openipu.twin.devices.eos.config.startup import startup_config
    from openipu.twin.devices.eos.switch import Credentials

    switch = rack.switch()
    client = rack.certs / "client"
    context = ssl.create_default_context(cafile=str(rack.certs / "ca" / load.CA))
    context.load_cert_chain(client / "client.crt", client / "client.key")
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "runCmds", "params": {"version": 1, "cmds": ["show hostname"]}}
    )

    def request() -> int:
        channel = http.client.HTTPSConnection("127.0.0.1", switch.port, context=context, timeout=10)
        channel.request("POST", "/command-api", body)
        status = channel.getresponse().status
        channel.close()
        return status

    assert request() == 401  # the switch has no user of that name
    switch.do(setattr, switch.switch, "credentials", Credentials({issue.common_name(load.CLIENT): "unused"}))
    assert request() == 200
    assert startup_config("a", "10.0.0.1/24").startswith("hostname a")


def test_a_login_with_a_cookie(switch: ServedSwitch) -> None:
    context = ssl.create_default_context(cafile=str(switch.certs / "ca" / load.CA))
    node = switch.node(context=context)
    session = pyeapi.eapilib.HttpsEapiSessionConnection(
        "127.0.0.1", switch.port, username=USER, password=PASSWORD, context=context
    )
    assert session.execute(["show hostname"])["result"][0] == show(node, "show hostname")


def test_the_oldest_login_expires(switch: ServedSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_COOKIES", 2)
    context = ssl.create_default_context(cafile=str(switch.certs / "ca" / load.CA))
    channel = http.client.HTTPSConnection("127.0.0.1", switch.port, timeout=10, context=context)

    def post(path: str, body: dict[str, Any], cookie: str = "") -> tuple[int, str]:
        channel.request("POST", path, json.dumps(body), {"Cookie": cookie})
        response = channel.getresponse()
        response.read()
        return response.status, response.getheader("Set-Cookie", "").partition(";")[0]

    cookies = [post("/login", {"username": USER, "password": PASSWORD})[1] for _ in range(3)]
    assert [post("/command-api", {}, cookie)[0] for cookie in cookies] == [401, 200, 200]
    channel.close()


def test_an_untrusted_certificate(switch: ServedSwitch) -> None:
    with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        switch.node(context=ssl.create_default_context()).enable("show version")
