# SPDX-License-Identifier: GPL-3.0-or-later
"""Each attack runs with its defence on, and with it off, where the test must fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.attack import defences
from tests.integration.conftest import instant_server, machines, quiet, vipu_process, vipu_server

__all__ = ["instant_server", "machines", "quiet", "vipu_process", "vipu_server"]

ON, OFF = "defence on", "defence off"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test twice, with its defence on and off, the second time in ``make attack`` only.

    A test without a marker ``defence``, and a marker of a defence that does not exist any more, are errors in each run.
    """
    switches = [defences.Switch(*marker.args) for marker in metafunc.definition.iter_markers("defence")]
    for switch in switches:
        switch.find()
    if not switches:
        pytest.fail(
            f"Cannot run attack '{metafunc.definition.name}': it names no defence. Add a marker 'defence'.", False
        )
    metafunc.parametrize("defence", [ON, pytest.param(OFF, marks=pytest.mark.long)], indirect=True)


@pytest.fixture(autouse=True)
def defence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Switch off the defences of the markers in the second run. Return whether they are on."""
    on = request.param == ON
    if not on:
        switches = [defences.Switch(*marker.args) for marker in request.node.iter_markers("defence")]
        defences.replace(monkeypatch, *switches)
    yield on


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Require a failed assertion of a test whose defence is off."""
    if pyfuncitem.callspec.params["defence"] != OFF:
        return (yield)
    try:
        yield
    except pytest.fail.Exception as error:
        if str(error).startswith("Timeout"):  # of pytest-timeout: a slow test is not one that notices the attack
            raise
        return True
    except AssertionError:
        return True
    pytest.fail("The test does not notice the attack: it passed with its defence switched off.")
