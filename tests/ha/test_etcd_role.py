# SPDX-License-Identifier: GPL-3.0-or-later
"""Three nodes of etcd use the certificates and the settings that the role ``etcd`` creates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ha.etcd_role import Applied, can_write, running_nodes
from tests.waiting import until


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    with running_nodes(tmp_path_factory.mktemp("role")) as (made, _processes):
        yield made


def test_controllers_can_write_with_their_certificate(applied: Applied) -> None:
    location = applied.location("client.crt", "client.key")
    until(lambda: can_write(location), 60, (applied.folder / "n1.log").read_text)


def test_clients_without_a_certificate_are_rejected(applied: Applied) -> None:
    until(lambda: can_write(applied.location("client.crt", "client.key")), 60, (applied.folder / "n1.log").read_text)
    assert not can_write(applied.location())


def test_only_the_owner_can_read_the_keys(applied: Applied) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in applied.authority.iterdir() if path.suffix == ".key"}
    assert modes == dict.fromkeys(["ca.key", "client.key", "n1.key", "n2.key", "n3.key"], 0o600)
    assert applied.authority.stat().st_mode & 0o777 == 0o700


def test_certificates_are_renewed_when_they_expire(applied: Applied) -> None:
    assert applied.apply() == 0
    before = (applied.authority / "n1.crt").read_text()
    key = (applied.authority / "n1.key").read_text()
    assert applied.apply(etcd_certificate_renew_within=826) == 4  # three nodes and the controllers
    assert (applied.authority / "n1.crt").read_text() != before
    assert (applied.authority / "n1.key").read_text() == key
