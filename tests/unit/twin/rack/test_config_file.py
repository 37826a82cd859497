# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files with several clusters: no cable connects two of them."""

from __future__ import annotations

import asyncio
import json

import pytest

from openipu.twin.rack import config_file
from openipu.vipu.tls import issue


def write(path, *clusters):
    path.write_text(json.dumps({"clusters": list(clusters)}))
    return path


def cluster(first, machines, topology="mesh"):
    rows = [{"agent_id": f"m{n}", "host": "127.0.0.1", "port": 0} for n in range(first, first + machines)]
    return {"topology": topology, "machines": rows}


def cables(found, ids):
    """Return the serial ids of the cables of machines."""
    plugged = (port.serial for id in ids for port in asyncio.run(found.machines[id].hardware.cables()))
    return {serial for serial in plugged if serial}


def test_clusters_share_no_cable(tmp_path):
    found = config_file.load(write(tmp_path / "rack.json", cluster(1, 2), cluster(3, 4, "torus")))
    assert list(found.machines) == [f"m{n}" for n in range(1, 7)]
    first, second = cables(found, ["m1", "m2"]), cables(found, ["m3", "m4", "m5", "m6"])
    assert first
    assert second
    assert not first & second


def test_several_machines_use_tls(tmp_path):
    issue.create(tmp_path / "tls", ["127.0.0.1"])
    server = tmp_path / "tls" / "server"
    files = {"tls_ca": "ca.crt", "tls_certificate": "server.crt", "tls_key": "server.key"}
    path = tmp_path / "rack.json"
    path.write_text(json.dumps(cluster(1, 2) | {key: str(server / name) for key, name in files.items()}))

    async def scenario():
        rack = config_file.load(path)
        try:
            await rack.start()
            return [machine.server.port for machine in rack.machines.values()]
        finally:
            await rack.stop()

    assert all(asyncio.run(scenario()))


def test_an_id_in_two_clusters_is_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"^Cannot read the rack in .*: two machines have the id 'm2'\. Rename one\.$"):
        config_file.load(write(tmp_path / "rack.json", cluster(1, 2), cluster(2, 2)))


def test_an_unknown_key_of_a_cluster_is_rejected(tmp_path):
    with pytest.raises(
        ValueError, match=r"^Cannot read the rack in .*: unknown key 'colour' in a cluster\. Check its name\.$"
    ):
        config_file.load(write(tmp_path / "rack.json", {**cluster(1, 1), "colour": "red"}))


def test_a_message_ends_with_one_full_stop(tmp_path):
    with pytest.raises(ValueError, match=r"^Cannot read the rack in .*: a rack needs .* machine\. Add machines\.$"):
        config_file.load(write(tmp_path / "rack.json", cluster(1, 0)))
    with pytest.raises(ValueError, match=r"[^.]\.$"):
        config_file.load(write(tmp_path / "rack.json", cluster(1, 1, "ring")))
