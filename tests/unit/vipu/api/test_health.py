# SPDX-License-Identifier: GPL-3.0-or-later
"""Health of the services of an endpoint."""

from __future__ import annotations

from grpc_health.v1 import health_pb2

from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR
from openipu.vipu.api.health import Health

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def status(health: Health) -> int:
    found = health.Check(health_pb2.HealthCheckRequest(service="a"), UNAUTHENTICATED_ADMINISTRATOR)
    return int(found.status)


def test_services_serve_between_start_and_stop() -> None:
    health = Health(["a"])
    assert status(health) == NOT_SERVING
    health.start()
    assert status(health) == SERVING
    health.stop()
    assert status(health) == NOT_SERVING


def test_a_start_after_the_stop_has_no_effect() -> None:
    """A leader that loses the lease during its start does not report that it serves."""
    health = Health(["a"])
    health.stop()
    health.start()
    assert status(health) == NOT_SERVING
