# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of third-party exporters, compared with the list that rules and dashboards may use."""

from __future__ import annotations

import socket
from collections.abc import Collection
from pathlib import Path

import yaml

from tests import ROOT
from tests.peers.bmc import PASSWORD, SIMULATOR, USER, bmc
from tests.peers.exporters import HOST, fetch, metrics, responds, running
from tests.peers.monitoring_files import write_files
from tests.peers.programs import needs
from tests.ports import free_port
from tests.waiting import until

PROGRAMS = {
    "prometheus": "prometheus",
    "alertmanager": "prometheus-alertmanager",
    "node": "prometheus-node-exporter",
    "ipmi": "prometheus-ipmi-exporter",
}
PACKAGES = " ".join((*PROGRAMS.values(), "openipmi"))
pytestmark = needs(*PROGRAMS.values(), SIMULATOR, "ipmi-chassis", packages=PACKAGES)
EXPORTED = yaml.safe_load((ROOT / "tests/unit/roles/monitoring/exported.yml").read_text())
Found = dict[str, list[tuple[dict[str, str], float]]]


def scrape(kind: str, folder: Path, *options: str, path: str = "metrics", wait: Collection[str] = ()) -> Found:
    """Return the metrics of an exporter, after those in ``wait`` have appeared."""
    port = free_port()
    url = f"http://{HOST}:{port}"
    command = [PROGRAMS[kind], f"--web.listen-address={HOST}:{port}", *options]
    with running(command, folder / f"{kind}.log", responds(f"{url}/metrics")):
        found: Found = {}

        def complete() -> bool:
            found.update(metrics(fetch(f"{url}/{path}")))
            return set(wait) <= set(found)

        until(complete, 30, lambda: f"{set(wait) - set(found)} did not appear.")
        return found


def missing(kind: str, found: Found) -> list[str]:
    return [name for name in EXPORTED[kind] if name not in found]


def test_prometheus(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    options = f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"
    # Some counters appear with the first rule, others with the first alert.
    found = scrape("prometheus", tmp_path, *options, wait=EXPORTED["prometheus"])
    groups = {labels["rule_group"] for labels, _ in found["prometheus_rule_evaluation_failures_total"]}
    assert any("openipu alerts" in group for group in groups)


def test_alertmanager(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("route: {receiver: discard}\nreceivers: [{name: discard}]\n")
    options = f"--config.file={tmp_path}/a.yml", f"--storage.path={tmp_path}/data", "--cluster.listen-address="
    found = scrape("alertmanager", tmp_path, *options)
    assert not missing("alertmanager", found)
    assert any(labels["integration"] == "webhook" for labels, _ in found["alertmanager_notifications_failed_total"])


def test_a_host_with_an_array_and_a_bond(tmp_path: Path) -> None:
    """Use simulated kernel files, because this host may have neither an array nor a bond."""
    net = tmp_path / "sys/class/net"
    (net / "bond0/bonding").mkdir(parents=True)
    (net / "bonding_masters").write_text("bond0\n")
    (net / "bond0/bonding/slaves").write_text("eth0 eth1\n")
    for name, state in (("eth0", "up"), ("eth1", "down")):
        folder = net / "bond0" / f"lower_{name}" / "bonding_slave"
        folder.mkdir(parents=True)
        (folder / "mii_status").write_text(f"{state}\n")
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mdstat").write_text(
        "Personalities : [raid6]\n"
        "md0 : active raid6 nvme0n1[0] nvme1n1[1](F) nvme2n1[2] nvme3n1[3]\n"
        "      2093056 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [U_UU]\n\nunused devices: <none>\n"
    )
    collectors = [f"--collector.{name}" for name in ("mdadm", "bonding")]
    options = ["--collector.disable-defaults", *collectors, f"--path.sysfs={tmp_path}/sys", f"--path.procfs={proc}"]
    found = scrape("node", tmp_path, *options)
    assert found["node_bonding_slaves"] == [({"master": "bond0"}, 2.0)]
    assert found["node_bonding_active"] == [({"master": "bond0"}, 1.0)]
    disks = {labels["state"]: value for labels, value in found["node_md_disks"]}
    assert (disks["active"], disks["failed"]) == (3, 1)
    assert found["node_md_disks_required"] == [({"device": "md0"}, 4.0)]
    local = scrape("node", tmp_path)
    assert not missing("node", {**local, **found})


def test_a_bmc(tmp_path: Path) -> None:
    credentials = {"username": USER, "password": PASSWORD, "privilege": "admin", "workarounds": ["opensesspriv"]}
    files = write_files(tmp_path, monitoring_ipmi={"machine": credentials})
    with bmc(tmp_path, free_port(kind=socket.SOCK_DGRAM)) as address:
        options = (f"--config.file={files}/ipmi_remote.yml",)
        found = scrape("ipmi", tmp_path, *options, path=f"ipmi?target={address}&module=machine")
    assert not missing("ipmi", found)
    assert {labels["collector"]: value for labels, value in found["ipmi_up"]} == {"bmc": 1, "chassis": 1, "ipmi": 1}
    states = {labels["name"]: value for labels, value in found["ipmi_fan_speed_state"]}
    assert states == {"Fan 1": 0, "Fan 2": 2}
    assert found["ipmi_temperature_celsius"][0][1] == 31
