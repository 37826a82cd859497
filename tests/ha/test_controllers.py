# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of controllers in tests: another server on the port is not mistaken for the controller."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2_grpc

from tests.ha.controllers import SERVER, Controller
from tests.waiting import until


def test_a_server_of_another_program_is_no_leader(tmp_path: Path) -> None:
    controller = Controller("c1", tmp_path, ["127.0.0.1:1"], "/test/", SERVER)
    foreign = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), foreign)  # reports SERVING
    assert foreign.add_insecure_port(controller.address)
    foreign.start()
    try:
        controller.start()
        assert controller.process is not None
        process = controller.process
        until(lambda: process.poll() is not None, 60, controller.log.read_text)
        with pytest.raises(AssertionError, match="Cannot listen on"):
            controller.leads()
    finally:
        foreign.stop(0)
        controller.kill()
        controller.relay.close()
