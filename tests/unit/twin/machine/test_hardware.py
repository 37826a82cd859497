# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of one IPU-Machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from openipu.shared.pod.topology import CableKind, Layout
from openipu.twin.cables.wiring import Wiring
from openipu.twin.machine import hardware as twin
from openipu.vipu.agent.hardware import HardwareError, Options, PartitionFault, Pulses, Share, ShareIpu, load
from openipu.vipu.domain.model import GwRouting, Routing, SyncType

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(coroutine, 60)  # ends a hanging test

    return asyncio.run(bounded())


def machine(**options: Any) -> twin.TwinHardware:
    return twin.TwinHardware("127.2.1.1", "127.5.1.1", "8203921-0007", **options)


def share(id: str, *ipus: int) -> Share:
    placed = tuple(ShareIpu(ipu, routing_id, 0, 0) for routing_id, ipu in enumerate(ipus))
    return Share(id, placed, Routing.DNC, GwRouting.UNDEFINED, SyncType.GS2_DEFAULT, False)


def test_the_facts_of_get_agent() -> None:
    info = run(machine().info())
    assert [name for name, _ in info.facts] == [
        "Exporter",
        "Platform",
        "Manufacturer",
        "Discovery Mode",
        "Virm version",
        "Runtime version",
        "Board serial number",
        "Part number",
        "GWSW Version",
        "IPUoF server version",
        "HDF Version",
        "HDF Hash",
        "Num of IPUs",
    ]
    facts = dict(info.facts)
    assert facts["Exporter"] == "http://127.2.1.1:2112/metrics"
    assert facts["Board serial number"] == "8203921-0007"
    assert re.fullmatch("[0-9a-f]{40}", facts["HDF Hash"])
    assert len(info.ipus) == int(facts["Num of IPUs"]) == 4
    for facts_of_ipu in info.ipus:
        names = [name for name, _ in facts_of_ipu]
        assert names[:5] == ["PCI", "Device", "Firmware", "Architecture", "Num Tiles"]
    assert len(info.versions) == 6


def test_the_attributes_of_list_ipu_attrs() -> None:
    attributes = run(machine().ipu_attributes())
    assert sorted(attributes) == [0, 1, 2, 3]
    for values in attributes.values():
        assert list(values) == sorted(values)
        assert {"board ipu index", "board type", "firmware major version", "hexopt active size (bytes)"} <= set(values)
        assert values["firmware version"] == ".".join(
            values[f"firmware {part} version"] for part in ("major", "minor", "patch")
        )
        assert re.fullmatch(r"\d{4}\.\d{4}\.8203921", values["board serial number"])
    assert len({values["chip id"] for values in attributes.values()}) == 4


def test_everything_follows_from_the_serial_number() -> None:
    one, same, other = machine(), machine(), twin.TwinHardware("127.2.1.1", "127.5.1.1", "8203921-0008")
    assert run(one.info()) == run(same.info()) != run(other.info())
    assert run(one.ipu_attributes()) == run(same.ipu_attributes()) != run(other.ipu_attributes())
    assert one.boot_id != same.boot_id
    assert twin.serial_for("ag01") == twin.serial_for("ag01") != twin.serial_for("ag02")


def test_devices_are_in_the_order_of_the_share_which_is_not_brought_up_twice() -> None:
    async def scenario() -> None:
        hardware = machine(bring_up=0.01)
        devices = await hardware.configure(share("p", 3, 2), reset=False)
        assert [device.device_id for device in devices] == [3, 2]
        assert {device.ip for device in devices} == {"127.5.1.1"}
        assert len({(device.server_port, device.rdma_port) for device in devices}) == 2
        hardware.rejection = "no"  # a share in place is not brought up again
        assert await hardware.configure(share("p", 3, 2), reset=False) == devices
        with pytest.raises(HardwareError, match="no"):
            await hardware.configure(share("p", 3, 2), reset=True)
        assert sorted(await hardware.read_shares()) == []

    run(scenario())


def test_a_share_evicts_other_partitions_from_its_ipus() -> None:
    async def scenario() -> None:
        hardware = machine()
        await hardware.configure(share("low", 1, 0), reset=False)
        await hardware.configure(share("high", 3, 2), reset=False)
        assert sorted(await hardware.read_shares()) == ["high", "low"]
        await hardware.configure(share("one", 2), reset=False)
        assert sorted(await hardware.read_shares()) == ["low", "one"]
        await hardware.release("low")
        await hardware.release("low")
        assert sorted(await hardware.read_shares()) == ["one"]
        await hardware.configure(share("one", 0), reset=False)
        assert (await hardware.ipu_attributes())[2]["partition id"] == ""
        assert (await hardware.ipu_attributes())[0]["partition id"] == "one"

    run(scenario())


@pytest.mark.parametrize("ipus", [(), (4,), (1, 1)])
def test_an_invalid_share_is_rejected(ipus: tuple[int, ...]) -> None:
    with pytest.raises(HardwareError, match="IPUs from 0 to 3"):
        run(machine().configure(share("p", *ipus), reset=False))


def test_a_failed_ipu_is_reported_and_recovers_when_brought_up() -> None:
    async def scenario() -> None:
        hardware, faults = machine(), []
        hardware.on_fault(faults.append)
        await hardware.configure(share("p", 1, 0), reset=False)
        hardware.fail_ipu(3, "unused")
        hardware.fail_ipu(0, "broken")
        assert faults == [PartitionFault("p", 0, "broken")]
        assert (await hardware.ipu_attributes())[0]["ipu state"] == "failed"
        hardware.rejection = "it stays dead"
        with pytest.raises(HardwareError, match="it stays dead"):
            await hardware.configure(share("p", 1, 0), reset=False)
        hardware.heal()
        await hardware.configure(share("p", 1, 0), reset=False)
        assert (await hardware.ipu_attributes())[0]["ipu state"] == "ready"

    run(scenario())


def test_a_reboot_drops_all_shares_even_during_a_bring_up() -> None:
    async def scenario() -> None:
        hardware = machine(bring_up=0.05)
        await hardware.configure(share("p", 0), reset=False)
        before = hardware.boot_id
        under_way = asyncio.create_task(hardware.configure(share("q", 1), reset=False))
        await asyncio.sleep(0)
        hardware.reboot()
        with pytest.raises(HardwareError, match="restarted"):
            await under_way
        assert hardware.boot_id != before
        assert sorted(await hardware.read_shares()) == []

    run(scenario())


def test_a_hanging_machine_does_not_respond_until_healed() -> None:
    async def scenario() -> None:
        hardware = machine()
        hardware.hang()
        waiting = asyncio.create_task(hardware.read_shares())
        for _ in range(10):
            await asyncio.sleep(0)
            assert not waiting.done()
        hardware.heal()
        assert await waiting == {}

    run(scenario())


def test_ports_and_links() -> None:
    wiring = Wiring()
    near, far = machine(agent_id="ag01", wiring=wiring), machine(agent_id="ag02", wiring=wiring)
    wiring.connect(Layout(2), ["ag01", "ag02"])
    ports = run(near.cables())
    assert len(ports) == 8 + 2 + 8
    plugged = [(port.kind, port.port) for port in ports if port.serial]
    assert plugged == [*((CableKind.IPU_LINK, n) for n in (5, 6, 7, 8)), *((CableKind.SYNC_LINK, n) for n in (6, 7))]
    both = {CableKind.IPU_LINK, CableKind.GW_LINK}
    links = {link.link: link for link in run(near.train_links(both))}
    assert len(links) == 16 + 8 + 2
    assert sorted(name for name, link in links.items() if link.up and name.isdigit()) == ["5", "6", "7", "8"]
    assert not any(link.corrected_errors for link in links.values())
    assert len(run(near.train_links({CableKind.GW_LINK}))) == 2
    assert run(near.pfc_classes()) == {"eth1": tuple(range(8))}
    far.hang()  # links to it do not train
    assert not any(link.up for link in run(near.run_traffic([5, 6])) if link.link.isdigit())


def test_sync_pulses_and_their_end() -> None:
    wiring = Wiring()
    near, far = machine(agent_id="ag01", wiring=wiring), machine(agent_id="ag02", wiring=wiring)
    wiring.connect(Layout(2), ["ag01", "ag02"])
    pulses = [Pulses(CableKind.SYNC_LINK, 6, 3), Pulses(CableKind.SYNC_LINK, 0, 9)]
    run(near.pulse_sync(pulses))
    run(near.pulse_sync(pulses[:1]))
    assert run(far.read_sync()) == [Pulses(CableKind.SYNC_LINK, 2, 6)]
    run(far.clear_sync())
    assert run(far.read_sync()) == []
    far.powered = False
    run(near.pulse_sync(pulses))
    assert run(far.read_sync()) == []
    with pytest.raises(HardwareError, match="IPU-Link port 5 carries no sync"):
        run(near.pulse_sync([Pulses(CableKind.IPU_LINK, 5, 1)]))
    with pytest.raises(HardwareError, match="no IPU-Link port 9"):
        run(near.run_traffic([9]))


def test_the_options_of_a_machine_without_cables() -> None:
    options = Options("127.0.0.1", 8080, {"serial": "1-2", "rnic-address": "127.5.0.1", "bring-up-seconds": "0.5"})
    made = load("twin")(options)
    assert isinstance(made, twin.TwinHardware)
    assert (made.serial, made.rnic_address, made.bring_up) == ("1-2", "127.5.0.1", 0.5)
    assert twin.create(Options("127.0.0.1", 8080)).rnic_address == "127.0.0.1"
    with pytest.raises(ValueError, match="option 'colour' is unknown"):
        twin.create(replace(options, values={"colour": "red"}))
    for invalid in ("soon", "-1", "nan", "inf"):
        with pytest.raises(ValueError, match="bring-up-seconds"):
            twin.create(replace(options, values={"bring-up-seconds": invalid}))
    versions = twin.create(replace(options, values={"versions": "GWSW=2.1.0,Virm=1.19.0"})).versions
    assert versions == {**twin.VERSIONS, "GWSW": "2.1.0", "Virm": "1.19.0"}
    for invalid in ("Gateway=1", "GWSW=", "GWSW"):
        with pytest.raises(ValueError, match="a component of versions is unknown or has no version"):
            twin.create(replace(options, values={"versions": invalid}))
    with pytest.raises(LookupError, match="Cannot load hardware 'abacus': it is not installed"):
        load("abacus")
