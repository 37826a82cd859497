# SPDX-License-Identifier: GPL-3.0-or-later
"""What rules and dashboards may ask of exporters that nobody here wrote, compared with what those tell."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Collection
from pathlib import Path

import pytest
import yaml
from bmc import PASSWORD, SIMULATOR, USER, bmc
from exporters import HOST, answers, fetched, free_port, metrics, running
from monitoring_files import ROOT, written
from waiting import until

PROGRAMS = {
    "prometheus": "prometheus",
    "alertmanager": "prometheus-alertmanager",
    "node": "prometheus-node-exporter",
    "ipmi": "prometheus-ipmi-exporter",
}
MISSING = [program for program in (*PROGRAMS.values(), SIMULATOR, "ipmi-chassis") if shutil.which(program) is None]
pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not installed: see .ci/run for the packages"),
]
EXPORTED = yaml.safe_load((ROOT / "tests/unit/monitoring/exported.yml").read_text())
Found = dict[str, list[tuple[dict[str, str], float]]]


def told(kind: str, folder: Path, *options: str, path: str = "metrics", wait: Collection[str] = ()) -> Found:
    """What an exporter tells, from when on it tells of all that ``wait`` names."""
    port = free_port()
    url = f"http://{HOST}:{port}"
    command = [PROGRAMS[kind], f"--web.listen-address={HOST}:{port}", *options]
    with running(command, folder / f"{kind}.log", answers(f"{url}/metrics")):
        found: Found = {}

        def complete() -> bool:
            found.update(metrics(fetched(f"{url}/{path}")))
            return set(wait) <= set(found)

        until(complete, 30, lambda: f"{set(wait) - set(found)} did not come.")
        return found


def missing(kind: str, found: Found) -> list[str]:
    return [name for name in EXPORTED[kind] if name not in found]


def test_prometheus(tmp_path: Path) -> None:
    files = written(tmp_path)
    options = f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"
    # One counter comes with the first rule, and another one with the first alert that is sent.
    found = told("prometheus", tmp_path, *options, wait=EXPORTED["prometheus"])
    groups = {labels["rule_group"] for labels, _ in found["prometheus_rule_evaluation_failures_total"]}
    assert any("openipu alerts" in group for group in groups)


def test_alertmanager(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    options = f"--config.file={tmp_path}/a.yml", f"--storage.path={tmp_path}/data", "--cluster.listen-address="
    found = told("alertmanager", tmp_path, *options)
    assert not missing("alertmanager", found)
    assert any(labels["integration"] == "webhook" for labels, _ in found["alertmanager_notifications_failed_total"])


def test_a_host_with_an_array_and_a_bond(tmp_path: Path) -> None:
    """The kernel of this one may have neither: the exporter reads what theirs would tell."""
    net = tmp_path / "sys/class/net"
    (net / "bond0/bonding").mkdir(parents=True)
    (net / "bonding_masters").write_text("bond0\n")
    (net / "bond0/bonding/slaves").write_text("eth0 eth1\n")
    for name, state in (("eth0", "up"), ("eth1", "down")):
        place = net / "bond0" / f"lower_{name}" / "bonding_slave"
        place.mkdir(parents=True)
        (place / "mii_status").write_text(f"{state}\n")
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mdstat").write_text(
        "Personalities : [raid6]\n"
        "md0 : active raid6 nvme0n1[0] nvme1n1[1](F) nvme2n1[2] nvme3n1[3]\n"
        "      2093056 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [U_UU]\n\nunused devices: <none>\n"
    )
    collectors = [f"--collector.{name}" for name in ("mdadm", "bonding")]
    options = ["--collector.disable-defaults", *collectors, f"--path.sysfs={tmp_path}/sys", f"--path.procfs={proc}"]
    found = told("node", tmp_path, *options)
    assert found["node_bonding_slaves"] == [({"master": "bond0"}, 2.0)]
    assert found["node_bonding_active"] == [({"master": "bond0"}, 1.0)]
    disks = {labels["state"]: value for labels, value in found["node_md_disks"]}
    assert (disks["active"], disks["failed"]) == (3, 1)
    assert found["node_md_disks_required"] == [({"device": "md0"}, 4.0)]
    here = told("node", tmp_path)
    assert not missing("node", {**here, **found})


def test_a_bmc(tmp_path: Path) -> None:
    login = {"username": USER, "password": PASSWORD, "privilege": "admin", "workarounds": ["opensesspriv"]}
    files = written(tmp_path, monitoring_ipmi={"machine": login})
    with bmc(tmp_path, free_port(socket.SOCK_DGRAM)) as address:
        options = (f"--config.file={files}/ipmi_remote.yml",)
        found = told("ipmi", tmp_path, *options, path=f"ipmi?target={address}&module=machine")
    assert not missing("ipmi", found)
    assert {labels["collector"]: value for labels, value in found["ipmi_up"]} == {"bmc": 1, "chassis": 1, "ipmi": 1}
    states = {labels["name"]: value for labels, value in found["ipmi_fan_speed_state"]}
    assert states == {"Fan 1": 0, "Fan 2": 2}
    assert found["ipmi_temperature_celsius"][0][1] == 31
