# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options of the OpenStack modules: cloud as a dictionary, log of the SDK, and timeout."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.options import (
    CONNECTION_OPTIONS,
    open_cloud,
    separate_credentials,
)

SECRET = "correct-horse"


def opened(**options: Any) -> Cloud:
    checked = ArgumentSpecValidator(CONNECTION_OPTIONS).validate(separate_credentials(options))
    assert not checked.error_messages, checked.error_messages
    assert SECRET not in str(options) or SECRET in checked._no_log_values
    return open_cloud(checked.validated_parameters)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """URL of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def sdk_loggers() -> Iterator[None]:
    """Restore the loggers of the SDK."""
    names = ("openstack", "keystoneauth", "openstack.config", "openstack.iterate_timeout", "urllib3", "stevedore")
    before = {name: (list(logging.getLogger(name).handlers), logging.getLogger(name).level) for name in names}
    yield
    for name, (handlers, level) in before.items():
        logger = logging.getLogger(name)
        for handler in set(logger.handlers) - set(handlers):
            handler.close()
        logger.handlers, logger.level = handlers, level


def test_a_dictionary_is_a_cloud_and_its_password_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OS_CLOUD", raising=False)
    auth = {"auth_url": "http://127.0.0.1:1/v3", "username": "u", "password": SECRET, "project_name": "p"}
    cloud = {"auth": auth, "region_name": "north", "identity_api_version": "3"}
    config = opened(cloud=cloud, interface="internal").connection.config
    assert (config.region_name, config.config["auth"]["password"]) == ("north", SECRET)
    assert config.get_interface("network") == "internal"
    assert config.config["identity_api_version"] == "3"
    with pytest.raises(CloudError, match="Cannot use both the option auth and auth in cloud"):
        opened(cloud=cloud, auth=auth)


@pytest.mark.parametrize("stage", ["service", "login"])
def test_a_silent_service_ends_the_task_after_the_timeout(silent_server: str, stage: str) -> None:
    login = {"auth_url": f"{silent_server}/v3", "username": "u", "password": SECRET, "project_name": "p"}
    plugin = {"auth_type": "none", "auth": {"endpoint": silent_server}} if stage == "service" else {"auth": login}
    cloud = opened(api_timeout=1, **plugin)
    begun = time.monotonic()
    with pytest.raises(CloudError, match="run the task again"):
        cloud.request("network", "GET", "/networks")
    assert time.monotonic() - begun < 20


def test_the_log_of_the_sdk_is_private(silent_server: str, tmp_path: Path, sdk_loggers: None) -> None:
    file = tmp_path / "sdk.log"
    file.touch()
    file.chmod(0o644)
    login = {"auth_url": f"{silent_server}/v3", "username": "u", "password": SECRET, "project_name": "p"}
    cloud = opened(api_timeout=1, auth=login, sdk_log_path=str(file), sdk_log_level="DEBUG")
    with pytest.raises(CloudError):
        cloud.authorize()
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    assert silent_server in text
    assert SECRET not in text
