# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of Keystone in a keyring: tasks share one login, and an unusable keyring is one message."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import keyring
import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from keyring.errors import KeyringLocked
from keyrings.alt.file import PlaintextKeyring

from tests.unit.collection.openstack.cloud_server import CloudServer

TOKENS = "keyring.cfg"


class LockedKeyring(PlaintextKeyring):  # type: ignore[misc]  # it has no types
    """Keyring of a desktop whose user has not unlocked it."""

    def get_password(self, service: str, username: str) -> str:
        raise KeyringLocked("Failed to unlock the collection!")


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """File of a keyring for this test."""
    before = keyring.get_keyring()
    backend = PlaintextKeyring()
    backend.file_path = str(tmp_path / TOKENS)
    keyring.set_keyring(backend)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    yield tmp_path / TOKENS
    keyring.set_keyring(before)


def read(server: CloudServer, cached: bool = True) -> None:
    """Read a collection in one task, with the entry ``test`` of clouds.yaml."""
    clouds = {"test": {"auth": server.auth, "region_name": "one", "network_endpoint_override": f"{server.url}/network"}}
    Path(keyring.get_keyring().file_path).with_name("clouds.yaml").write_text(
        yaml.safe_dump({"cache": {"auth": cached}, "clouds": clouds})
    )
    server.answer = (200, {"networks": []})
    with closing(Cloud({"cloud": "test", "app_name": "test", "api_timeout": 5}, 1)) as cloud:
        assert cloud.list("network", "/networks", "networks") == []


def test_tasks_share_one_login(services: CloudServer, stored: Path) -> None:
    for _ in range(3):
        read(services)
    assert services.logins == 1
    assert stored.stat().st_mode & 0o777 == 0o600


def test_a_token_is_stored_only_on_request(services: CloudServer, stored: Path) -> None:
    for _ in range(2):
        read(services, cached=False)
    assert services.logins == 2
    assert not stored.exists()


def test_an_unchanged_token_is_not_written_again(services: CloudServer, stored: Path) -> None:
    read(services)
    before = stored.stat().st_mtime_ns
    read(services)
    assert stored.stat().st_mtime_ns == before


def test_a_locked_keyring_is_one_message(services: CloudServer, stored: Path) -> None:
    read(services)
    locked = LockedKeyring()
    locked.file_path = str(stored)
    keyring.set_keyring(locked)
    message = (
        r"^Cannot read the stored token of the cloud: Failed to unlock the collection!\. Unlock the keyring, or remove "
        r"the token from it, or auth from cache in clouds\.yaml\.$"
    )
    with pytest.raises(CloudError, match=message):
        read(services)


@pytest.mark.parametrize("damage", ["truncated", "no section", "no data"])
def test_a_damaged_keyring_is_one_message_without_the_token(services: CloudServer, stored: Path, damage: str) -> None:
    read(services)
    text = stored.read_text()
    name, value = text.splitlines()[1].split(" = ")[0], "".join(text.split("=", 1)[1].split())
    damaged = {
        "truncated": f"[openstacksdk]\n{name} = {value[: len(value) // 2 // 4 * 4]}\n",
        "no section": f"{name} = {value}\n",
        "no data": f"[openstacksdk]\n{name} = {base64.b64encode(b'no data').decode()}\n",
    }
    stored.write_text(damaged[damage])
    with pytest.raises(CloudError, match=r"^Cannot read the stored token of the cloud: damaged data \(") as failure:
        read(services)
    assert value[:20] not in str(failure.value)
