# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the configuration file of a rack twin.

The file is JSON:

    {"topology": "torus", "ilds": 1, "machines": [
        {"agent_id": "ag01", "host": "127.2.1.1", "port": 8080, "rnic_address": "127.5.1.1", "serial": "8203921-0001"}
    ]}

``machines`` are in the order of the cluster: the lowest in the rack first, IPU-Link domain by domain. Optional keys
of a machine, with defaults:

* ``port``: 8080.
* ``rnic_address``: equal to ``host``.
* ``serial``: derived from the id.
* ``metrics_port``: none, for no metrics.

Optional keys at the top level, with defaults:

* ``topology``: mesh.
* ``ilds``: 1, the number of IPU-Link domains.
* ``bring_up_seconds``: 0, the duration of bringing up a share.
* ``announce_interfaces``: none, the interfaces for multicast of presence.
* ``tls_ca``, ``tls_certificate``, ``tls_key``: none, paths for mutual TLS.
* ``names``: none, the agent ids of machines by other names, which faults and commands accept too.
* ``unmanaged``: none, the names of unmanaged switches and PDUs, for error messages.
* ``devices``: none, switches and PDUs as ``openipu.twin.launch.rack_config`` writes them. They keep their state in
  the folder ``devices`` next to the file.
* ``clusters``: replaces ``topology``, ``ilds`` and ``machines`` by a list of mappings with these three keys. No cable
  connects two clusters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from openipu.shared.vipu.ports import AGENT_PORT
from openipu.twin.devices.logins import DEVICES
from openipu.twin.machine.machine import MachineSpec
from openipu.twin.rack.rack import Rack
from openipu.vipu.domain.model import Topology
from openipu.vipu.tls.load import mutual

_TLS = ("tls_ca", "tls_certificate", "tls_key")


def load(path: Path) -> Rack:
    """Return the rack of a configuration file. Raises OSError or ValueError with a one-line message."""
    try:
        config: dict[str, Any] = json.loads(path.read_text())
        keys = ("topology", "ilds", "machines")
        clusters = config.pop("clusters", None) or [{key: config.pop(key) for key in keys if key in config}]
        options: dict[str, Any] = {
            "bring_up": float(config.pop("bring_up_seconds", 0)),
            "announce_interfaces": tuple(config.pop("announce_interfaces", ())),
        }
        if any(name in config for name in _TLS):
            ca, certificate, key = (Path(config.pop(name)) for name in _TLS)
            options["credentials"] = mutual(ca, certificate, key)
        devices = config.pop("devices", None)
        names, unmanaged = config.pop("names", {}), config.pop("unmanaged", ())
        if config:
            raise ValueError(f"unknown setting {sorted(config)[0]!r}. Check its name.")
        rack = _join([_cluster(entry, options) for entry in clusters], devices, path.parent / DEVICES)
        rack.faults.use_names(names, unmanaged)
    except KeyError as error:
        raise ValueError(f"Cannot read the rack in {path}: {error} is missing. Add it.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"Cannot read the rack in {path}: {str(error).removesuffix('.')}.") from None
    return rack


def _join(racks: Sequence[Rack], devices: Mapping[str, Any] | None, folder: Path) -> Rack:
    """Merge the racks of all clusters into one, and install its devices."""
    for other in racks[1:]:
        racks[0].merge(other)
    if devices:
        racks[0].install_devices(devices, folder)
    return racks[0]


def _cluster(entry: Mapping[str, Any], options: Mapping[str, Any]) -> Rack:
    unknown = set(entry) - {"topology", "ilds", "machines"}
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]!r} in a cluster. Check its name.")
    return Rack(
        [_machine(machine) for machine in entry["machines"]],
        topology=Topology(entry.get("topology", Topology.MESH)),
        ilds=int(entry.get("ilds", 1)),
        **options,
    )


def _machine(entry: Mapping[str, Any]) -> MachineSpec:
    unknown = set(entry) - {field.name for field in fields(MachineSpec)}
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]!r} in a machine. Check its name.")
    return MachineSpec(
        agent_id=str(entry["agent_id"]),
        host=str(entry["host"]),
        port=int(entry.get("port", AGENT_PORT)),
        rnic_address=str(entry.get("rnic_address", "")),
        serial=str(entry.get("serial", "")),
        metrics_port=None if entry.get("metrics_port") is None else int(entry["metrics_port"]),
    )
