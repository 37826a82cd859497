# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the store in etcd: exposure of the password, and commands that do not use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from openipu.vipu.server.main import main

REMOTE, LOCAL = "etcd://192.0.2.1:1", "etcd://127.0.0.1:1,[::1]:1"


@pytest.fixture
def password(tmp_path: Path) -> list[str]:
    file = tmp_path / "password"
    file.write_text("secret")
    return ["--store-user", "root", "--store-password-file", str(file)]


@pytest.mark.parametrize("command", [["check"], ["--init"]])
def test_a_password_needs_tls(command: list[str], password: list[str]) -> None:
    ended = CliRunner().invoke(main, [*command, "--store", REMOTE, *password])
    assert ended.exit_code == 2
    assert "--store-user requires TLS" in ended.output


@pytest.mark.parametrize("options", [["--store", LOCAL], ["--store", REMOTE, "--insecure-network"]])
def test_loopback_and_an_explicit_option_need_no_tls(
    options: list[str], password: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openipu.vipu.storage.etcd.client.CALL_SECONDS", 0.2)
    ended = CliRunner().invoke(main, ["check", *options, *password])
    assert "requires TLS" not in ended.output
    assert "no node responds" in f"{ended.output}{ended.exception}"


def test_a_password_that_is_not_text(password: list[str]) -> None:
    Path(password[-1]).write_bytes(b"secret\xff")
    ended = CliRunner().invoke(main, ["check", "--store", LOCAL, *password])
    assert "it is not UTF-8 text" in f"{ended.output}{ended.exception}"
    assert "secret" not in ended.output


def test_health_does_not_read_the_password(tmp_path: Path) -> None:
    variables = {
        "VIPU_SERVER_STORE": REMOTE,
        "VIPU_SERVER_STORE_USER": "root",
        "VIPU_SERVER_STORE_PASSWORD_FILE": str(tmp_path / "missing"),
    }
    ended = CliRunner(env=variables).invoke(main, ["health", "--port", "1"])
    assert ended.exit_code == 1
    assert "missing" not in f"{ended.output}{ended.exception}"
