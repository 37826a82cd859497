# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about the hardware of a switch: fans, temperatures, power supplies and inventory.

The sensors of the twin show a healthy switch with constant values.
"""

from __future__ import annotations

from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.ports import kind_of
from openipu.twin.devices.eos.show.context import ShowContext

COMMANDS = Commands[ShowContext]()
_FAN_TRAYS, _POWER_SUPPLIES = 4, 2
_SPEED = 40  # of the fans in percent
_CAPACITY, _WATTS, _VOLTS = 500.0, 120.0, 230.0  # of each power supply
# Description and temperature of the sensors in degrees Celsius.
_SENSORS = (("Cpu temp sensor", 42.0), ("Front temp sensor", 28.0), ("Switch chip sensor", 51.0))
_OVERHEAT, _CRITICAL = 95.0, 105.0


def _fans(label: str) -> dict[str, Any]:
    fan = {
        "label": label,
        "status": "ok",
        "speed": _SPEED,
        "configuredSpeed": _SPEED,
        "actualSpeed": _SPEED,
        "maxSpeed": 100,
        "speedHwOverride": False,
        "speedStable": True,
    }
    return {"label": label, "status": "ok", "speed": _SPEED, "fans": [fan]}


@COMMANDS.add("show system environment cooling", privileged=False)
def _cooling(context: ShowContext, _: tuple[str, ...]) -> Output:
    trays = [_fans(str(number)) for number in range(1, _FAN_TRAYS + 1)]
    supplies = [_fans(f"PowerSupply{number}") for number in range(1, _POWER_SUPPLIES + 1)]
    tree = {
        "systemStatus": "coolingOk",
        "ambientTemperature": _SENSORS[1][1],
        "airflowDirection": "frontToBackAirflow",
        "defaultZones": False,
        "numCoolingZones": [],
        "coolingMode": "automatic",
        "minFanSpeed": 0,
        "overrideFanSpeed": 0,
        "shutdownOnInsufficientFans": True,
        "currentZones": 1,
        "configuredZones": 0,
        "fanTraySlots": trays,
        "powerSupplySlots": supplies,
    }
    return Output(None, tree)


def _sensor(number: int, description: str, temperature: float) -> dict[str, Any]:
    return {
        "name": f"TempSensor{number}",
        "description": description,
        "relPos": str(number),
        "currentTemperature": temperature,
        "maxTemperature": temperature,
        "maxTemperatureLastChange": 0.0,
        "targetTemperature": 75.0,
        "overheatThreshold": _OVERHEAT,
        "criticalThreshold": _CRITICAL,
        "hwStatus": "ok",
        "inAlertState": False,
        "alertCount": 0,
        "isPidDriverCard": False,
    }


@COMMANDS.add("show system environment temperature", privileged=False)
def _temperature(context: ShowContext, _: tuple[str, ...]) -> Output:
    sensors = [_sensor(number, *sensor) for number, sensor in enumerate(_SENSORS, 1)]
    supplies = [
        {"relPos": str(number), "entPhysicalClass": "PowerSupply", "tempSensors": []}
        for number in range(1, _POWER_SUPPLIES + 1)
    ]
    tree = {
        "systemStatus": "temperatureOk",
        "ambientThreshold": 45,
        "shutdownOnOverheat": True,
        "tempSensors": sensors,
        "cardSlots": [],
        "powerSupplySlots": supplies,
    }
    return Output(None, tree)


@COMMANDS.add("show system environment power", privileged=False)
def _power(context: ShowContext, _: tuple[str, ...]) -> Output:
    supply = {
        "modelName": "PWR-500AC-F",
        "capacity": _CAPACITY,
        "dominant": False,
        "inputVoltage": _VOLTS,
        "inputCurrent": _WATTS / _VOLTS,
        "outputCurrent": _WATTS / 12,
        "outputPower": _WATTS,
        "state": "ok",
        "tempSensors": {},
        "fans": {},
    }
    tree = {
        "powerSupplies": {str(n): {**supply, "uptime": context.switch.booted} for n in range(1, _POWER_SUPPLIES + 1)}
    }
    return Output(None, tree)


@COMMANDS.add("show inventory", privileged=False)
def _inventory(context: ShowContext, _: tuple[str, ...]) -> Output:
    switch = context.switch
    ports = [name for name in switch.ports.physical if kind_of(name) == "Ethernet"]
    cabled = {one.name for one in switch.forwarding.interfaces.values() if one.neighbour}
    empty = {"mfgName": "Not Present", "modelName": "", "hardwareRev": "", "serialNum": ""}
    cable = {**empty, "mfgName": "Arista Networks", "modelName": "CAB-Q-Q-100G"}
    serial = switch.hardware.serial
    tree = {
        "systemInformation": {
            "name": switch.model,
            "description": f"{switch.model} switch",
            "mfgDate": "",
            "hardwareRev": switch.hardware.revision,
            "hwEpoch": switch.hardware.revision,
            "serialNum": serial,
        },
        "powerSupplySlots": {
            str(n): {"name": "PWR-500AC-F", "serialNum": f"{serial}P{n}"} for n in range(1, _POWER_SUPPLIES + 1)
        },
        "fanTraySlots": {
            str(n): {"name": "FAN-7000-F", "numFans": 1, "serialNum": "N/A"} for n in range(1, _FAN_TRAYS + 1)
        },
        "cardSlots": {},
        "portCount": len(switch.ports.physical),
        "switchedPortCount": len(ports),
        "managementPortCount": len(switch.ports.physical) - len(ports),
        "internalPortCount": 0,
        "xcvrSlots": {
            name.removeprefix("Ethernet"): cable if name in cabled and "/" in name else empty for name in ports
        },
        "emmcFlashDevices": {},
        "storageDevices": {},
    }
    return Output(None, tree)
