# SPDX-License-Identifier: GPL-3.0-or-later
"""Undecodable bytes in the settings and files of a user."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from openipu.shared.vipu import certificates
from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import virmgrpc
from openipu.shared.vipu.userfile import set_certificate


@pytest.mark.parametrize(
    ("connection", "name"),
    [
        (Connection("a\udcff"), "host"),
        (Connection("127.0.0.1", ca_path="a\udcff"), "ca path"),
        (Connection("127.0.0.1", user_id="a\udcff", access_key="k"), "user id"),
        (Connection("127.0.0.1", user_id="a", access_key="\udcff"), "access key"),
        (Connection("127.0.0.1", user_id="a", access_key="k", user_id_metadata="\udcff"), "user id metadata"),
    ],
)
def test_settings_of_a_connection(connection: Connection, name: str) -> None:
    with Client(connection) as client, pytest.raises(VipuError) as caught:
        client.call(client.version.GetVersion, virmgrpc.VersionRequest(), "get the version")
    assert str(caught.value) == f"Cannot call the controller: the {name} has characters that are no text. Remove them."
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_path_with_nul() -> None:
    with Client(Connection("127.0.0.1", ca_path="a\0")) as client, pytest.raises(VipuError, match="Cannot read file"):
        client.call(client.version.GetVersion, virmgrpc.VersionRequest(), "get the version")


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_file_of_a_user(tmp_path: Path, check_mode: bool) -> None:
    file = tmp_path / "alice.vipu-cli.hcl"
    file.write_bytes(b'api-host="\xff"\n')
    with pytest.raises(VipuError, match=r"Cannot update file '.*': it is not UTF-8 text"):
        set_certificate(file, tmp_path / "alice.crt", tmp_path / "alice.key", check_mode)
    assert file.read_bytes() == b'api-host="\xff"\n'


def key_of_an_unknown_curve() -> bytes:
    known, unknown = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030163")
    encodings = serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    der = ec.generate_private_key(ec.SECP256R1()).private_bytes(*encodings).replace(known, unknown)
    return b"-----BEGIN PRIVATE KEY-----\n" + base64.encodebytes(der) + b"-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "content", [key_of_an_unknown_curve(), b"\xff\0", b""], ids=["unknown curve", "no text", "empty"]
)
def test_the_key_of_a_user(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "alice.key"
    file.write_bytes(content)
    with pytest.raises(ValueError):
        certificates.signing_request(file, "alice")
    with pytest.raises(ValueError):
        certificates.fingerprint(file)
    assert file.read_bytes() == content
