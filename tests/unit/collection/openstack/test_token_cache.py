# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of Keystone in a keyring: tasks share one login, and an unusable keyring is one message."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import keyring
import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from keyring.errors import KeyringLocked
from keyrings.alt.file import PlaintextKeyring
from openstack.config import loader

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
    # Early releases add the file to this list, for the whole process.
    monkeypatch.setattr(loader, "CONFIG_FILES", list(loader.CONFIG_FILES))
    yield tmp_path / TOKENS
    keyring.set_keyring(before)


def read(server: CloudServer, cache: object = None) -> None:
    """Read a collection in one task, with the entry ``test`` of clouds.yaml."""
    clouds = {"test": {"auth": server.auth, "region_name": "one", "network_endpoint_override": f"{server.url}/network"}}
    settings = {"cache": cache or {"auth": True}, "clouds": clouds}
    Path(os.environ["OS_CLIENT_CONFIG_FILE"]).write_text(json.dumps(settings))
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
        read(services, {"auth": False})
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
        r"^Cannot read the token of the cloud in the keyring: Failed to unlock the collection!\. Unlock the keyring, "
        r"or remove auth from cache in clouds\.yaml\.$"
    )
    with pytest.raises(CloudError, match=message):
        read(services)


def stored_value(stored: Path) -> tuple[str, str]:
    """Return the name and the encoded value of the only token in the file."""
    text = stored.read_text()
    return text.splitlines()[1].split(" = ")[0], "".join(text.split("=", 1)[1].split())


@pytest.mark.parametrize("value", ["no data", "[]", "null", "{}", '{"auth_token": "t", "body": {"token": {}}}'])
def test_damaged_data_are_replaced_by_a_login(services: CloudServer, stored: Path, value: str) -> None:
    read(services)
    name, before = stored_value(stored)
    damaged = base64.b64encode(value.encode()).decode()
    stored.write_text(f"[openstacksdk]\n{name} = {damaged}\n")
    for _ in range(2):
        read(services)
    assert services.logins == 2
    assert stored_value(stored)[1] not in (before, damaged)


@pytest.mark.parametrize("section", ["", "[openstacksdk]\n"])
def test_half_of_a_file_counts_as_no_token(services: CloudServer, stored: Path, section: str) -> None:
    """Another task may be writing the file."""
    read(services)
    name, value = stored_value(stored)
    stored.write_text(f"{section}{name} = {value[: len(value) // 2]}\n")
    read(services)
    assert services.logins == 2


@pytest.mark.parametrize("cache", [True, {"auth": True, "expiration_time": "abc"}])
def test_invalid_settings_are_one_message(services: CloudServer, stored: Path, cache: object) -> None:
    with pytest.raises(
        CloudError, match=r"^Cannot use the settings of the cloud: .*\. Correct clouds\.yaml or the var"
    ):
        read(services, cache)


def test_a_missing_keyring_is_one_message(services: CloudServer, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.missing.Keyring")
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    with pytest.raises(
        CloudError, match=r"^Cannot use the settings of the cloud: No module named 'keyrings\.missing'\. "
    ):
        read(services)


def test_a_new_service_is_found_with_a_stored_token(services: CloudServer, stored: Path) -> None:
    read(services)
    with closing(Cloud({"cloud": "test", "app_name": "test", "api_timeout": 5}, 1)) as cloud:
        assert not cloud.has_service("shared_file_system")
        services.types += ("shared-file-system",)
        assert not cloud.has_service("shared_file_system")
    with closing(Cloud({"cloud": "test", "app_name": "test", "api_timeout": 5}, 1)) as cloud:
        assert cloud.has_service("shared_file_system")
    assert services.logins == 3
