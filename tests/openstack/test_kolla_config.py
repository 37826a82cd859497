# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role kolla_config writes, read by Kolla Ansible's own files and by Neutron and Nova themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from role_runs import ROOT, printed

from tools.openstack.site import CACHE

KOLLA = ROOT / ".cache/kolla/share/kolla-ansible/ansible"
NETWORKS = [
    {"name": "a-bmc-gw", "vlan": 13, "physical_network": "physnet1g"},
    {"name": "a-management", "vlan": 99, "physical_network": "physnet1g"},
    {"name": "a-data", "vlan": 11, "physical_network": "physnet100g", "mtu": 9000, "dns_domain": "a.example."},
    {"name": "a-storage", "vlan": 12, "physical_network": "physnet100g", "mtu": 9000},
]


def write(folder: Path, *options: str, fails: bool = False, **variables: Any) -> str:
    """Run the role; what it printed."""
    given = {
        "kolla_config_path": str(folder / "etc"),
        "kolla_config_networks": NETWORKS,
        "kolla_config_check": str(KOLLA),
        "kolla_config_cpu_dedicated_set": "8-127,136-255",
        "kolla_config_ephemeral_path": "/nvme/nova",
        "kolla_config_letsencrypt_email": "operations@example.com",
        **variables,
    }
    return " ".join(printed(folder, "kolla_config", *options, fails=fails, **given).split())


def merged(folder: Path, file: str, template: str = "", **variables: Any) -> Path:
    """One of the files as Kolla Ansible deploys it: joined with its own template, by its own plugin."""
    sources = [str(KOLLA / "roles" / template)] if template else []
    made = folder / "merged.conf"
    settings = [*sorted((KOLLA / "group_vars/all").glob("*.yml")), KOLLA / "roles/neutron/defaults/main.yml"]
    task = {"merge_configs": {"sources": [*sources, str(folder / "etc/config" / file)], "dest": str(made)}}
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars_files": [*map(str, settings)]}
    library = folder / "library"  # of OpenStack's, only what the plugin needs
    library.mkdir()
    (library / "oslo_config").symlink_to(next((CACHE / "venv/lib").glob("python3*")) / "site-packages/oslo_config")
    book = folder / "merge.yml"
    book.write_text(yaml.safe_dump([{**local, "tasks": [task]}]))
    variables = {"ansible_python_interpreter": sys.executable, **variables}
    given = ["-e", f"@{folder}/etc/globals.d/openipu-pod.yml", "-e", json.dumps(variables)]
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", book, *given],
        env={**os.environ, "ANSIBLE_ACTION_PLUGINS": str(KOLLA / "action_plugins"), "PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def as_openstack(program: str, *arguments: object) -> Any:
    """What a program says that runs with OpenStack's own Python."""
    python = CACHE / "venv" / "bin" / "python"
    line = [python, "-W", "ignore", "-c", program, *map(str, arguments)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def test_once_and_again_and_in_check_mode(tmp_path: Path) -> None:
    write(tmp_path, "--check")
    assert not (tmp_path / "etc").exists()
    write(tmp_path)
    told = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert told == {
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
    assert "changed=0" in write(tmp_path)


def test_neutron_takes_it(tmp_path: Path) -> None:
    interfaces = {"physnet100g": "bond0", "physnet1g": "eno1", "physnet1": "eno2"}
    more = {
        "kolla_config_extension_drivers": ["uplink_status_propagation"],
        "kolla_config_vlan_ranges": ["physnet1:100:199"],
    }
    write(tmp_path, kolla_config_interfaces=interfaces, **more)
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
    file = merged(tmp_path, "neutron/ml2_conf.ini", "neutron/templates/ml2_conf.ini.j2", enable_neutron_qos=True)
    ranges, drivers, path, mtus = as_openstack(program, file)
    assert ranges == {"physnet1": [[100, 199]], "physnet100g": [[11, 11], [12, 12]], "physnet1g": [[13, 13], [99, 99]]}
    # Kolla Ansible's own, then those of the POD, then the site's.
    assert drivers == [
        *("qos", "port_security", "subnet_dns_publish_fixed_ip"),
        *("port_hardware_offload_type", "tag_ports_during_bulk_creation", "uplink_status_propagation"),
    ]
    # Packets get larger on the POD's switches and nowhere else.
    assert (path, mtus) == (1500, {"physnet1": "1500", "physnet1g": "1500"})
    assert "global_physnet_mtu = 9000" in (tmp_path / "etc/config/neutron.conf").read_text()


def test_the_physical_networks_of_the_site_stay(tmp_path: Path) -> None:
    interfaces = {"physnet100g": "bond0", "physnet1g": "eno1", "physnet1": "eno2"}
    write(tmp_path, kolla_config_interfaces=interfaces, kolla_config_bridges={"physnet1": "br-ex"})
    told = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    lists = [told[f"neutron_{name}"] for name in ("physical_networks", "bridge_name", "external_interface")]
    assert lists == ["physnet1,physnet100g,physnet1g", "br-ex,br-100g,br-1g", "eno2,bond0,eno1"]


@pytest.mark.parametrize(("blazar", "more"), [(False, []), (True, ["BlazarFilter"])])
def test_nova_schedules_by_its_own_filters_too(tmp_path: Path, blazar: bool, more: list[str]) -> None:
    write(tmp_path, kolla_config_scheduler_filters=["AggregateInstanceExtraSpecsFilter"])
    program = """
import json, sys
import nova.conf
CONF = nova.conf.CONF
own = CONF.filter_scheduler.enabled_filters
CONF(["--config-file", sys.argv[1]], project="nova")
print(json.dumps([own, CONF.filter_scheduler.enabled_filters]))
"""
    own, found = as_openstack(program, merged(tmp_path, "nova/nova-scheduler.conf", enable_blazar=blazar))
    ours = ["NUMATopologyFilter", "PciPassthroughFilter", "AggregateInstanceExtraSpecsFilter"]
    assert found == [*own, *ours, *more]


@pytest.mark.parametrize(("given", "product"), [({}, "1018"), ({"kolla_config_pci": {"product_id": "101e"}}, "101e")])
def test_nova_takes_it(tmp_path: Path, given: dict[str, Any], product: str) -> None:
    write(tmp_path, **given)
    program = """
import json, sys
import nova.conf
from nova.pci import request, whitelist
from nova.virt import hardware
CONF = nova.conf.CONF
CONF(["--config-file", sys.argv[1]], project="nova")
known = whitelist.Whitelist(CONF.pci.device_spec)
aliases = request.get_alias_from_config()
print(json.dumps([[spec.tags for spec in known.specs], aliases, len(hardware.get_cpu_dedicated_set())]))
"""
    tags, aliases, processors = as_openstack(program, tmp_path / "etc/config/nova/nova-compute.conf")
    assert [tag["physical_network"] for tag in tags] == ["physnet100g"]
    (policy_and_specs,) = aliases.values()
    assert "connectx-vf" in aliases
    assert {"vendor_id": "15b3", "product_id": product, "dev_type": "type-VF"} in policy_and_specs[1]
    assert processors == 240


def test_kayobe_keeps_what_others_wrote(tmp_path: Path) -> None:
    (tmp_path / "etc/kolla").mkdir(parents=True)
    (tmp_path / "etc/kolla/globals.yml").write_text("---\nkolla_internal_vip_address: 10.0.0.1\n")
    write(tmp_path, kolla_config_layout="kayobe")
    told = yaml.safe_load((tmp_path / "etc/kolla/globals.yml").read_text())
    assert (told["kolla_internal_vip_address"], told["neutron_bridge_name"]) == ("10.0.0.1", "br-100g,br-1g")
    assert (tmp_path / "etc/kolla/config/nova/nova-compute.conf").exists()
    # Kayobe looks at the files before Kolla Ansible does, and leaves to it what it does not know.
    drivers = (tmp_path / "etc/kolla/config/neutron/ml2_conf.ini").read_text().splitlines()[2]
    assert drivers.startswith("extension_drivers = {% raw %}{{ (neutron_extension_drivers |")
    assert drivers.endswith("}}{% endraw %}")
    assert "changed=0" in write(tmp_path, kolla_config_layout="kayobe")


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"kolla_config_interfaces": {"physnet1g": "eno1"}},
            "kolla_config_interfaces has no interface for physnet100g",
        ),
        ({"kolla_config_check": "/nonexistent"}, "Kolla Ansible in /nonexistent knows no"),
        ({"kolla_config_log_servers": ["10.1.3.101"]}, "fluentd hands every line to the first who takes it"),
    ],
)
def test_refusals(tmp_path: Path, variables: dict[str, Any], sentence: str) -> None:
    assert sentence in write(tmp_path, fails=True, **variables)


def test_logs_and_the_sriov_agent(tmp_path: Path) -> None:
    logs = {"kolla_config_log_servers": ["10.1.3.101"], "kolla_config_central_logging": False}
    write(tmp_path, kolla_config_sriov={"physnet100g": "ens1f0np0"}, kolla_config_hw_offload=False, **logs)
    told = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert (told["enable_neutron_sriov"], told["openvswitch_hw_offload"]) == (True, "no")
    assert told["neutron_sriov_physnet_mappings"] == {"physnet100g": "ens1f0np0"}
    assert "host 10.1.3.101" in (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").read_text()
    write(tmp_path)
    assert not (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").exists()
