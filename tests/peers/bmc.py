# SPDX-License-Identifier: GPL-3.0-or-later
"""BMC with sensors, simulated by the simulator of OpenIPMI."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.peers.exporters import HOST, running

SIMULATOR = "ipmi_sim"
USER, PASSWORD = "watcher", "watcher-secret"


class Sensor(NamedTuple):
    """Sensor with the numbers of its type and unit in the IPMI specification."""

    name: str
    kind: int
    unit: int
    value: int


CELSIUS, VOLTS, WATTS, RPM = 1, 4, 6, 0x12
# Fan 2 is below its lower critical threshold.
SENSORS = (
    Sensor("Inlet", 0x01, CELSIUS, 31),
    Sensor("Fan 1", 0x04, RPM, 120),
    Sensor("Fan 2", 0x04, RPM, 3),
    Sensor("12V", 0x02, VOLTS, 12),
    Sensor("Supply", 0x0B, WATTS, 150),
    Sensor("Pump", 0x0A, 0, 100),
)
UPPER, LOWER = (255, 200, 180), (0, 5, 10)  # non-recoverable, critical, non-critical


def _record(number: int, sensor: Sensor) -> bytes:
    """Return a full sensor record (IPMI 2.0, table 43-1) of an unsigned value without conversion."""
    name = sensor.name.encode()
    key = bytes([0x20, 0, number])
    entity = bytes([7, number, 0x7F, 0x68, sensor.kind, 1])
    masks = bytes([0, 0, 0, 0, 0x3F, 0x3F])
    linear = bytes([0, sensor.unit, 0, 0, 1, 0, 0, 0, 0, 0])
    ranges = bytes([0, 0, 0, 0, 255, 0])
    limits = bytes([*UPPER, *LOWER, 0, 0, 0, 0, 0, 0xC0 | len(name)])
    body = key + entity + masks + linear + ranges + limits + name
    return bytes([number, 0, 0x51, 1, len(body)]) + body


def _script() -> str:
    lines = ["mc_setbmc 0x20", "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02", "sel_enable 0x20 1000 0x0a"]
    mask = "000111111111111"
    for number, sensor in enumerate(SENSORS, 1):
        limits = " ".join(str(value) for value in (*UPPER, *LOWER))
        lines += [
            f"sensor_add 0x20 0 {number} {sensor.kind} 1",
            f"sensor_set_threshold 0x20 0 {number} readable 111111 {limits}",
            f"sensor_set_event_support 0x20 0 {number} enable scanning per-state {mask} {mask} {mask} {mask}",
            f"sensor_set_value 0x20 0 {number} {sensor.value} 0",
            "main_sdr_add 0x20 " + " ".join(f"0x{byte:02x}" for byte in _record(number, sensor)),
        ]
    return "\n".join([*lines, "mc_enable 0x20", ""])


@contextmanager
def bmc(folder: Path, port: int) -> Iterator[str]:
    """Run a BMC with IPMI 2.0 until the end of the block, and yield its address and port."""
    levels = ("callback", "user", "operator", "admin")
    allowed = "\n".join(f"    allowed_auths_{level} none md2 md5 straight" for level in levels)
    (folder / "state").mkdir()
    (folder / "chassis").write_text('#!/bin/sh\n[ "$2 $3" != "get power" ] || echo power:1\n')
    (folder / "chassis").chmod(0o700)
    (folder / "lan.conf").write_text(
        f"""name "bmc"
set_working_mc 0x20
  startlan 1
    addr {HOST} {port}
    priv_limit admin
{allowed}
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/chassis 0x20"
  user 1 false "" "" user 10 none md2 md5 straight
  user 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight
"""
    )
    (folder / "bmc.emu").write_text(_script())
    command = [SIMULATOR, "-c", folder / "lan.conf", "-f", folder / "bmc.emu", "-s", folder / "state", "-n"]
    probe = ["ipmi-chassis", "-h", f"{HOST}:{port}", "-u", USER, "-p", PASSWORD, "-D", "LAN_2_0", "-l", "admin"]
    probe += [
        "-W",
        "opensesspriv",
        "--session-timeout",
        "1000",
        "--retransmission-timeout",
        "200",
        "--get-chassis-status",
    ]

    def ready() -> bool:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0

    with running(command, folder / "bmc.log", ready):
        yield f"{HOST}:{port}"
