# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of users with a key that the library does not support."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from openipu.vipu.tls import issue, user_certificates
from openipu.vipu.tls.load import TlsError

_CURVE = "ec_paramgen_curve:secp112r1"


def _openssl(folder: Path, *options: str) -> bytes:
    command = ["openssl", "req", *options, "-newkey", "ec", "-pkeyopt", _CURVE, "-nodes", "-subj", "/CN=x"]
    file = folder / "made.pem"
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", file], check=True, capture_output=True)
    return file.read_bytes()


def test_a_certificate_with_an_unknown_kind_of_key(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="unknown kind of key"):
        user_certificates.describe(_openssl(tmp_path, "-x509"))


def test_a_request_with_an_unknown_kind_of_key(tmp_path: Path) -> None:
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    with pytest.raises(TlsError, match="unknown kind of key"):
        user_certificates.sign(tmp_path / "certs", "alice", _openssl(tmp_path, "-new"))
