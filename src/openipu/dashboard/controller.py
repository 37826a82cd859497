# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to the V-IPU controller with the credentials of a project, or with those of operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openipu.dashboard.ownership import Object, Objects
from openipu.shared.reconcile import UserError
from openipu.shared.report import runs, tenant, vipu_info
from openipu.shared.report.page import render_pods
from openipu.shared.report.pods import Source
from openipu.shared.vipu.client import REMOVAL_SECONDS, Client
from openipu.shared.vipu.contract import virmgrpc
from openipu.shared.vipu.transport.grpc_api import GrpcTransport
from openipu.vipu.cli.config_file import ConfigError
from openipu.vipu.cli.settings import read_connection

_SECONDS = 10.0  # of a call, while a user waits
_KINDS = {"agents": "agent", "clusters": "cluster", "allocations": "allocation", "partitions": "partition"}


class ControllerError(UserError):
    """Raised when the controller cannot be called, or rejects a call."""


def read(file: Path) -> Objects:
    """Return the allocations and partitions that the credentials may see, with the states of partitions."""
    with _transport(file) as transport:
        found = transport.read_all(["allocation", "partition"])
        statuses = transport.partition_statuses([each["id"] for each in found["partition"]])
        partitions = [{**each, **statuses[each["id"]]} for each in found["partition"] if each["id"] in statuses]
        return Objects(found["allocation"], partitions)


def allocations(file: Path) -> list[Object]:
    """Return the allocations that the credentials may see."""
    with _transport(file) as transport:
        found: list[Object] = transport.read("allocation")
        return found


def remove_partition(file: Path, id: str) -> None:
    """Remove a partition. The call returns after its machines released the IPUs."""
    with _errors(), Client(read_connection(file, timeout=_SECONDS)) as client:
        request = virmgrpc.RemovePartitionRequest(partition_id=id)
        client.call(client.user.RemovePartition, request, f"remove partition '{id}'", REMOVAL_SECONDS)


def rack_report(file: Path) -> str:
    """Return the page of the rack report of all machines. ``file``: credentials of operators."""
    info, tests = _rack(file)
    return render_pods([Source(None, info, tests)])


def tenant_report(file: Path, project: str, own: Objects) -> str:
    """Return the page of the rack report of a project: its machines only.

    ``file``: credentials of operators, which may read machines and tests. ``own``: the objects that the project may
    see with its own credentials.
    """
    info, tests = _rack(file)
    return render_pods([tenant.source(project, info, tests, own.allocations, own.partitions)])


def _rack(file: Path) -> tuple[Object, list[Object]]:
    """Return all objects and the last test of each cluster, validated."""
    with _transport(file) as transport:
        found: dict[str, Any] = {name: transport.read(kind) for name, kind in _KINDS.items()}
        attributes = transport.ipu_attributes()
        found["ipu_attributes"] = {
            agent: {str(ipu): values for ipu, values in ipus.items()} for agent, ipus in attributes.items()
        }
        tests = transport.test_runs()
    return vipu_info.checked(found), [runs.checked(run) for run in tests if run["cluster"]]


@contextmanager
def _transport(file: Path) -> Iterator[GrpcTransport]:
    with _errors():
        transport = GrpcTransport(read_connection(file, timeout=_SECONDS))
        try:
            yield transport
        finally:
            transport.close()


@contextmanager
def _errors() -> Iterator[None]:
    """Convert errors of files and calls to ControllerError."""
    try:
        yield
    except ConfigError as error:
        raise ControllerError(str(error)) from None
    except UserError as error:
        raise ControllerError(error.message) from None
