# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for alerts: authentication, rate limits, texts of others, dry run."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.events.environment import missing
from tests.events.rulebook import START_SECONDS, Rulebook
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.timeout(600)

TOKEN = "only-for-this-test"
INVENTORY = ROOT / "inventory" / "twin"
FLOOD = 100

Start = Callable[..., Rulebook]


class Receiver(http.server.ThreadingHTTPServer):
    """Webhook of notifications. ``bodies`` are the received requests."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/notify"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # named by the library
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"version": "24.6.1"}')

    def do_POST(self) -> None:  # named by the library
        assert isinstance(self.server, Receiver)
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.shutdown()
    made.server_close()


def variables(folder: Path, port: int, **more: Any) -> dict[str, Any]:
    return {
        "event_webhook_port": port,
        "event_webhook_token": TOKEN,
        "event_folder": str(folder / "notices"),
        "event_out_of_service_limit": 0,  # drain no machine of a running twin
        "event_dry_run": False,
        **more,
    }


def post(port: int, body: Any, token: str = TOKEN) -> int:
    """Return the status of a request; 0 without a connection."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/alerts",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0


def notification(*alerts: dict[str, Any]) -> dict[str, Any]:
    return {"version": "4", "status": "firing", "receiver": "eda", "alerts": list(alerts)}


def hot(host: str, status: str = "firing", number: int = 0, text: str = "hot") -> dict[str, Any]:
    return {
        "status": status,
        "labels": {"alertname": "IpuHot", "host": host, "ipu": str(number % 4)},
        "annotations": {"description": text},
        "startsAt": "2026-01-01T00:00:00Z",
        "fingerprint": f"{host}-{number}",
    }


def listening(rules: Rulebook, port: int) -> None:
    rules.until(lambda: post(port, notification()) == 200, "a webhook that listens", START_SECONDS)


def test_a_flood_of_alerts_causes_one_notification_per_machine(
    rulebook: Start, receiver: Receiver, tmp_path: Path
) -> None:
    port = free_port()
    given = variables(tmp_path, port, event_notify_url=receiver.url)
    rules = rulebook("openipu.pod.alertmanager", tmp_path, INVENTORY, **given)
    listening(rules, port)
    assert post(port, notification(hot("ag09")), token="") == 401
    assert post(port, notification(hot("ag09")), token="wrong") == 401
    assert post(port, notification(hot("ag09", "resolved"))) == 200
    mark = tmp_path / "mark"
    template = "{{ " + f"lookup('ansible.builtin.pipe', 'touch {mark}')" + " }}"
    for number in range(FLOOD):
        assert post(port, notification(hot("ag03", number=number, text=template), hot("ag03", number=number))) == 200
    assert post(port, notification(hot("ag04", text="last"))) == 200
    until(lambda: {body["subject"].split()[1] for body in receiver.bodies} >= {"ag03", "ag04"}, 180, rules.text)
    rules.stop()
    assert sorted(body["subject"] for body in receiver.bodies) == [
        "IPU-Machine ag03 is too hot",
        "IPU-Machine ag04 is too hot",
    ]
    assert len(list((tmp_path / "notices").iterdir())) == 2
    assert rules.text().count("PLAY [Send a notification]") == 2
    texts = "".join(body["text"] for body in receiver.bodies)
    assert "{ { lookup(" in texts
    assert not mark.exists()


def test_a_dry_run_writes_and_sends_nothing(rulebook: Start, receiver: Receiver, tmp_path: Path) -> None:
    port = free_port()
    given = variables(tmp_path, port, event_notify_url=receiver.url, event_dry_run=True)
    rules = rulebook("openipu.pod.alertmanager", tmp_path, INVENTORY, **given)
    listening(rules, port)
    assert post(port, notification(hot("ag03", text="too hot for long"))) == 200
    rules.shown("too hot for long")
    rules.shown("PLAY RECAP")
    rules.stop()
    assert receiver.bodies == []
    assert not (tmp_path / "notices").exists()


@pytest.mark.parametrize("token", ["", " ", "None", "{{ event_webhook_token }}"])
def test_a_webhook_without_a_token_rejects_all_requests(unprotected: int, token: str) -> None:
    assert post(unprotected, notification(hot("ag03")), token) == 401


@pytest.fixture(scope="module")
def unprotected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of a webhook without a configured token."""
    if reason := missing():
        pytest.skip(reason)
    port, folder = free_port(), tmp_path_factory.mktemp("unprotected")
    given = {name: value for name, value in variables(folder, port).items() if name != "event_webhook_token"}
    rules = Rulebook("openipu.pod.alertmanager", folder, INVENTORY, **given)
    try:
        rules.until(lambda: post(port, notification(), token="") == 401, "a webhook that listens", START_SECONDS)
        yield port
    finally:
        rules.kill()


def test_drift_in_a_dry_run_starts_no_workflow(rulebook: Start, receiver: Receiver, tmp_path: Path) -> None:
    port = free_port()
    more = {"event_drift_workflow": "Apply changes", "event_organization": "PODs", "event_dry_run": True}
    # ansible-rulebook reads the version of AWX at its start.
    controller = ("--controller-url", receiver.url, "--controller-token", "unused")
    rules = rulebook("openipu.pod.drift", tmp_path, INVENTORY, options=controller, **variables(tmp_path, port, **more))
    listening(rules, port)
    for _ in range(5):
        assert post(port, {"kind": "drift", "pod": "twin", "summary": "2 changes"}) == 200
    assert post(port, {"kind": "drift", "pod": "other", "summary": "1 change"}) == 200
    rules.shown("Dry run: workflow Apply changes would start for POD twin: 2 changes")
    rules.shown("Dry run: workflow Apply changes would start for POD other: 1 change")
    rules.stop()
    assert rules.text().count("Dry run: workflow") == 2
    assert receiver.bodies == []
