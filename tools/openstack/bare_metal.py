# SPDX-License-Identifier: GPL-3.0-or-later
"""Ironic, and BMCs that it can manage: sushy-tools' emulator serves Redfish with TLS and passwords.

Both are optional parts of a cloud. They have their own virtual environments, and Ironic its own database, which the
first start creates.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path

import yaml

from openipu.process.background import ProcessError
from openipu.vipu.tls import issue, load

from .component import (
    Component,
    Process,
    api_process,
    authtoken_settings,
    base_environment,
    client_credentials,
    daemon_process,
)
from .daemons import Daemons
from .prepare import migrate, register
from .probes import Probe, accepts_connections
from .rest import Admin
from .site import CACHE, CHECKOUT, PORTS, Site

VENV = CACHE / "ironic"
EMULATOR = CHECKOUT / ".cache" / "redfish" / "bin" / "sushy-emulator"
HOST = "controller"
# Devices with a BMC: names in the inventories of a single rack.
SYSTEMS = (*(f"ipum{number:02}" for number in range(1, 17)), *(f"server{number}" for number in range(1, 5)))
PROCESSES = ("ironic-api", "ironic-conductor", "bmc-emulator")
USER = "root"  # of the BMCs
_NAMESPACE = uuid.UUID("361e6d51-faec-444a-9079-341386da8e2e")  # of the filter to_uuid of Ansible
_MARKER = "registered"  # file in the data of Ironic: its database and its entry in the catalogue are complete


def system(name: str) -> str:
    """Return the ID of the Redfish system of a device, as the filter ``to_uuid`` does."""
    return str(uuid.uuid5(_NAMESPACE, name))


def bmc_variables(site: Site) -> Path:
    """Return the file with the variables of the BMCs for playbooks."""
    return site.state / "bmc.yml"


def check_installed() -> None:
    """Raise ProcessError when Ironic or the emulator is missing."""
    if not (VENV / "bin" / "ironic-conductor").exists() or not EMULATOR.exists():
        raise ProcessError(
            "Cannot start Ironic: it is not installed. Install and start it with make openstack-up IRONIC=1."
        )


def start(site: Site, daemons: Daemons) -> None:
    """Start missing processes and wait until they are ready. Raises ProcessError."""
    _write_emulator(site)
    component = _component(site)
    component.write(site)
    marker = site.data / component.name / _MARKER
    if not marker.exists():
        _create_database(site, component.databases[0])
        migrate(component, site)
        register(Admin(site), component)
        marker.touch()
    daemons.start([*component.processes, _emulator(site)])


def _create_database(site: Site, name: str) -> None:
    command = ["mariadb", f"--host={site.address}", f"--port={PORTS['mariadb']}", "--user=openstack"]
    statement = f"--execute=CREATE DATABASE IF NOT EXISTS {name}"
    environment = {**base_environment(), "MYSQL_PWD": site.secrets.database}
    done = subprocess.run(  # noqa: S603  command of this tool
        [*command, statement], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ProcessError(f"Cannot create the database of Ironic: {done.stderr.strip()}")


def _component(site: Site) -> Component:
    """Return Ironic with its hardware type for Redfish. It provides nodes without cleaning."""
    ours = replace(site, venv=VENV)
    data = site.data / "ironic"
    config = site.etc / "ironic" / "ironic.conf"
    conductor = daemon_process(ours, "ironic-conductor", config)
    return Component(
        name="ironic",
        type="baremetal",
        path="",
        databases=["ironic"],
        folders=["lock", "images", "tftp", "http"],
        config={
            config.name: {
                "DEFAULT": {
                    "transport_url": site.queue_url,
                    "host": HOST,
                    "my_ip": site.address,
                    "state_path": str(data),
                    "auth_strategy": "keystone",
                    "enabled_hardware_types": "redfish",
                    "enabled_bios_interfaces": "no-bios",
                    "enabled_boot_interfaces": "redfish-virtual-media",
                    "enabled_deploy_interfaces": "direct",
                    "enabled_firmware_interfaces": "no-firmware",
                    "enabled_inspect_interfaces": "redfish,no-inspect",
                    "enabled_management_interfaces": "redfish",
                    "enabled_network_interfaces": "noop,flat,neutron",
                    "default_network_interface": "noop",
                    "enabled_power_interfaces": "redfish",
                    "enabled_raid_interfaces": "no-raid",
                    "enabled_vendor_interfaces": "no-vendor",
                },
                "conductor": {"automated_clean": False, "force_power_state_during_sync": False},
                "database": {"connection": site.database_url("ironic")},
                "deploy": {"http_root": str(data / "http")},
                "pxe": {"tftp_root": str(data / "tftp"), "images_path": str(data / "images")},
                "redfish": {"connection_attempts": 1},
                "service_catalog": client_credentials(site, "ironic"),
                "neutron": client_credentials(site, "ironic"),
                "glance": client_credentials(site, "ironic"),
                "keystone_authtoken": authtoken_settings(site, "ironic"),
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        migrations=[[ours.program("ironic-dbsync"), "--config-file", str(config), "upgrade"]],
        processes=[
            api_process(ours, "ironic", "ironic.wsgi.api", {}, "--config-file", str(config)),
            replace(conductor, ready=_has_driver(site)),
        ],
    )


def _has_driver(site: Site) -> Probe:
    """Return a probe for a conductor that has registered its driver."""

    def probe() -> bool:
        try:
            return bool(Admin(site, system=True).get("ironic", "/v1/drivers")["drivers"])
        except ProcessError:
            return False

    return probe


def _write_emulator(site: Site) -> None:
    """Write password, certificates, configuration and playbook variables of the BMCs, if they are missing."""
    folder = site.data / "bmc"
    if bmc_variables(site).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    issue.create(folder / "tls", [site.address])
    password = secrets.token_hex(12)
    _write_private(folder / "htpasswd", f"{USER}:{_hash(password)}\n")
    systems = [{"uuid": system(name), "name": name, "power_state": "On", "nics": []} for name in SYSTEMS]
    server = folder / "tls" / "server"
    settings = {
        "SUSHY_EMULATOR_LISTEN_IP": site.address,
        "SUSHY_EMULATOR_LISTEN_PORT": PORTS["redfish"],
        "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
        "SUSHY_EMULATOR_SSL_CERT": str(server / "server.crt"),
        "SUSHY_EMULATOR_SSL_KEY": str(server / "server.key"),
        "SUSHY_EMULATOR_STATE_DIR": str(folder),
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
    }
    (folder / "emulator.conf").write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    connection = {
        "address": f"https://{site.address}:{PORTS['redfish']}",
        "system_id": "/redfish/v1/Systems/{{ pod_device | to_uuid }}",
        "username": USER,
        "password": password,
        "ca_path": str(folder / "tls" / "ca" / load.CA),
    }
    _write_private(bmc_variables(site), yaml.safe_dump({"openstack_bmc": connection}, sort_keys=False))


def _hash(password: str) -> str:
    """Return the bcrypt hash of a password, made by the library of the emulator."""
    program = "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt(4)).decode())"
    command = [str(EMULATOR.with_name("python")), "-c", program]
    return subprocess.run(command, input=password, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _emulator(site: Site) -> Process:
    """Return the process of the BMCs."""
    command = [str(EMULATOR), "--config", str(site.data / "bmc" / "emulator.conf")]
    port = PORTS["redfish"]
    return Process("bmc-emulator", command, {}, [port], accepts_connections(site.address, port))
