# SPDX-License-Identifier: GPL-3.0-or-later
"""Horizon with the panel *IPUs*, in a virtual environment of its own. It needs a complete cloud."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from openipu.process.background import ProcessError

from .component import INSIDE, Process
from .daemons import Daemons
from .probes import responds_to_http
from .site import CACHE, REGION, Site

VENV = CACHE / "horizon"
PORT = 8080
NAME = "horizon"
_FOLDER = INSIDE / "dashboard"


def url(site: Site) -> str:
    """Return the address of the login page."""
    return f"http://{site.address}:{PORT}/"


def check_requirements() -> None:
    """Raise ProcessError when Horizon is not installed."""
    if not (VENV / "bin" / "python").exists():
        raise ProcessError("Cannot start Horizon: it is not installed. Install it with make openstack-up HORIZON=1.")


def start(site: Site, daemons: Daemons, pod: Path | None = None) -> None:
    """Start Horizon and wait until it is ready; a running one gets new settings. Raises ProcessError.

    ``pod`` is a JSON file with the setting ``OPENIPU_POD``. Omit it to keep the current one.
    """
    settings = site.etc / NAME / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    before = settings.read_text() if settings.exists() else ""
    after = json.dumps(_settings(site, json.loads(before or "{}"), pod), indent=1)
    if after != before:
        daemons.stop({NAME})
        settings.touch(mode=0o600)
        settings.write_text(after)
    daemons.start([_process(site, settings)])


def _settings(site: Site, before: dict[str, object], pod: Path | None) -> dict[str, object]:
    try:
        own = json.loads(pod.read_text()) if pod else before.get("OPENIPU_POD", {})
    except (OSError, ValueError) as error:
        raise ProcessError(f"Cannot read {pod}: {error}. Write the setting OPENIPU_POD as JSON.") from None
    return {
        "ALLOWED_HOSTS": [site.address],
        "OPENSTACK_HOST": site.address,
        "OPENSTACK_KEYSTONE_URL": site.url("keystone", "/v3"),
        "AVAILABLE_REGIONS": [],
        "DEFAULT_SERVICE_REGIONS": {"*": REGION},
        "LOCAL_PATH": str(site.data),
        "SECRET_KEY": before.get("SECRET_KEY") or secrets.token_hex(32),
        "OPENIPU_POD": own,
    }


def _process(site: Site, settings: Path) -> Process:
    command = [str(VENV / "bin" / "python"), str(INSIDE / "api.py"), f"{site.address}:{PORT}"]
    command += [str(site.log / f"{NAME}-access.log"), "served"]
    environment = {"PYTHONPATH": str(_FOLDER), "OPENIPU_DASHBOARD": str(settings)}
    return Process(NAME, command, environment, [PORT], responds_to_http(site.address, PORT))
