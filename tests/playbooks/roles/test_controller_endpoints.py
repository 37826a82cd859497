# SPDX-License-Identifier: GPL-3.0-or-later
"""Endpoints of users and administrators in the roles `vipu_server` and `common`."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from tests import ROOT
from tests.playbooks.roles.test_certificate_variables import evaluate

ADDRESS = "{{ vipu_server_admin_address }}"
ENVIRONMENT = "{{ vipu_server_settings | dict2items | selectattr('key', 'search', '_ADMIN_') | items2dict }}"
CASES = (
    ({}, "10.0.0.1", 8092, "true"),
    ({"vipu_server_admin_port": 9000}, "10.0.0.1", 9000, "false"),
    ({"vipu_server_admin_port": 9000, "vipu_server_admin_on_both": True}, "10.0.0.1", 9000, "true"),
    ({"vipu_server_admin_host": "10.9.0.1"}, "10.9.0.1", 8090, "false"),
    ({"vipu_server_admin_endpoint": False}, "10.0.0.1", 8090, ""),
    ({"vipu_server_no_admin": True}, "10.0.0.1", 8090, ""),
)


@pytest.fixture
def cases() -> list[dict[str, object]]:
    """Return the variables of all cases."""
    return [{"vipu_api_host": "10.0.0.1", "pod_name": "p", **variables} for variables, *_ in CASES]


def test_addresses(tmp_path: Path, cases: list[dict[str, object]]) -> None:
    found = evaluate(tmp_path, "vipu_server", ADDRESS, *cases)
    assert found == [{"host": host, "port": port} for _, host, port, _ in CASES]


def test_settings_of_the_service(tmp_path: Path, cases: list[dict[str, object]]) -> None:
    found = evaluate(tmp_path, "vipu_server", ENVIRONMENT, *cases)
    names = ("VIPU_SERVER_ADMIN_HOST", "VIPU_SERVER_ADMIN_PORT", "VIPU_SERVER_ADMIN_ON_BOTH")
    assert found == [
        dict(zip(names, (host, str(port), both), strict=True)) if both else {} for _, host, port, both in CASES
    ]


def test_names_in_the_certificate(tmp_path: Path) -> None:
    case = {"vipu_api_host": "10.0.0.1", "vipu_server_admin_host": "10.9.0.1", "vipu_server_tls_names": ["c1"]}
    (found,) = evaluate(tmp_path, "vipu_server", "{{ vipu_server_command_environment.VIPU_SERVER_TLS_SAN }}", case)
    assert found == "10.0.0.1 10.9.0.1 c1"


def test_credentials_of_the_first_administrator(tmp_path: Path) -> None:
    """The address follows the settings, also for a controller that was created with another one."""
    content = 'api-host="10.0.0.1"\napi-port=8090\napi-user-id="admin"\napi-access-key="k"\nca-path="/x"\n'
    file = {"content": b64encode(content.encode()).decode()}
    path = ROOT / "roles" / "vipu_server" / "templates" / "admin.vipu-cli.hcl.j2"
    template = f"{{{{ lookup('ansible.builtin.template', '{path}') }}}}"
    common = {"vipu_server_access_key": file, "vipu_server_login_path": "/l", "vipu_api_host": "10.0.0.1"}
    cases = (
        ({}, "10.0.0.1", 8092),
        ({"vipu_server_admin_endpoint": False}, "10.0.0.1", 8090),
        ({"vipu_server_admin_host": "10.9.0.1"}, "10.9.0.1", 8090),
        ({"vipu_server_host": "0.0.0.0"}, "10.0.0.1", 8092),  # no address for clients: that of the controller stays
    )
    found = evaluate(tmp_path, "vipu_server", template, *({**common, **variables} for variables, *_ in cases))
    for text, (_, host, port) in zip(found, cases, strict=True):
        lines = sorted(text.splitlines())
        assert lines == sorted(
            [
                f'api-host="{host}"',
                f"api-port={port}",
                'api-user-id="admin"',
                'api-access-key="k"',
                'ca-path="/l/ca.crt"',
                'client-cert="/l/client.crt"',
                'client-key="/l/client.key"',
            ]
        )


def test_the_firewall_allows_the_same_port(tmp_path: Path) -> None:
    variables = ({}, {"vipu_server_admin_port": 9000}, {"vipu_server_admin_host": "10.9.0.1"})
    single = ({"vipu_server_admin_endpoint": False}, {"vipu_server_bundle": "vipu.tar.gz"})
    found = evaluate(tmp_path, "common", "{{ common_admin_port }}", *variables, *single)
    assert [int(port) for port in found] == [8092, 9000, 8090, 8090, 8090]
