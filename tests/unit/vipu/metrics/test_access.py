# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the metrics endpoint: host names and token."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from openipu.vipu.metrics.access import Token, TokenError, is_known_host
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.metrics.options import metrics_address, metrics_options

FIRST, SECOND = "first-token-0123456789", "second-token-0123456789"


def test_addresses_and_own_names_are_known() -> None:
    for known in ("10.3.1.101:2112", "[fd00::1]:2112", "[::1]", "localhost", "LocalHost.:1", socket.gethostname()):
        assert is_known_host(known, ()), known
    assert is_known_host("Controller1.example.org:2112", ["controller1.EXAMPLE.org"])
    for unknown in ("", "controller1.example.org", "10.3.1.101.example.org:2112", "10.3.1.101,evil.example"):
        assert not is_known_host(unknown, ()), unknown


def test_names_can_come_from_the_environment() -> None:
    """The role vipu_server passes all names of the certificate in one variable."""
    found: list[MetricsAddress | None] = []

    @click.command()
    @metrics_options
    def program(**metrics: Any) -> None:
        found.append(metrics_address(**metrics))

    variables = {"P_METRICS_PORT": "2112", "P_METRICS_NAME": "controller1 controller1.example.org"}
    done = CliRunner().invoke(program, env=variables, auto_envvar_prefix="P")
    assert (done.exit_code, found) == (
        0,
        [MetricsAddress("127.0.0.1", 2112, names=("controller1", "controller1.example.org"))],
    )


def write(file: Path, text: str, mode: int = 0o600) -> Path:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    return new.rename(file)


def test_a_replaced_token_applies_to_the_next_request(tmp_path: Path) -> None:
    token = Token(write(tmp_path / "token", f"{FIRST}\n"))
    assert token.accepts(f"Bearer {FIRST}")
    assert token.accepts(f"bearer  {FIRST} ")
    assert not token.accepts(f"Bearer {SECOND}")
    write(tmp_path / "token", "short")
    assert token.accepts(f"Bearer {FIRST}"), "an invalid file changes nothing"
    write(tmp_path / "token", SECOND)
    assert not token.accepts(f"Bearer {FIRST}")
    assert token.accepts(f"Bearer {SECOND}")
    assert not token.accepts("Bearer \udcff")


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        (FIRST, 0o640, "other users can access it. Set its mode to 0600."),
        ("short", 0o600, "it has no token. Write at least 16 letters and digits to it"),
        (f"{FIRST} {SECOND}", 0o600, "it has no token."),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, text: str, mode: int, message: str) -> None:
    file = write(tmp_path / "token", text, mode)
    with pytest.raises(TokenError, match="Cannot use the token file ") as rejected:
        Token(file)
    assert message in str(rejected.value)
    with pytest.raises(click.ClickException, match=message.split(".")[0]):
        metrics_address("127.0.0.1", 2112, None, None, None, file)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="No such file or directory"):
        Token(tmp_path / "none")
