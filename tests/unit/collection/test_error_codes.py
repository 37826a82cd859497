# SPDX-License-Identifier: GPL-3.0-or-later
"""Every error class has a stable code, and the documentation lists all of them."""

from __future__ import annotations

import errno
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import grpc
import pytest
from click.testing import CliRunner

import openipu
from openipu.process.failures import EndpointError, ProgramError, program_error
from openipu.shared.errors import ERRORS
from openipu.shared.reconcile import UserError
from openipu.shared.runner import Connector, Run, Task, TaskError
from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import virmgrpc
from openipu.shared.vipu.failover import ERROR_CODE_METADATA
from openipu.vipu.domain.errors import Code, RuleError
from tools.errors import PAGE, written

# Errors that never reach a user: other code translates them.
INTERNAL = {
    "UnknownVersionError",
    "DamagedLogError",
    "RuleViolation",
    "ConnectionDropped",
    "CliError",
    "RpcError",
    "SnmpError",
    "MissingError",
}


def modules() -> Iterator[ModuleType]:
    """Yield all modules of openipu, with those shared with the collection, but without those that need Horizon."""
    for found in pkgutil.walk_packages(openipu.__path__, "openipu."):
        if "migrations" not in found.name and not found.name.startswith("openipu.dashboard.panels."):
            yield importlib.import_module(found.name)
    shared = Path(openipu.__path__[0]) / "shared"
    for path in sorted(shared.rglob("*.py")):
        yield importlib.import_module(".".join(["openipu", "shared", *path.relative_to(shared).with_suffix("").parts]))


def test_every_error_class_has_a_known_code() -> None:
    without = set()
    for module in modules():
        for name, value in vars(module).items():
            if not (isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.__name__):
                continue
            if name.startswith("_") or name in INTERNAL or issubclass(value, RuleError):
                continue
            code = getattr(value, "error_code", "OPU619" if issubclass(value, ProgramError) else None)
            if code not in ERRORS:
                without.add(f"{module.__name__}.{name}")
    assert not without


@pytest.mark.parametrize("code", Code)
def test_rejections_of_the_rules_have_a_code_for_each_status(code: Code) -> None:
    assert RuleError(code, "Cannot do it.").error_code in ERRORS


def test_the_form_of_codes_and_texts() -> None:
    for code, each in ERRORS.items():
        assert re.fullmatch(r"OPU[1-9]\d\d", code)
        assert each.cause.endswith(".")
        assert each.remedy.endswith(".")


def test_the_page_lists_all_codes() -> None:
    page = PAGE.read_text()
    assert written(page) == page, "run python tools/errors.py"


def test_programs_print_the_code_before_the_message() -> None:
    @click.command()
    def command() -> None:
        raise program_error(VipuError("Cannot connect."))

    done = CliRunner().invoke(command)
    assert (done.exit_code, done.output) == (1, "Error OPU200: Cannot connect.\n")
    with pytest.raises(KeyError):
        ProgramError("no such code", "OPU999")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "OPU615"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), "OPU615"),
        (PermissionError(errno.EACCES, "Permission denied"), "OPU615"),
        (PermissionError(errno.EACCES, "Permission denied", "/data/vipu-server.db"), "OPU620"),
        (EndpointError("Cannot listen on 10.3.1.101:8090."), "OPU615"),
        (OSError(errno.ENOSPC, "No space left on device"), "OPU620"),
        (ValueError("The value is invalid."), "OPU619"),
    ],
)
def test_errors_of_the_operating_system_have_a_code(error: Exception, code: str) -> None:
    assert program_error(error).error_code == code


class Rejection(grpc.RpcError):
    """Rejection of a call by a controller that sends the code."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.NOT_FOUND

    def details(self) -> str:
        return "Cannot do it."

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("other", "OPU605"), (ERROR_CODE_METADATA, self._code))


@pytest.mark.parametrize(("sent", "code"), [("OPU605", "OPU605"), ("OPU699", "OPU200"), ("", "OPU200")])
def test_the_client_accepts_known_codes_only(sent: str, code: str) -> None:
    def reject(*_: Any, **__: Any) -> None:
        raise Rejection(sent)

    with pytest.raises(VipuError) as raised:
        Client(Connection()).call(reject, virmgrpc.VersionRequest())
    assert raised.value.error_code == code


class Idle:
    """Transport without a connection."""

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("No."), "OPU100"),
        (VipuError("No.", error_code="OPU608"), "OPU608"),
        (TaskError("No.", error_code="OPU102", errors=[]), "OPU102"),
    ],
)
def test_a_failed_task_returns_the_code_of_its_cause(error: UserError, code: str) -> None:
    def fail(_: Run[Idle]) -> dict[str, Any]:
        raise error

    task = Task(Connector({}, lambda _: Idle(), lambda _: True), {}, fail)
    assert task.perform({}, False, False)["error_code"] == code
