# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs while the leading V-IPU controller of a highly available deployment is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ha.controllers import Controllers, listed, put_rack
from tests.ha.etcd_nodes import EtcdCluster
from tests.integration.vipu_servers import Machines
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import Operator, submit
from tests.kubernetes.proxies import Proxy
from tests.unit.kubernetes.domain.ipujobs import first_form

HOSTS = ("127.0.0.1", "127.0.0.2")  # of the controllers
MACHINES = 2


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Yield two controllers on one etcd, with the agents of two machines."""
    etcd = EtcdCluster(tmp_path / "etcd", size=1)
    machines = Machines(MACHINES)
    try:
        made = Controllers(tmp_path, f"{etcd.url}/test", options=("--lease-seconds", "3"), hosts=HOSTS)
        try:
            put_rack(made.wait_leader().address, machines.agents)
            yield made
        finally:
            made.close()
    finally:
        machines.stop()
        etcd.stop()


def test_jobs_run_after_the_leading_controller_was_killed(
    operator: Operator, controllers: Controllers, node: HollowNode
) -> None:
    proxy, namespace = operator.proxy, operator.cluster.namespace
    use(proxy, controllers)
    before = submit(operator, first_form(), "before")
    before.wait("Running")
    leader = controllers.wait_leader()
    leader.kill()
    after = submit(operator, first_form(), "after")
    after.wait("Running")
    assert controllers.wait_leader() is not leader
    ids = {f"p-{name}-{namespace}-0": 4 for name in ("before", "after")}
    assert listed(controllers.wait_leader().address) == ids
    assert {id: each["phase"] for id, each in proxy.records().items()} == dict.fromkeys(ids, "reserved")
    assert before.wait("Running")["restartCount"] == 0
    before.delete()
    after.delete()
    assert listed(controllers.wait_leader().address) == {}


def use(proxy: Proxy, controllers: Controllers) -> None:
    """Start the proxy again with a deployment of several controllers."""
    proxy.kill()
    proxy.controllers.write_text(f"{'|'.join(HOSTS)}:{controllers.all[0].port}:ipunode=node1\n")
    proxy.start()
