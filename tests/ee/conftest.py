# SPDX-License-Identifier: GPL-3.0-or-later
"""The image, a project and credential types for jobs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openipu.process.background import ProcessError
from tests.integration.bringup.own_twin import OwnTwin, make
from tools.ee.collection import copy_checkout
from tools.ee.image import NAME, USER, Image, ensure_image
from tools.ee.jobs import Controller
from tools.ee.podman import Podman
from tools.ee.site import check_requirements

from .content import CREDENTIAL_TYPES


def skip_without(check: Callable[[], None]) -> None:
    """Skip the tests if the check of requirements raises ProcessError."""
    try:
        check()
    except ProcessError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def image() -> Image:
    """Return the image, which is built if it is missing."""
    skip_without(check_requirements)
    return ensure_image(print)


@pytest.fixture(scope="session")
def in_container(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that runs a shell script in a container and returns its output."""

    def run(script: str, user: str = USER) -> str:
        podman = Podman(tmp_path_factory.mktemp("podman"), image.store)
        return podman("run", "--rm", "--network=none", f"--user={user}", NAME, "bash", "-euc", script)

    return run


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnTwin]:
    """Return a POD with a running twin that no playbook has configured."""
    own = make(tmp_path_factory.mktemp("twin"))
    own.twin("up")
    yield own
    own.twin("down")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the files of the checkout."""
    folder = tmp_path_factory.mktemp("project")
    copy_checkout(folder)
    return folder


@pytest.fixture(scope="module")
def project(checkout: Path, twin: OwnTwin) -> Path:
    """Return a project with the files of the checkout, and the inventory of the twin as inventory/twin."""
    folder = checkout
    shutil.rmtree(folder / "inventory" / "twin")
    shutil.copytree(twin.inventory.parent, folder / "inventory" / "twin")
    return folder


@pytest.fixture(scope="module")
def controller(image: Image, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Controller:
    return Controller(image, project, tmp_path_factory.mktemp("jobs"), CREDENTIAL_TYPES)
