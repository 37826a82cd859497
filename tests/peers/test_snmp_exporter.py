# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP exporter with the modules of the role `monitoring`, against PDUs, switches of the twin, and Net-SNMP."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.plugin_utils import snmp_exporter
from ansible_collections.openipu.pod.plugins.plugin_utils.snmp_exporter import Rows, configuration
from ansible_collections.openipu.pod.plugins.plugin_utils.snmp_exporter import metrics as metric_names

from openipu.twin.devices import logins
from openipu.twin.devices.pdu import legacy_mib
from tests.integration.bringup.rack_with_devices import MACHINES, RackWithDevices
from tests.integration.pdu_agents import (
    AUTH_KEY,
    PRIV_KEY,
    READER,
    READS,
    WITH_V2C,
    WRITER,
    ServedPdu,
    agents_of_pdus,
)
from tests.peers.exporters import HOST, fetch, metrics, responds, running
from tests.ports import free_port
from tests.waiting import until

SWITCH = "tor1"
EXPORTER, SNMPD = "prometheus-snmp-exporter", "/usr/sbin/snmpd"
pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        not (shutil.which(EXPORTER) and Path(SNMPD).exists()), reason=f"apt-get install {EXPORTER} snmpd"
    ),
]
WATTS = {1: 1000.0, 8: 230.0}
CREDENTIALS: dict[str, dict[str, Any]] = {
    "v3": {"username": WRITER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY},
    "v3-sha256-aes256": {
        "username": READER,
        "auth_key": AUTH_KEY,
        "priv_key": PRIV_KEY,
        "auth_protocol": "sha256",
        "priv_protocol": "aes256",
    },
    "v2c": {"version": "v2c", "community": READS},
}
Found = dict[str, list[tuple[dict[str, str], float]]]


def separates_credentials() -> bool:
    """Return whether the installed exporter separates credentials from modules."""
    result = subprocess.run([EXPORTER, "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"version (\d+)\.(\d+)", result.stdout + result.stderr)
    assert release, result
    return (int(release[1]), int(release[2])) >= (0, 23)


@pytest.fixture(scope="module")
def pdu() -> Iterator[ServedPdu]:
    with agents_of_pdus() as agents:
        yield agents.pdu("pdu1", "AP8886", WITH_V2C, WATTS)


def scrape(folder: Path, kind: str, connection: dict[str, Any], address: str) -> Found:
    """Return the metrics that the exporter returns for a device with these credentials."""
    file, port = folder / "snmp.yml", free_port()
    file.write_text(yaml.safe_dump(configuration({kind: connection}, separates_credentials())))
    url = f"http://{HOST}:{port}"
    command = [EXPORTER, f"--config.file={file}", f"--web.listen-address={HOST}:{port}"]
    with running(command, folder / "exporter.log", responds(f"{url}/metrics")):
        return metrics(fetch(f"{url}/snmp?module={kind}&auth={kind}&target={address}"))


@pytest.mark.parametrize("connection", CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_pdu(pdu: ServedPdu, tmp_path: Path, connection: dict[str, Any]) -> None:
    found = scrape(tmp_path, "pdu", connection, f"{HOST}:{pdu.port}")
    assert set(metric_names("pdu")) <= set(found)
    # Numbers of the MIB: hundredths of kW, tenths of A
    assert found["rPDU2DeviceStatusPower"] == [({"index": "1"}, 123.0)]
    currents = {labels["bank"]: value for labels, value in found["rPDU2BankStatusCurrent"]}
    assert len(currents) == 6
    assert currents["1"] == 44.0
    assert {labels["phase"] for labels, _ in found["rPDU2PhaseStatusVoltage"]} == {"1", "2", "3"}
    assert found["rPDU2IdentModelNumber"][0][0]["rPDU2IdentModelNumber"] == "AP8886"
    assert found["rPDU2BankPropertiesBreakerRating"][0][1] == 16.0


def test_the_legacy_tree_of_a_pdu(pdu: ServedPdu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, ident = legacy_mib.LOAD_STATUS, legacy_mib.IDENT
    rows = Rows(
        ((status["Load"], "gauge"), (status["LoadState"], "gauge")),
        "rPDULoadStatusIndex",
        (("phase", status["PhaseNumber"]), ("bank", status["BankNumber"])),
    )
    power = Rows(((ident["DevicePowerWatts"], "gauge"),), "scalar")
    monkeypatch.setitem(snmp_exporter.MODULES, "rpdu", (rows, power))
    found = scrape(tmp_path, "rpdu", CREDENTIALS["v2c"], f"{HOST}:{pdu.port}")
    loads = {(labels["phase"], labels["bank"]): load for labels, load in found["rPDULoadStatusLoad"]}
    assert len(loads) == 9
    assert (loads["1", "0"], loads["0", "1"], loads["0", "2"]) == (55.0, 44.0, 10.0)
    assert {state for _labels, state in found["rPDULoadStatusLoadState"]} == {1.0}
    assert [watts for _labels, watts in found["rPDUIdentDevicePowerWatts"]] == [1230.0]


def test_the_interface_of_a_pdu(pdu: ServedPdu, tmp_path: Path) -> None:
    found = scrape(tmp_path, "switch", CREDENTIALS["v2c"], f"{HOST}:{pdu.port}")
    # A PDU has no processor table.
    assert set(metric_names("switch")) - set(found) == {"hrProcessorLoad"}
    assert [(labels["ifName"], state) for labels, state in found["ifOperStatus"]] == [("eth0", 1.0)]
    assert found["ifHCInOctets"][0][1] > 0


def test_invalid_credentials_return_no_metrics(pdu: ServedPdu, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="error collecting metric"):
        scrape(tmp_path, "pdu", {**CREDENTIALS["v3"], "auth_key": "of another user"}, f"{HOST}:{pdu.port}")


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[RackWithDevices]:
    made = RackWithDevices(tmp_path / "rack", "AP8886")
    assert made.configure(SWITCH)
    yield made
    made.close()


def test_a_switch_of_the_twin(rack: RackWithDevices, tmp_path: Path) -> None:
    reader = {"username": logins.READER, "auth_key": logins.AUTH_KEY, "priv_key": logins.PRIV_KEY}

    def ports() -> dict[str, dict[str, float]]:
        """Return the values of each port with a cable, by the name of the metric."""
        found = scrape(tmp_path, "switch", reader, f"{rack.address(SWITCH)}:{logins.SNMP_PORT}")
        assert set(metric_names("switch")) <= set(found)
        each: dict[str, dict[str, float]] = {}
        for name, samples in found.items():
            for labels, value in samples:
                if labels.get("ifAlias", "").startswith("ag0"):
                    each.setdefault(labels["ifName"], {})[name] = value
        return each

    before = ports()
    assert len(before) == MACHINES
    assert {values["ifOperStatus"] for values in before.values()} == {1.0}
    assert {values["ifHighSpeed"] for values in before.values()} == {100_000.0}
    rack.fault(f"unplug {SWITCH}:Ethernet9/1")
    rack.fault("stop ag02")
    until(lambda: ports()["Ethernet9/1"]["ifHCOutOctets"] > before["Ethernet9/1"]["ifHCOutOctets"])
    after = {name: values["ifOperStatus"] for name, values in ports().items()}
    assert (after.pop("Ethernet9/1"), after.pop("Ethernet10/1")) == (6.0, 2.0)  # notPresent, down
    assert set(after.values()) == {1.0}


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[str]:
    """Run the agent of Net-SNMP with the interfaces of this machine, and yield its address."""
    port = free_port(kind=socket.SOCK_DGRAM)
    file = tmp_path / "snmpd.conf"
    file.write_text(f"agentaddress udp:{HOST}:{port}\nrocommunity {READS}\n")
    command = [SNMPD, "-f", "-Le", "-C", "-c", file, "-p", tmp_path / "pid", "-I", "-smux"]
    probe = ["snmpget", "-v2c", "-c", READS, "-r", "0", "-t", "1", f"{HOST}:{port}", "1.3.6.1.2.1.1.3.0"]

    def ready() -> bool:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0

    with ExitStack() as stack:
        stack.enter_context(running(command, tmp_path / "snmpd.log", ready))
        yield f"{HOST}:{port}"


def test_a_switch_with_net_snmp(switch: str, tmp_path: Path) -> None:
    found = scrape(tmp_path, "switch", {"version": "v2c", "community": READS}, switch)
    # Net-SNMP reports the processor load only after one minute.
    assert set(metric_names("switch")) - set(found) <= {"hrProcessorLoad"}
    state = {labels["ifName"]: value for labels, value in found["ifOperStatus"]}
    assert state["lo"] == 1
    assert all({"ifName", "ifAlias", "ifIndex"} <= set(labels) for labels, _ in found["ifHCInOctets"])
