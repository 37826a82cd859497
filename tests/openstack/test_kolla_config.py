# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the role kolla_config, read by Kolla Ansible, Neutron and Nova."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

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
OTHER_CARDS = {"physnet100g": "bond7", "physnet1g": "eno1"}
HOST_VARIABLES = [
    *(
        "neutron_bridge_name",
        "neutron_external_interface",
        "neutron_physical_networks",
        "neutron_sriov_physnet_mappings",
    ),
    "nova_instance_datadir_volume",
]


def write_config(folder: Path, *options: str, fails: bool = False, **variables: Any) -> str:
    """Run the role and return its output."""
    settings = {
        "kolla_config_path": str(folder / "etc"),
        "kolla_config_hosts": {"server1": {}, "server2": {"cpu_dedicated_set": "8-63", "interfaces": OTHER_CARDS}},
        "kolla_config_networks": NETWORKS,
        "kolla_config_check": str(KOLLA),
        "kolla_config_cpu_dedicated_set": "8-127,136-255",
        "kolla_config_ephemeral_path": "/nvme/nova",
        "kolla_config_letsencrypt_email": "operations@example.com",
        **variables,
    }
    return " ".join(run_role(folder, "kolla_config", *options, fails=fails, **settings).split())


def kolla_play(folder: Path, host: str, *tasks: dict[str, Any], **variables: Any) -> None:
    """Run tasks for a host with the inventory, the plugins and the precedence of variables of Kolla Ansible."""
    (folder / "etc/multinode").write_text("[network]\nnetwork1\n[compute]\nserver1\nserver2\nother1\n")
    play = folder / "kolla"
    (play / "library").mkdir(parents=True, exist_ok=True)  # only the OpenStack library that the plugin needs
    for link, target in (
        ("group_vars", KOLLA / "group_vars"),
        ("library/oslo_config", next((CACHE / "venv/lib").glob("python3*")) / "site-packages/oslo_config"),
    ):
        (play / link).unlink(missing_ok=True)
        (play / link).symlink_to(target)
    defaults = [str(KOLLA / "roles/neutron/defaults/main.yml")]
    local = {"hosts": host, "connection": "local", "gather_facts": False, "vars_files": defaults}
    (play / "play.yml").write_text(yaml.safe_dump([{**local, "tasks": list(tasks)}]))
    variables = {"ansible_python_interpreter": sys.executable, **variables}
    globals_files = [f"-e@{file}" for file in sorted((folder / "etc").glob("globals*/*.yml"))]
    program = Path(sys.executable).with_name("ansible-playbook")
    result = subprocess.run(
        [program, "-i", folder / "etc/multinode", play / "play.yml", *globals_files, "-e", json.dumps(variables)],
        env={
            **{name: value for name, value in os.environ.items() if name != "ANSIBLE_CONFIG"},  # make sets it
            "ANSIBLE_ACTION_PLUGINS": str(KOLLA / "action_plugins"),
            "PYTHONPATH": str(play / "library"),
        },
        cwd=play,  # without the ansible.cfg of the collection
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def merged_file(folder: Path, *files: str, template: str = "", host: str = "server1", **variables: Any) -> Path:
    """Return a file as Kolla Ansible deploys it, merged with its template by its own plugin."""
    sources = [str(KOLLA / "roles" / template)] if template else []
    target = folder / "merged.conf"
    sources += [str(folder / "etc/config" / file) for file in files]
    kolla_play(folder, host, {"merge_configs": {"sources": sources, "dest": str(target)}}, **variables)
    return target


def kolla_variables(folder: Path, host: str) -> dict[str, Any]:
    """Return the per-host variables that Kolla Ansible has for a host."""
    target = folder / "variables.json"
    content = "{{ dict(names | zip(names | map('extract', vars))) | to_json }}"
    kolla_play(folder, host, {"copy": {"content": content, "dest": str(target)}}, names=HOST_VARIABLES)
    return dict(json.loads(target.read_text()))


def run_openstack_python(program: str, *arguments: object, venv: Path = CACHE / "venv") -> Any:
    """Run a program with the Python of OpenStack and return its JSON output."""
    python = venv / "bin" / "python"
    line = [python, "-W", "ignore", "-c", program, *map(str, arguments)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def test_check_mode_and_idempotence(tmp_path: Path) -> None:
    write_config(tmp_path, "--check")
    assert not (tmp_path / "etc").exists()
    write_config(tmp_path)
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert settings == {
        "enable_letsencrypt": True,
        "enable_neutron_provider_networks": True,
        "kolla_enable_tls_external": True,
        "letsencrypt_email": "operations@example.com",
        "neutron_dns_domain": "a.example.",
        "neutron_dns_integration": True,
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
    file = merged_file(
        tmp_path, "neutron/ml2_conf.ini", template="neutron/templates/ml2_conf.ini.j2", enable_neutron_qos=True
    )
    ranges, drivers, path_mtu, mtus = run_openstack_python(program, file)
    assert ranges == {"physnet1": [[100, 199]], "physnet100g": [[11, 11], [12, 12]], "physnet1g": [[13, 13], [99, 99]]}
    # Drivers of Kolla Ansible, the POD and the site, in this order.
    assert drivers == [
        *("qos", "port_security", "subnet_dns_publish_fixed_ip"),
        *("port_hardware_offload_type", "tag_ports_during_bulk_creation", "uplink_status_propagation"),
    ]
    # Only the switches of the POD have a larger MTU.
    assert (path_mtu, mtus) == (1500, {"physnet1": "1500", "physnet100g": "9000", "physnet1g": "1500"})
    assert "global_physnet_mtu = 9000" in (tmp_path / "etc/config/neutron.conf").read_text()


def test_settings_of_hosts_reach_only_these_hosts(tmp_path: Path) -> None:
    network = {"interfaces": {"physnet100g": "ens2", "physnet1g": "ens3", "physnet1": "ens4"}}
    groups = {"network": {**network, "bridges": {"physnet1": "br-ex"}}}
    write_config(tmp_path, kolla_config_groups=groups)
    defaults = kolla_variables(tmp_path, "other1")
    assert kolla_variables(tmp_path, "server1") == {
        "neutron_bridge_name": "br-100g,br-1g",
        "neutron_external_interface": "bond0,eno1",
        "neutron_physical_networks": "physnet100g,physnet1g",
        "neutron_sriov_physnet_mappings": defaults["neutron_sriov_physnet_mappings"],
        "nova_instance_datadir_volume": "/nvme/nova",
    }
    assert kolla_variables(tmp_path, "server2")["neutron_external_interface"] == "bond7,eno1"
    assert kolla_variables(tmp_path, "network1") == {
        **defaults,
        "neutron_bridge_name": "br-ex,br-100g,br-1g",
        "neutron_external_interface": "ens4,ens2,ens3",
        "neutron_physical_networks": "physnet1,physnet100g,physnet1g",
    }
    assert (defaults["neutron_bridge_name"], defaults["neutron_external_interface"]) == ("br-ex", "eth1")
    offload = [yaml.safe_load(file.read_text()) for file in sorted((tmp_path / "etc").glob("*_vars/*/openipu-pod.yml"))]
    assert [variables.get("openvswitch_hw_offload") for variables in offload] == [None, "yes", "yes"]


def test_files_of_the_site_are_merged(tmp_path: Path) -> None:
    own = {
        "neutron/ml2_conf.ini": "# Ours.\n[ml2]\nextension_drivers = qos\npath_mtu = 8900\n"
        "physical_network_mtus = physnet1:1600\n[ml2_type_vlan]\nnetwork_vlan_ranges = physnet1:100:199\n",
        "neutron.conf": "[DEFAULT]\nglobal_physnet_mtu = 9216\n",
        "nova.conf": '[pci]\nalias = {"name": "gpu", "vendor_id": "10de", "product_id": "20b0"}\n',
        "nova/nova-scheduler.conf": "[filter_scheduler]\nenabled_filters = ComputeFilter,OwnFilter\n",
        "nova/nova-compute.conf": "[compute]\ncpu_dedicated_set = 2-3\n",
        "nova/server1/nova-compute.conf": "[libvirt]\nvirt_type = kvm\n",
    }
    for name, text in own.items():
        (tmp_path / "etc/config" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc/config" / name).write_text(text)
    write_config(tmp_path, kolla_config_interfaces={**OTHER_CARDS, "physnet1": "eno3"})
    texts = {name: (tmp_path / "etc/config" / name).read_text() for name in own}
    assert texts["neutron/ml2_conf.ini"] == (
        "# Ours.\n[ml2]\n"
        "extension_drivers = qos,port_security,port_hardware_offload_type,tag_ports_during_bulk_creation\n"
        "path_mtu = 8900\nphysical_network_mtus = physnet1:1600,physnet100g:9000,physnet1g:1500\n"
        "[ml2_type_vlan]\nnetwork_vlan_ranges = "
        "physnet1:100:199,physnet100g:11:11,physnet100g:12:12,physnet1g:13:13,physnet1g:99:99\n"
    )
    assert texts["nova/nova-scheduler.conf"].endswith(
        "ComputeFilter,OwnFilter,NUMATopologyFilter,PciPassthroughFilter\n"
    )
    assert {texts[name] for name in ("neutron.conf", "nova.conf", "nova/nova-compute.conf")} <= set(own.values())
    assert texts["nova/server1/nova-compute.conf"].startswith("[libvirt]\nvirt_type = kvm\n")
    # A list in the file of a host would hide the list of nova.conf.
    for name in ("nova/server1/nova-compute.conf", "nova/nova-api.conf"):
        aliases = (tmp_path / "etc/config" / name).read_text()
        assert aliases.count("alias = ") == 2
        assert '"gpu"' in aliases
    assert "changed=0" in write_config(tmp_path, kolla_config_interfaces={**OTHER_CARDS, "physnet1": "eno3"})


@pytest.mark.parametrize("layout", ["kolla", "kayobe"])
def test_files_of_the_site_keep_mode_and_secrets(tmp_path: Path, layout: str) -> None:
    config = tmp_path / ("etc/kolla/config" if layout == "kayobe" else "etc/config")
    own = {
        config / "neutron.conf": "[DEFAULT]\ntransport_url = rabbit://neutron:hidden-password@h\n",
        config / "nova/server1/nova-compute.conf": "[vault]\ntoken = hidden-password\n",
    }
    if layout == "kayobe":
        own[tmp_path / "etc/kolla.yml"] = "---\nkolla_password: hidden-password\n"
        own[tmp_path / "etc/kolla/globals.yml"] = "---\npassword: hidden-password\n"
    for file, text in own.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)
    for options in (("--diff", "--check"), ("--diff",)):
        assert "hidden-password" not in write_config(tmp_path, *options, kolla_config_layout=layout)
    for file, text in own.items():
        assert file.read_text() != text
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for name in ("nova/nova-api.conf", "nova/server2/nova-compute.conf"):
        assert stat.S_IMODE((config / name).stat().st_mode) == 0o644


def test_conditional_options_of_the_site_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "etc/config/neutron/ml2_conf.ini"
    file.parent.mkdir(parents=True)
    file.write_text("[ml2]\n{% if jumbo %}\npath_mtu = 9000\n{% endif %}\n")
    output = write_config(tmp_path, fails=True)
    assert "Cannot set option 'path_mtu' of section [ml2]: line 3 of the file is inside a template statement" in output
    assert "neutron/ml2_conf.ini" in output


@pytest.mark.parametrize(("blazar", "extra"), [(False, []), (True, ["BlazarFilter"])])
def test_default_scheduler_filters_of_nova_are_kept(tmp_path: Path, blazar: bool, extra: list[str]) -> None:
    write_config(tmp_path, kolla_config_scheduler_filters=["AggregateInstanceExtraSpecsFilter"])
    program = """
import json, sys
import nova.conf
CONF = nova.conf.CONF
own = CONF.filter_scheduler.enabled_filters
CONF(["--config-file", sys.argv[1]], project="nova")
print(json.dumps([own, CONF.filter_scheduler.enabled_filters, CONF.scheduler.workers]))
"""
    with (tmp_path / "etc/config/nova/nova-scheduler.conf").open("a") as file:
        file.write("[scheduler]\nworkers = 3\n")  # the value before it must not swallow the line break
    defaults, enabled, workers = run_openstack_python(
        program, merged_file(tmp_path, "nova/nova-scheduler.conf", enable_blazar=blazar)
    )
    configured = ["NUMATopologyFilter", "PciPassthroughFilter", "AggregateInstanceExtraSpecsFilter"]
    assert (enabled, workers) == ([*defaults, *configured, *extra], 3)


@pytest.mark.parametrize(
    ("variables", "host", "product", "cpus"),
    [
        ({}, "server1", "1018", 240),
        ({"kolla_config_pci": {"product_id": "101e"}}, "server1", "101e", 240),
        ({}, "server2", "1018", 56),
    ],
)
def test_nova_accepts_the_files(tmp_path: Path, variables: dict[str, Any], host: str, product: str, cpus: int) -> None:
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
    file = merged_file(tmp_path, "nova/nova-compute.conf", f"nova/{host}/nova-compute.conf", host=host)
    tags, aliases, processors = run_openstack_python(program, file)
    assert [tag["physical_network"] for tag in tags] == ["physnet100g"]
    (policy_and_specs,) = aliases.values()
    assert "connectx-vf" in aliases
    assert {"vendor_id": "15b3", "product_id": product, "dev_type": "type-VF"} in policy_and_specs[1]
    assert processors == cpus
    assert not (tmp_path / "etc/config/nova/nova-compute.conf").exists()


def test_kayobe_files_keep_other_settings(tmp_path: Path) -> None:
    (tmp_path / "etc/kolla").mkdir(parents=True)
    (tmp_path / "etc/kolla/globals.yml").write_text("---\nopenstack_release: 2025.1\n")
    (tmp_path / "etc/kolla.yml").write_text("---\nkolla_enable_ironic: false\n")
    write_config(tmp_path, kolla_config_layout="kayobe")
    assert yaml.safe_load((tmp_path / "etc/kolla/globals.yml").read_text()) == {
        "openstack_release": 2025.1,
        "enable_letsencrypt": True,
        "enable_neutron_provider_networks": True,
        "kolla_enable_tls_external": True,
        "letsencrypt_email": "operations@example.com",
        "neutron_dns_domain": "a.example.",
        "neutron_dns_integration": True,
    }
    # Kayobe derives images and other settings from its own flags.
    assert yaml.safe_load((tmp_path / "etc/kolla.yml").read_text()) == {
        "kolla_enable_ironic": False,
        "kolla_enable_letsencrypt": True,
        "kolla_enable_neutron_provider_networks": True,
        "kolla_enable_tls_external": True,
    }
    assert (tmp_path / "etc/kolla/config/nova/server1/nova-compute.conf").exists()
    host = yaml.safe_load((tmp_path / "etc/kolla/inventory/host_vars/server1/openipu-pod.yml").read_text())
    assert host["neutron_bridge_name"] == "br-100g,br-1g"
    # Kayobe renders the files first and leaves raw blocks to Kolla Ansible.
    text = (tmp_path / "etc/kolla/config/neutron/ml2_conf.ini").read_text()
    rendered = Environment(trim_blocks=True, lstrip_blocks=True).from_string(text).render().splitlines()
    assert rendered[1].startswith("extension_drivers = {{ (neutron_extension_drivers |")
    assert rendered[1].endswith("}}")
    assert rendered[2] == "path_mtu = 1500"
    assert "changed=0" in write_config(tmp_path, kolla_config_layout="kayobe")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"kolla_config_interfaces": {"physnet1g": "eno1"}},
            "Cannot configure physnet100g for host 'server1': kolla_config_interfaces has no interface for it.",
        ),
        ({"kolla_config_hosts": {}}, "Cannot configure the POD: kolla_config_hosts has no Poplar server."),
        (
            {"kolla_config_hosts": {"s1": {"cpus": "1"}}},
            "Cannot configure host 's1': it has no setting cpus. Use interf",
        ),
        ({"kolla_config_check": "/nonexistent"}, "Cannot use Kolla Ansible in '/nonexistent': it has no variables"),
        ({"kolla_config_variables": {"enable_horses": True}}, "it has no variables enable_horses. Use a release"),
        (
            {"kolla_config_variables": {"neutron_bridge_name": "br"}},
            "Cannot set neutron_bridge_name in kolla_config_variables: other options of kolla_config set it.",
        ),
        (
            {"kolla_config_variables": {"neutron_dns_domain": "b.example.", "enable_letsencrypt": False}},
            "Cannot set enable_letsencrypt, neutron_dns_domain in kolla_config_variables",
        ),
        ({"kolla_config_log_servers": ["10.1.3.101"]}, "fluentd sends every line to the first matching output"),
    ],
)
def test_invalid_settings_are_rejected(tmp_path: Path, variables: dict[str, Any], message: str) -> None:
    assert message in write_config(tmp_path, fails=True, **variables)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "globals.yml",
            "neutron_bridge_name: br-ex\n",
            "Cannot set neutron_bridge_name for single hosts: '{file}' sets it for all hosts and has precedence.",
        ),
        ("host_vars/server1.yml", "own: true\n", "Cannot add variables beside '{file}': Ansible ignores this file"),
        ("group_vars/network", "own: true\n", "Cannot add variables beside '{file}': Ansible ignores this file"),
    ],
)
def test_files_that_would_hide_each_other_are_rejected(tmp_path: Path, file: str, text: str, message: str) -> None:
    path = tmp_path / "etc" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert message.format(file=path) in write_config(tmp_path, fails=True)
    assert [found for found in (tmp_path / "etc").rglob("*") if found.is_file()] == [path]


def test_log_servers_and_sriov_agent(tmp_path: Path) -> None:
    logs = {"kolla_config_log_servers": ["10.1.3.101"], "kolla_config_central_logging": False}
    driver = {"kolla_config_hw_offload": False, "kolla_config_port_offload_type": False}
    write_config(tmp_path, kolla_config_sriov={"physnet100g": "ens1f0np0"}, **driver, **logs)
    assert "port_hardware_offload_type" not in (tmp_path / "etc/config/neutron/ml2_conf.ini").read_text()
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert (settings["enable_neutron_sriov"], settings["enable_central_logging"]) == (True, False)
    host = yaml.safe_load((tmp_path / "etc/host_vars/server1/openipu-pod.yml").read_text())
    assert "openvswitch_hw_offload" not in host
    assert host["neutron_sriov_physnet_mappings"] == {"physnet100g": "ens1f0np0"}
    assert "host 10.1.3.101" in (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").read_text()
    write_config(tmp_path)
    assert not (tmp_path / "etc/config/fluentd/output/openipu-pod.conf").exists()
