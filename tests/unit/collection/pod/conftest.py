# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixture of small PODs, valid or invalid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load

HEADER = "name,rack,unit,bmc_mac,gw_mac,rnic_mac"
NETWORKS = (
    "networks: {bmc: {subnet: 10.1.0.0/16}, gw: {subnet: 10.2.0.0/16}, "
    "management: {subnet: 10.3.0.0/16}, data: {subnet: 10.5.0.0/16}}"
)


class PodFiles:
    """Writer and loader of a POD with four machines in one rack and the changes of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pod_yml = folder / "pod.yml"
        self.machines_csv = folder / "machines.csv"

    def write(
        self,
        *,
        racks: Mapping[int, Iterable[int]] | None = None,
        rows: list[str] | None = None,
        cluster: str | None = "racks: [rack1]",
        networks: str = NETWORKS,
        drop: str = "",
        rack_tail: str = "",
        tail: str = "",
    ) -> Path:
        racks = racks or {1: range(1, 5)}
        lines = ["plugin: openipu.pod.pod", "name: test", networks, "controller: {host: 10.3.1.101}", "racks:"]
        for number in racks:
            lines.append(f"  - {{name: rack{number}, number: {number}{rack_tail}}}")
        if cluster:
            lines.append(f"clusters:\n  - {{id: cl, {cluster}}}")
        text = "\n".join(line for line in lines if not (drop and line.startswith(drop))) + "\n" + tail
        self.pod_yml.write_text(text)
        if rows is None:
            rows = [HEADER]
            for rack, units in racks.items():
                for unit in units:
                    macs = ",".join(f"02:{network}:00:00:{rack:02x}:{unit:02x}" for network in ("01", "02", "05"))
                    rows.append(f"m{rack}.{unit},rack{rack},{unit},{macs}")
        self.machines_csv.write_text("\n".join(rows) + "\n")
        return self.pod_yml

    def load(self, **content) -> model.Pod:
        return load(str(self.write(**content)))


@pytest.fixture
def pod(tmp_path: Path) -> PodFiles:
    return PodFiles(tmp_path)
