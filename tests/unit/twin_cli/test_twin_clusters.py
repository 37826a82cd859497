# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack process with several clusters: each is cabled in itself."""

from __future__ import annotations

import asyncio
import json

import pytest

from openipu.twin import rack


def write(path, *clusters):
    path.write_text(json.dumps({"clusters": list(clusters)}))
    return path


def cluster(first, machines, topology="mesh"):
    rows = [{"agent_id": f"m{n}", "host": "127.0.0.1", "port": 0} for n in range(first, first + machines)]
    return {"topology": topology, "machines": rows}


def cables(found, ids):
    """Serial ids of the cables that are plugged into machines."""
    plugged = (port.serial for id in ids for port in asyncio.run(found.machines[id].hardware.cables()))
    return {serial for serial in plugged if serial}


def test_clusters_share_no_cable(tmp_path):
    found = rack.load(write(tmp_path / "rack.json", cluster(1, 2), cluster(3, 4, "torus")))
    assert list(found.machines) == [f"m{n}" for n in range(1, 7)]
    first, second = cables(found, ["m1", "m2"]), cables(found, ["m3", "m4", "m5", "m6"])
    assert first
    assert second
    assert not first & second


def test_an_id_of_two_clusters_is_refused(tmp_path):
    with pytest.raises(ValueError, match="There are two machines 'm2'"):
        rack.load(write(tmp_path / "rack.json", cluster(1, 2), cluster(2, 2)))


def test_an_unknown_key_of_a_cluster_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a cluster has no 'colour'"):
        rack.load(write(tmp_path / "rack.json", {**cluster(1, 1), "colour": "red"}))
