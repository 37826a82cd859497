# SPDX-License-Identifier: GPL-3.0-or-later
"""Idle health checks by any holder of a client certificate. Keepalived depends on the check of the controller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.admission import LIMITS, Admission, Group
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.server import health
from tests.integration.vipu_servers import InProcess, InstantLife
from tests.waiting import until

CALLS = LIMITS[Group.HEALTH].calls
CHECK, VERSION = "/grpc.health.v1.Health/Check", "/virmgrpc.VersionService/GetVersion"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Yield what ends the calls and connections of a test."""
    with ExitStack() as calls:
        yield calls


def connect(stack: ExitStack, address: ListenAddress) -> grpc.Channel:
    """Return a channel with a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channel: grpc.Channel = stack.enter_context(grpc.insecure_channel(str(address), options))
    return channel


def watch(stack: ExitStack, channel: grpc.Channel, count: int) -> list[Any]:
    """Begin streams of health checks, and read the first status of each."""
    stub = health_pb2_grpc.HealthStub(channel)
    streams = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(count)]
    for stream in streams:
        stack.callback(stream.cancel)
        assert next(stream).status == health_pb2.HealthCheckResponse.SERVING
    return streams


def hold(stack: ExitStack, channel: grpc.Channel, path: str, count: int) -> None:
    """Begin calls with headers and no message."""
    released = threading.Event()

    def silence() -> Iterator[bytes]:
        released.wait()
        yield from ()

    begin = channel.stream_stream(path, None, None)
    for _ in range(count):
        stack.callback(begin(silence()).cancel)
    stack.callback(released.set)


def checked(address: ListenAddress) -> str:
    """Return the result of ``vipu-server health``, which queries the controller once."""
    try:
        return health.wait(address, None, 0)
    except health.NotServingError as error:
        return str(error)


def keep(self: Admission, group: Group) -> None:
    """Cancel no call for a newer one."""


@pytest.mark.defence("openipu.vipu.api.admission.Admission._oldest", keep)
def test_idle_health_checks_do_not_keep_others_out(instant_server: InProcess, stack: ExitStack) -> None:
    (address,) = instant_server.endpoints
    streams = watch(stack, connect(stack, address), CALLS)
    assert checked(address).endswith(f"serves on {address}")
    until(lambda: sum(not stream.is_active() for stream in streams) == 1)  # for the check


@pytest.mark.defence("openipu.vipu.api.admission.Admission._oldest", keep)
def test_silent_health_checks_do_not_keep_others_out(instant_server: InProcess, stack: ExitStack) -> None:
    (address,) = instant_server.endpoints
    hold(stack, connect(stack, address), CHECK, CALLS)
    (admission,) = (each.health_checks for each in instant_server.server._endpoints)
    until(lambda: admission.unfinished() == CALLS)
    assert checked(address).endswith(f"serves on {address}")


def without_version(channel: grpc.Channel) -> str:
    """Require the version of the controller, whose call needs no credentials either."""
    return health._get_version(channel)


@pytest.mark.defence("openipu.vipu.server.health._version", without_version)
def test_silent_calls_without_credentials_do_not_fail_the_check(
    instant_server: InProcess, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_CALL", 1.0)
    (address,) = instant_server.endpoints
    hold(stack, connect(stack, address), VERSION, LIMITS[Group.ADMINISTRATORS].calls)
    until(lambda: instant_server.server._endpoints.admission.unfinished() == LIMITS[Group.ADMINISTRATORS].calls)
    assert checked(address).endswith(f"serves on {address}")


def shared(self: RequestGuard, group: Group) -> Admission:
    """Count the calls of all endpoints together."""
    return self._admission


@pytest.mark.defence("openipu.vipu.api.guard.RequestGuard._admission_of", shared)
def test_health_checks_of_users_do_not_end_those_of_administrators(
    vipu_server: Callable[..., InProcess], stack: ExitStack
) -> None:
    server = vipu_server(life=InstantLife, admin=ListenAddress("127.0.0.1", 0))
    users, administrators = server.endpoints
    (stream,) = watch(stack, connect(stack, administrators), 1)
    watch(stack, connect(stack, users), CALLS)
    watch(stack, connect(stack, users), 1)  # it cancels the oldest one
    assert checked(administrators).endswith(f"serves on {administrators}")
    assert stream.is_active()
