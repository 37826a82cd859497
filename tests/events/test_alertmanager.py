# SPDX-License-Identifier: GPL-3.0-or-later
"""An Alertmanager process with the configuration of the page sends its alerts to the rulebook."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.events.rulebook import Rulebook
from tests.events.test_alertmanager_rules import INVENTORY, TOKEN, Receiver, listening, receiver, variables
from tests.peers.exporters import responds, running
from tests.ports import free_port

__all__ = ["receiver"]

PROGRAM = shutil.which("prometheus-alertmanager")
PAGE = ROOT / "docs" / "how-to" / "events.md"
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(PROGRAM is None, reason="not installed: apt-get install prometheus-alertmanager"),
]


def configuration(folder: Path, port: int) -> dict[str, Any]:
    """Return the configuration of the page, with the port of the rulebook and a file with the token."""
    [block] = re.findall(r"```yaml\n# alertmanager\.yml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)
    [webhook] = found["receivers"][0]["webhook_configs"]
    webhook["url"] = webhook["url"].replace(":5001/", f":{port}/")
    token = folder / "eda.token"
    token.write_text(TOKEN)
    webhook["http_config"]["authorization"]["credentials_file"] = str(token)
    name = found["receivers"][0]["name"]
    route = {"receiver": name, "group_by": ["alertname"], "group_wait": "1s", "group_interval": "1s"}
    return {**found, "route": route}


@contextmanager
def alertmanager(folder: Path, port: int) -> Iterator[str]:
    """Run an Alertmanager whose receiver is the rulebook with this port, and yield its URL."""
    assert PROGRAM
    url = f"http://127.0.0.1:{free_port()}"
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(configuration(folder, port)))
    options = [f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}"]
    options += ["--cluster.listen-address=", f"--web.listen-address={url.removeprefix('http://')}"]
    with running([PROGRAM, *options], folder / "alertmanager.log", responds(f"{url}/-/ready")):
        yield url


def send(url: str, *alerts: dict[str, Any]) -> None:
    """Send alerts to an Alertmanager, as Prometheus does."""
    body = json.dumps(alerts).encode()
    request = urllib.request.Request(f"{url}/api/v2/alerts", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert reply.status == 200


def hot(host: str, ipu: int) -> dict[str, Any]:
    labels = {"alertname": "IpuHot", "host": host, "ipu": str(ipu), "severity": "warning"}
    return {"labels": labels, "annotations": {"description": f"IPU {ipu} of {host} is at 91 degrees Celsius."}}


def test_alerts_of_an_alertmanager_are_notified_once_per_machine(
    rulebook: Callable[..., Rulebook], receiver: Receiver, tmp_path: Path
) -> None:
    port = free_port()
    given = variables(tmp_path, port, event_notify_url=receiver.url)
    rules = rulebook("openipu.pod.alertmanager", tmp_path, INVENTORY, **given)
    listening(rules, port)
    with alertmanager(tmp_path, port) as url:
        send(url, hot("ag03", 0), hot("ag03", 1), hot("ag07", 2), {"labels": {"alertname": "Other", "host": "ag09"}})
        rules.until(lambda: len(receiver.bodies) >= 2, "two notifications")
        # Alertmanager now repeats the alerts that fire, in one request with the new ones.
        send(url, hot("ag03", 2), hot("ag11", 0))
        rules.until(lambda: any("ag11" in body["subject"] for body in receiver.bodies), "a third machine")
    rules.stop()
    assert sorted(body["subject"] for body in receiver.bodies) == [
        f"IPU-Machine {host} is too hot" for host in ("ag03", "ag07", "ag11")
    ]
    assert "is at 91 degrees Celsius." in receiver.bodies[0]["text"]
    assert all(re.fullmatch(r"hot/[0-9a-f]{16}/\S+", body["key"]) for body in receiver.bodies)
