# SPDX-License-Identifier: GPL-3.0-or-later
"""Job templates of services on hosts: in the execution environment, by SSH, on hosts with systemd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.roles.rack import Rack
from tools.ee.image import Image
from tools.hosts.site import check_requirements

from .conftest import skip_without
from .desk import Desk
from .rack import EXPOSED, make_desk

TEMPLATES = {
    *("Management server", "Poplar servers", "V-IPU command-line tools", "V-IPU agents", "V-IPU server", "Monitoring"),
    *("Backup of the V-IPU controller", "Restore of the V-IPU controller"),
}

pytestmark = pytest.mark.timeout(3600)  # a job installs all services of a host


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    skip_without(check_requirements)
    made = Rack(tmp_path_factory.mktemp("rack"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def desk(image: Image, checkout: Path, rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return make_desk(rack, image, checkout, tmp_path_factory.mktemp("jobs"))


def test_jobs_install_the_services_of_the_hosts(desk: Desk, rack: Rack) -> None:
    server = "V-IPU server"
    assert desk.run(server, job_type="check").changed > 0
    for name in (
        server,
        "V-IPU agents",
        "V-IPU command-line tools",
        "Monitoring",
        "Management server",
        "Poplar servers",
    ):
        assert desk.run(name).changed > 0, name
    unchanged = desk.run(server, job_type="check")
    assert unchanged.changed == 0, unchanged.stdout
    services = {
        "controller1": ("vipu-server", "prometheus", "openipu-dnsmasq"),
        "ipum1": ("virm-agent@ipum1",),
        "poplar1": ("prometheus-node-exporter",),
    }
    for host, units in services.items():
        assert rack.run("podman", "exec", host, "systemctl", "is-active", *units).split() == ["active"] * len(units)
    assert "vipu" in rack.run("podman", "exec", "poplar1", "vipu", "--help")


def test_jobs_back_up_and_restore_the_controller(desk: Desk, rack: Rack) -> None:
    desk.run("V-IPU server")
    rack.administrate("create", "agent", "before", "--host", "127.0.0.2")
    desk.run("Backup of the V-IPU controller")
    [backup] = (rack.exposed / "backups").rglob("*.tar.gz")
    rack.administrate("create", "agent", "after", "--host", "127.0.0.3")
    assert "after" in rack.administrate("list", "agents")
    answers = {
        "vipu_server_restore": f"{EXPOSED}/{backup.relative_to(rack.exposed)}",
        "vipu_server_restore_overwrite": "false",
        "vipu_server_restore_lose_partitions": "false",
    }
    template = "Restore of the V-IPU controller"
    rejected = desk.reject(template, **answers)
    assert "has records. Nothing was changed. Set vipu_server_restore_overwrite" in rejected
    desk.run(template, **{**answers, "vipu_server_restore_overwrite": "true"})
    agents = rack.administrate("list", "agents")
    assert ("before" in agents, "after" in agents) == (True, False)
    assert set(desk.started) >= TEMPLATES
