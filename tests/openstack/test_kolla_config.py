# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the role kolla_config, read by Kolla Ansible, Neutron and Nova."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.openstack.role_runs import run_role
from tools.openstack.site import CACHE

KOLLA = ROOT / ".cache/kolla/share/kolla-ansible/ansible"
NETWORKS = [
    {"name": "a-bmc-gw", "vlan": 13, "physical_network": "physnet1g"},
    {"name": "a-management", "vlan": 99, "physical_network": "physnet1g"},
    {"name": "a-data", "vlan": 11, "physical_network": "physnet100g", "mtu": 9000, "dns_domain": "a.example."},
    {"name": "a-storage", "vlan": 12, "physical_network": "physnet100g", "mtu": 9000},
]


def write_config(folder: Path, *options: str, fails: bool = False, **variables: Any) -> str:
    """Run the role and return its output."""
    settings = {
        "kolla_config_path": str(folder / "etc"),
        "kolla_config_networks": NETWORKS,
        "kolla_config_check": str(KOLLA),
        "kolla_config_cpu_dedicated_set": "8-127,136-255",
        "kolla_config_ephemeral_path": "/nvme/nova",
        "kolla_config_letsencrypt_email": "operations@example.com",
        **variables,
    }
    return " ".join(run_role(folder, "kolla_config", *options, fails=fails, **settings).split())


def merged_file(folder: Path, file: str, template: str = "", **variables: Any) -> Path:
    """Return a file as Kolla Ansible deploys it, merged with its template by its own plugin."""
    sources = [str(KOLLA / "roles" / template)] if template else []
    target = folder / "merged.conf"
    settings = [*sorted((KOLLA / "group_vars/all").glob("*.yml")), KOLLA / "roles/neutron/defaults/main.yml"]
    task = {"merge_configs": {"sources": [*sources, str(folder / "etc/config" / file)], "dest": str(target)}}
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars_files": [*map(str, settings)]}
    library = folder / "library"  # only the OpenStack library that the plugin needs
    library.mkdir()
    (library / "oslo_config").symlink_to(next((CACHE / "venv/lib").glob("python3*")) / "site-packages/oslo_config")
    playbook = folder / "merge.yml"
    playbook.write_text(yaml.safe_dump([{**local, "tasks": [task]}]))
    variables = {"ansible_python_interpreter": sys.executable, **variables}
    extra_vars = ["-e", f"@{folder}/etc/globals.d/openipu-pod.yml", "-e", json.dumps(variables)]
    result = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", playbook, *extra_vars],
        env={**os.environ, "ANSIBLE_ACTION_PLUGINS": str(KOLLA / "action_plugins"), "PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return target


def run_openstack_python(program: str, *arguments: object) -> Any:
    """Run a program with the Python of OpenStack and return its JSON output."""
    python = CACHE / "venv" / "bin" / "python"
    line = [python, "-W", "ignore", "-c", program, *map(str, arguments)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def test_check_mode_and_idempotence(tmp_path: Path) -> None:
    write_config(tmp_path, "--check")
    assert not (tmp_path / "etc").exists()
    write_config(tmp_path)
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert settings == {
        "enable_central_logging": True,
        "enable_letsencrypt": True,
        "enable_neutron_provider_networks": True,
        "enable_neutron_sriov": False,
        "kolla_enable_tls_external": True,
        "letsencrypt_email": "operations@example.com",
        "neutron_bridge_name": "br-100g,br-1g",
        "neutron_dns_domain": "a.example.",
        "neutron_dns_integration": True,
        "neutron_external_interface": "bond0,eno1",
        "neutron_physical_networks": "physnet100g,physnet1g",
        "neutron_plugin_agent": "openvswitch",
        "nova_instance_datadir_volume": "/nvme/nova",
        "openvswitch_hw_offload": "yes",
    }
    assert "changed=0" in write_config(tmp_path)


def test_neutron_accepts_the_files(tmp_path: Path) -> None:
    interfaces = {"physnet100g": "bond0", "physnet1g": "eno1", "physnet1": "eno2"}
    options = {
        "kolla_config_extension_drivers": ["uplink_status_propagation"],
        "kolla_config_vlan_ranges": ["physnet1:100:199"],
    }
    write_config(tmp_path, kolla_config_interfaces=interfaces, **options)
    program = """
import json, sys
from oslo_config import cfg
from neutron.conf.plugins.ml2 import config
from neutron.conf.plugins.ml2.drivers import driver_type
from neutron_lib.plugins import utils
config.register_ml2_plugin_opts(cfg.CONF)
driver_type.register_ml2_drivers_vlan_opts(cfg.CONF)
cfg.CONF(["--config-file", sys.argv[1]], project="neutron")
ranges = utils.parse_network_vlan_ranges(cfg.CONF.ml2_type_vlan.network_vlan_ranges)
print(json.dumps([ranges, cfg.CONF.ml2.extension_drivers, cfg.CONF.ml2.path_mtu, cfg.CONF.ml2.physical_network_mtus]))
"""
    file = merged_file(tmp_path, "neutron/ml2_conf.ini", "neutron/templates/ml2_conf.ini.j2", enable_neutron_qos=True)
    ranges, drivers, path_mtu, mtus = run_openstack_python(program, file)
    assert ranges == {"physnet1": [[100, 199]], "physnet100g": [[11, 11], [12, 12]], "physnet1g": [[13, 13], [99, 99]]}
    # Drivers of Kolla Ansible, the POD and the site, in this order.
    assert drivers == [
        *("qos", "port_security", "subnet_dns_publish_fixed_ip"),
        *("port_hardware_offload_type", "tag_ports_during_bulk_creation", "uplink_status_propagation"),
    ]
    # Only the switches of the POD have a larger MTU.
    assert (path_mtu, mtus) == (1500, {"physnet1": "1500", "physnet1g": "1500"})
    assert "global_physnet_mtu = 9000" in (tmp_path / "etc/config/neutron.conf").read_text()


def test_physical_networks_of_the_site_are_kept(tmp_path: Path) -> None:
    interfaces = {"physnet100g": "bond0", "physnet1g": "eno1", "physnet1": "eno2"}
    write_config(tmp_path, kolla_config_interfaces=interfaces, kolla_config_bridges={"physnet1": "br-ex"})
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    lists = [settings[f"neutron_{name}"] for name in ("physical_networks", "bridge_name", "external_interface")]
    assert lists == ["physnet1,physnet100g,physnet1g", "br-ex,br-100g,br-1g", "eno2,bond0,eno1"]


@pytest.mark.parametrize(("blazar", "extra"), [(False, []), (True, ["BlazarFilter"])])
def test_default_scheduler_filters_of_nova_are_kept(tmp_path: Path, blazar: bool, extra: list[str]) -> None:
    write_config(tmp_path, kolla_config_scheduler_filters=["AggregateInstanceExtraSpecsFilter"])
    program = """
import json, sys
import nova.conf
CONF = nova.conf.CONF
own = CONF.filter_scheduler.enabled_filters
CONF(["--config-file", sys.argv[1]], project="nova")
print(json.dumps([own, CONF.filter_scheduler.enabled_filters]))
"""
    defaults, enabled = run_openstack_python(
        program, merged_file(tmp_path, "nova/nova-scheduler.conf", enable_blazar=blazar)
    )
    configured = ["NUMATopologyFilter", "PciPassthroughFilter", "AggregateInstanceExtraSpecsFilter"]
    assert enabled == [*defaults, *configured, *extra]


@pytest.mark.parametrize(
    ("variables", "product"), [({}, "1018"), ({"kolla_config_pci": {"product_id": "101e"}}, "101e")]
)
def test_nova_accepts_the_files(tmp_path: Path, variables: dict[str, Any], product: str) -> None:
    write_config(tmp_path, **variables)
    program = """
import json, sys
import nova.conf
from nova.pci import request, whitelist
from nova.virt import hardware
CONF = nova.conf.CONF
CONF(["--config-file", sys.argv[1]], project="nova")
devices = whitelist.Whitelist(CONF.pci.device_spec)
aliases = request.get_alias_from_config()
print(json.dumps([[spec.tags for spec in devices.specs], aliases, len(hardware.get_cpu_dedicated_set())]))
"""
    tags, aliases, processors = run_openstack_python(program, tmp_path / "etc/config/nova/nova-compute.conf")
    assert [tag["physical_network"] for tag in tags] == ["physnet100g"]
    (policy_and_specs,) = aliases.values()
    assert "connectx-vf" in aliases
    assert {"vendor_id": "15b3", "product_id": product, "dev_type": "type-VF"} in policy_and_specs[1]
    assert processors == 240


def test_kayobe_files_keep_other_settings(tmp_path: Path) -> None:
    (tmp_path / "etc/kolla").mkdir(parents=True)
    (tmp_path / "etc/kolla/globals.yml").write_text("---\nkolla_internal_vip_address: 10.0.0.1\n")
    write_config(tmp_path, kolla_config_layout="kayobe")
    settings = yaml.safe_load((tmp_path / "etc/kolla/globals.yml").read_text())
    assert (settings["kolla_internal_vip_address"], settings["neutron_bridge_name"]) == ("10.0.0.1", "br-100g,br-1g")
    assert (tmp_path / "etc/kolla/config/nova/nova-compute.conf").exists()
    # Kayobe renders the files first and leaves raw blocks to Kolla Ansible.
    drivers = (tmp_path / "etc/kolla/config/neutron/ml2_conf.ini").read_text().splitlines()[2]
    assert drivers.startswith("extension_drivers = {% raw %}{{ (neutron_extension_drivers |")
    assert drivers.endswith("}}{% endraw %}")
    assert "changed=0" in write_config(tmp_path, kolla_config_layout="kayobe")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"kolla_config_interfaces": {"physnet1g": "eno1"}},
            "Cannot configure physnet100g: kolla_config_interfaces has no interface for it.",
        ),
        ({"kolla_config_check": "/nonexistent"}, "Cannot use Kolla Ansible in '/nonexistent': it has no variables"),
        ({"kolla_config_log_servers": ["10.1.3.101"]}, "fluentd sends every line to the first matching output"),
    ],
)
def test_invalid_settings_are_rejected(tmp_path: Path, variables: dict[str, Any], message: str) -> None:
    assert message in write_config(tmp_path, fails=True, **variables)


def test_log_servers_and_sriov_agent(tmp_path: Path) -> None:
    logs = {"kolla_config_log_servers": ["10.1.3.101"], "kolla_config_central_logging": False}
    write_config(tmp_path, kolla_config_sriov={"physnet100g": "ens1f0np0"}, kolla_config_hw_offload=False, **logs)
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert (settings["enable_neutron_sriov"], settings["openvswitch_hw_offload"]) == (True, "no")
    assert settings["neutron_sriov_physnet_mappings"] == {"physnet100g": "ens1f0np0"}
    assert "host 10.1.3.101" in (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").read_text()
    write_config(tmp_path)
    assert not (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").exists()
