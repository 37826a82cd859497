# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUoF configuration: the JSON with which Poplar finds the IPUs of a partition, and its file names. No I/O.

Modules write the files with ``tasks.ipuof_task``, and the command line with ``cli.ipuof_files``.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

USER_FOLDER = Path("~/.ipuof.conf.d")

_DEVICE_FIELDS = (
    "ip",
    "server_port",
    "rdma_port",
    "device_id",
    "ipulink_segment_id",
    "routing_id",
    "ipu_arch_id",
    "ipu_id",
    "chip_id",
    "gwsw_version",
    "ipum_sw_version",
)


def gcd_config(gcd: t.Any) -> dict[str, t.Any]:
    """Return one GCD of a PartitionConfig message as the JSON object of its file.

    ``attributes`` is a map of strings, ``devices`` a list of objects, one per IPU.
    """
    return {
        "attributes": dict(sorted(gcd.attributes.items())),
        "devices": [{name: getattr(device, name) for name in _DEVICE_FIELDS} for device in gcd.devices],
    }


def text(config: dict[str, t.Any] | list[dict[str, t.Any]]) -> str:
    """Return the JSON text of one object or a list, for files and output."""
    return json.dumps(config, indent=2) + "\n"


def file_name(partition_id: str, gcd: int, num_gcds: int) -> str:
    """Return the name of the file of a GCD. It has no number when the partition has a single GCD."""
    if num_gcds == 1:
        return "%s_ipuof.conf" % partition_id
    return "%s_gcd%d_ipuof.conf" % (partition_id, gcd)


def files(partition_id: str, config: t.Any) -> dict[str, str]:
    """Return file name and text for all GCDs of a PartitionConfig message."""
    count = len(config.gcd_configs)
    return {file_name(partition_id, n, count): text(gcd_config(gcd)) for n, gcd in enumerate(config.gcd_configs)}
