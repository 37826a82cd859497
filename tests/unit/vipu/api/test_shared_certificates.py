# SPDX-License-Identifier: GPL-3.0-or-later
"""Record of the users that call with shared certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from openipu.vipu.api import shared_certificates
from openipu.vipu.api.shared_certificates import SharedCertificates, is_shared_by_all
from openipu.vipu.tls import issue, user_certificates


def test_users_are_recorded_by_key() -> None:
    shared = SharedCertificates()
    for key, user in (("k1", "alice"), ("k1", "bob"), ("k1", "bob"), ("k2", "carol")):
        shared.record(key, user)
    assert [shared.users(key) for key in ("k1", "k2", "k3")] == [{"alice", "bob"}, {"carol"}, set()]


def test_the_number_of_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_certificates, "_MAX_KEYS", 2)
    shared = SharedCertificates()
    for key in ("k1", "k2", "k3"):
        shared.record(key, "alice")
    assert [shared.users(key) for key in ("k1", "k2", "k3")] == [set(), {"alice"}, {"alice"}]


def test_the_client_certificate_of_the_folder_is_for_all(tmp_path: Path) -> None:
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    keys = [
        user_certificates.fingerprint((tmp_path / "certs" / f"{name}.crt").read_bytes())
        for name in ("client/client", "controller/controller")
    ]
    assert [is_shared_by_all(key, tmp_path / "certs") for key in keys] == [True, False]
    assert [is_shared_by_all(keys[0], folder) for folder in (None, tmp_path)] == [False, False]
    (tmp_path / "certs" / "client" / "client.crt").write_bytes(b"\xff\0")
    assert not is_shared_by_all(keys[0], tmp_path / "certs")
