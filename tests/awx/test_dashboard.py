# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of Horizon launches templates of an AWX, and lists their jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.dashboard import awx
from openipu.dashboard.awx import Client
from openipu.dashboard.orders import OrderError, of_project
from openipu.dashboard.settings import Awx
from tests.awx import vpod_templates
from tests.awx.standin.server import Server
from tests.unit.collection.awx.content import load

ANSWERS = {
    "vpod_name": "red",
    "vpod_tenant": "research",
    "vpod_tenant_id": "a1",
    "vpod_ipus": "16",
    "vpod_poplar_server": "server1",
    "vpod_image": "poplar",
    "vpod_flavor": "vpod.poplar",
    "vpod_public_keys": "ssh-ed25519 AAAA alice@example",
}


@pytest.fixture
def server(start: Callable[[], Server]) -> Server:
    """Stand-in with the workflow and the job template of vPODs."""
    started = start()
    vpod_templates.add(started, load())
    started.awx.requests.clear()
    return started


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> Awx:
    return Awx(server.url, str(vpod_templates.token_file(server, tmp_path)), ["server1"], str(server.ca))


def test_order_and_release(server: Server, settings: Awx) -> None:
    client = Client(settings)
    assert client.survey().flavors == ("vpod.poplar",)
    client.order(ANSWERS)
    client.release({"vpod_name": "red", "vpod_tenant": "research", "vpod_tenant_id": "a1"})
    client.release({"vpod_name": "red", "vpod_tenant": "research", "vpod_tenant_id": "a2"})
    found = of_project(client.jobs(), "a1")
    assert [(each.action, each.vpod, each.ipus, each.status) for each in found] == [
        ("Release", "red", "", "Waiting"),
        ("Order", "red", "16", "In progress or waiting for approval"),
    ]
    assert all(each.created for each in found)
    [order] = server.awx.store.objects["workflow_jobs"].values()
    server.awx.store.objects["workflow_jobs"][order["id"]]["status"] = "successful"
    assert of_project(client.jobs(), "a1")[1].status == "Done"


def test_an_order_can_include_a_share(server: Server, settings: Awx) -> None:
    Client(settings).order({**ANSWERS, "vpod_share_size": 100})
    [order] = server.awx.store.objects["workflow_jobs"].values()
    assert json.loads(order["extra_vars"])["vpod_share_size"] == 100


def test_many_orders_of_others_hide_no_unfinished_one(
    server: Server, settings: Awx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awx, "_PAGE", 2)
    client = Client(settings)
    for number in range(3):
        client.order({**ANSWERS, "vpod_name": f"red{number}"})
    jobs = server.awx.store.objects["workflow_jobs"]
    first, *_ = jobs
    jobs[first]["status"] = "successful"
    for _ in range(3):
        client.order({**ANSWERS, "vpod_tenant_id": "a2"})
    assert [each.vpod for each in of_project(client.jobs(), "a1")] == ["red2", "red1"]
    for job in list(jobs.values())[3:]:
        job["status"] = "failed"
    assert [each.vpod for each in of_project(client.jobs(), "a1")] == ["red2", "red1"]
    assert len(of_project(client.jobs(), "a2")) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vpod_ipus": "3"}, "Value 3 for 'vpod_ipus' expected to be one of"),
        ({"vpod_name": ""}, "'vpod_name' value  is too small"),
        ({"vpod_share_size": 1025}, "'vpod_share_size' value 1025 is too large"),
        ({"vpod_controller_vm": "true"}, "its survey does not ask for vpod_controller_vm"),
        ({"vpod_controller_address": "10.4.0.10"}, "its survey does not ask for vpod_controller_address"),
    ],
)
def test_awx_rejects_other_answers(settings: Awx, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OrderError) as raised:
        Client(settings).order({**ANSWERS, **changes})
    assert message in raised.value.message


def test_errors_have_no_token(server: Server, settings: Awx, tmp_path: Path) -> None:
    token = Path(settings.token_file).read_text().strip()
    empty = tmp_path / "empty"
    empty.write_text("wrong")
    twice, binary, none = (tmp_path / name for name in ("twice", "binary", "blank"))
    twice.write_text(f"{token}\n{token}\n")
    binary.write_bytes(token.encode() + b"\xff\xfe")
    none.write_text("\n")
    for changed, message in (
        (replace(settings, order="Other"), "Cannot find 'Other' in AWX: 0 templates"),
        (replace(settings, token_file=str(empty)), "status 401, Authentication credentials were not provided."),
        (replace(settings, token_file=str(tmp_path / "none")), "No such file"),
        *((replace(settings, token_file=str(file)), "it is not one token of AWX.") for file in (twice, binary, none)),
        (replace(settings, ca_path=""), "certificate verify failed"),
        (replace(settings, url="https://localhost:1"), "Cannot reach AWX at https://localhost:1"),
        (replace(settings, url=f"{settings.url}/other"), "status 404"),
    ):
        with pytest.raises(OrderError) as raised:
            Client(changed).survey()
        assert message in raised.value.message
        assert token not in raised.value.message
    server.awx.failing["launch"] = 500
    with pytest.raises(OrderError) as raised:
        Client(settings).release({"vpod_name": "red", "vpod_tenant": "research"})
    assert "status 500, A server error has occurred." in raised.value.message
