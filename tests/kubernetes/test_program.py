# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs as processes: forked ones as in the other tests, and new interpreters as in the images."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.vipu_servers import InProcess
from tests.kubernetes import forked
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import Operator, submit
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.unit.kubernetes.domain.ipujobs import first_form


@pytest.mark.usefixtures("node")
def test_programs_in_new_interpreters_run_a_job(
    cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]
) -> None:
    cluster.create_account(OPERATOR)
    proxy = Proxy(cluster, tmp_path, vipu(), forked=False)
    proxy.controllers.write_text(f"{proxy.vipu.address}:ipunode=node1\n")
    operator = Operator(cluster, proxy, forked=False)
    try:
        proxy.start()
        operator.start()
        submit(operator, first_form()).wait("Running")
    finally:
        operator.kill()
        proxy.kill()


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_program_that_cannot_start_shows_its_log(proxy: Proxy, is_forked: bool) -> None:
    proxy.kill()
    proxy.forked, proxy.options = is_forked, ("--no-such-option",)
    with pytest.raises(AssertionError, match="No such option"):
        proxy.start()


def test_forked_programs_have_their_own_environment_and_exit_status(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    module = "openipu.kubernetes.operator.main"
    required = {"IPU_OPERATOR_NAMESPACE": "x", "IPU_OPERATOR_LAUNCHER_IMAGE": "x"}
    environment = {**os.environ, **required, "IPU_OPERATOR_KUBECONFIG": str(tmp_path / "none")}
    assert forked.start(module, [], log, environment).wait(60) == 1
    assert "Cannot find the API server" in log.read_text()
    assert forked.start(module, ["--no-such-option"], log, environment).wait(60) == 2
    assert "IPU_OPERATOR_NAMESPACE" not in os.environ


def test_killed_programs_have_the_status_of_their_signal(proxy: Proxy) -> None:
    assert proxy.process is not None
    assert proxy.process.poll() is None
    proxy.kill()
    assert proxy.process.poll() == -signal.SIGKILL
    proxy.kill()  # a second time is no error
    proxy.start()
    assert proxy.stop() == 0
