# SPDX-License-Identifier: GPL-3.0-or-later
"""Log lines of calls, and the groups of client addresses that limit them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import methods
from openipu.vipu.api.auth import Caller


def test_ports_of_an_address_share_a_limit() -> None:
    assert methods._party("ipv4:10.1.2.3:40000") == methods._party("ipv4:10.1.2.3:40001")
    assert methods._party("ipv6:%5Bfe80::1%5D:1") == methods._party("ipv6:%5Bfe80::1%5D:2")


def test_many_addresses_have_few_limits() -> None:
    found = {methods._party(f"ipv4:10.1.{number // 256}.{number % 256}:40000") for number in range(65536)}
    assert len(found) == methods._PARTIES


@pytest.mark.parametrize(
    ("name", "streams", "logged"), [("Create", False, True), ("List", False, False), ("X", True, False)]
)
def test_only_completed_changes_are_logged(
    name: str, streams: bool, logged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    log = SimpleNamespace(info=lambda event, **more: lines.append(event), debug=lambda event, **more: None)
    monkeypatch.setattr(methods, "_log", log)
    handler = SimpleNamespace(
        request_streaming=streams,
        response_streaming=streams,
        request_deserializer=None,
        response_serializer=None,
        unary_unary=None,
        stream_stream=None,
    )
    method = methods.Method(f"/service/{name}", handler, lambda code, seconds: None)
    context: Any = SimpleNamespace(peer=lambda: "ipv4:127.0.0.1:1")
    method.succeed(context, Caller("root"), 0.0, None, None)
    assert lines == (["request completed"] if logged else [])


def test_every_change_of_an_object_is_logged_with_its_id() -> None:
    without = []
    for package, name in ((virmgrpc, "UserService"), (admin, "TenantService"), (admin, "AdminService")):
        for method in package.service(name).methods:
            request = method.input_type
            fields = request.fields_by_name
            nested = fields.get("spec") or fields.get("requirements")
            names = (nested.message_type if nested else request).fields_by_name
            if not method.name.startswith(methods.READS) and not set(methods._IDS) & set(names):
                without.append(method.name)
    assert without == ["Apply", "AddDiscoveredAgents"]


def test_changes_of_certificates_are_logged_with_user_and_fingerprint() -> None:
    added = admin.AddCertificateReply(description=admin.Certificate(key="ab" * 32))
    assert methods._object_id(admin.AddCertificateRequest(user_id="alice")) == "alice"
    assert methods._details(added) == {"fingerprint": "ab" * 8}
    assert methods._details(admin.RevokeCertificateReply(key="cd" * 32)) == {"fingerprint": "cd" * 8}
    assert methods._details(admin.RemoveReply()) == {}
