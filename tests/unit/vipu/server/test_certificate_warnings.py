# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings of a starting controller about its own certificates, and about agents without TLS."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from openipu.vipu.server import certificates
from openipu.vipu.tls import issue
from openipu.vipu.tls.load import TlsError

DAY = datetime.timedelta(days=1)


def files(folder: Path, validity: datetime.timedelta) -> list[certificates.Files]:
    """Return the files of a server, and those for agents, which expire later."""
    issue.create(folder / "server", ["127.0.0.1"], validity)
    issue.create(folder / "agents", [])
    agents = folder / "agents" / "controller"
    return certificates.in_use(
        folder / "server", (agents / "ca.crt", agents / "controller.crt", agents / "controller.key")
    )


@pytest.mark.parametrize(("days", "warned"), [(13, True), (20, False)])
def test_certificates_that_expire_soon(tmp_path: Path, days: int, warned: bool) -> None:
    found = files(tmp_path, days * DAY)
    with capture_logs() as logs:
        certificates.warn(found, agents_in_clear=False)
    expected = [("certificate expires soon", str(found[0][1]))] if warned else []
    assert [(line["event"], line["file"]) for line in logs] == expected


def test_expired_certificates_end_the_start(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"it is valid only from .* to "):
        certificates.warn(files(tmp_path, -DAY), agents_in_clear=False)


@pytest.mark.parametrize("agents_in_clear", [True, False])
def test_agents_without_tls(agents_in_clear: bool) -> None:
    with capture_logs() as logs:
        certificates.warn([], agents_in_clear=agents_in_clear)
    assert [line["event"].partition(":")[0] for line in logs] == ["connections to agents have no TLS"] * agents_in_clear
