# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/event_notify.yml: what it writes and sends, and that check mode does neither."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

BIN = Path(sys.executable).parent
SETTINGS = {"event_subject": "ag03 is hot", "event_text": "91 degrees", "event_key": "hot/1"}
REQUEST = {"subject": "ag03 is hot", "text": "91 degrees", "key": "hot/1"}


@pytest.fixture
def bodies() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the URL of a webhook, and the bodies of its requests."""
    received: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # named by the library
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/secret-path", received
        server.shutdown()


def notify(folder: Path, *options: str, **settings: Any) -> str:
    """Run the playbook for one controller host, and return its output."""
    (folder / "settings.json").write_text(json.dumps({**SETTINGS, **settings}))
    done = subprocess.run(
        [
            *(BIN / "ansible-playbook", ROOT / "playbooks/event_notify.yml"),
            *("-e", f"@{folder / 'settings.json'}", *options),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def one_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the host of the inventory a controller."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("controllers: {hosts: {controller: {}}}\n")
    monkeypatch.setenv("ANSIBLE_INVENTORY", str(inventory))
    monkeypatch.setenv("ANSIBLE_NOCOLOR", "true")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--check"], {}),
        (["--check"], {"event_dry_run": False}),
        (["--check"], {"event_dry_run": "false"}),
        ([], {"event_dry_run": True}),
    ],
)
def test_check_mode_and_dry_runs_show_the_notification_only(
    tmp_path: Path, bodies: tuple[str, list[dict[str, Any]]], options: list[str], settings: dict[str, Any]
) -> None:
    url, received = bodies
    folder = tmp_path / "notices"
    folder.mkdir()
    given = {"event_folder": str(folder), "event_notify_url": url, **settings}
    output = notify(tmp_path, "--diff", *options, **given)
    assert received == []
    assert list(folder.iterdir()) == []
    assert "+ag03 is hot" in output  # the diff of the file
    assert "key: hot/1" in output  # of the request
    assert "host: 127.0.0.1" in output
    assert "secret-path" not in output


def test_a_notification_is_written_and_sent(tmp_path: Path, bodies: tuple[str, list[dict[str, Any]]]) -> None:
    url, received = bodies
    folder = tmp_path / "notices"
    output = notify(tmp_path, event_folder=str(folder), event_notify_url=url)
    assert received == [REQUEST]
    assert (folder / "notice-hot-1.txt").read_text() == "ag03 is hot\n\n91 degrees\n"
    assert "secret-path" not in output
