# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of cloud-init for the control instance, as the role renders them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.control_instance.rendering import ADDRESS, CONTROLLER, files, render

LIMIT = 65535  # bytes of user data in Nova, in Base64

pytestmark = pytest.mark.timeout(600)


def test_settings_of_the_largest_vpod_fit_into_user_data(tmp_path: Path) -> None:
    machines = [f"ipum{number:02}" for number in range(1, 17)]
    settings = render(tmp_path, control_instance_machines=machines)
    assert len(base64.b64encode(json.dumps(settings).encode())) < LIMIT / 2  # the rest is for the settings of the site
    assert len(json.loads(files(settings)["/etc/prometheus/targets/ipu-machine.json"])) == 16
    assert settings == render(tmp_path, control_instance_machines=machines)


def test_tls_ends_at_a_secure_controller(tmp_path: Path) -> None:
    endpoint = files(render(tmp_path))["/etc/haproxy/haproxy.cfg"]
    assert f"bind {ADDRESS}:8090\n" in endpoint
    assert endpoint.rstrip().endswith(f"mode tcp\n    server controller {CONTROLLER}:8090 check inter 5s")
    assert "proto h2" not in endpoint


def test_settings_of_the_current_host_do_not_apply(tmp_path: Path) -> None:
    """The role renders on a controller of the POD, whose services have other settings, such as TLS."""
    settings = {
        "monitoring_web_users": {"operator": "$2b$12$hash"},
        "monitoring_web_certificate": "/etc/ssl/web.crt",
        "monitoring_address": "10.1.3.101",
        "monitoring_exporter_token_file": "/nonexistent/token",
        "common_kinds": ["controller", "management"],
        "common_allow": [{"ports": [9093], "network": "management", "comment": "Alertmanager"}],
        "log_receiver_unknown": True,
    }
    assert render(tmp_path, host=settings) == render(tmp_path)
