# SPDX-License-Identifier: GPL-3.0-or-later
"""Further services in the files of the role kolla_config: variables of Kolla Ansible, domains of Keystone."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

from tests import ROOT
from tests.openstack.role_runs import run_role, write_pod64
from tests.openstack.test_kolla_config import (
    KOLLA,
    NETWORKS,
    kolla_play,
    merged_file,
    run_openstack_python,
    write_config,
)
from tools.openstack.bare_metal import VENV as IRONIC

KAYOBE = ROOT / ".cache/kolla/share/kayobe"
LDAP = {
    "url": "ldaps://ldap.example.com",
    "user": "cn=keystone,dc=example,dc=com",
    "password": "so secret",
    "user_tree_dn": "ou=people,dc=example,dc=com",
}


def test_documented_variables_exist_in_kolla_ansible(tmp_path: Path) -> None:
    table = (ROOT / "roles/kolla_config/README.md").read_text().partition("## Other services")[2].partition("\nFor ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][2:]
    names = [name for row in rows for name in re.findall("`([a-z0-9_]+)`", row)]
    assert len(names) >= 14
    write_config(tmp_path, kolla_config_variables=dict.fromkeys(names, "own"))
    settings = yaml.safe_load((tmp_path / "etc/globals.d/openipu-pod.yml").read_text())
    assert {name: settings[name] for name in names} == dict.fromkeys(names, "own")
    assert not (tmp_path / "etc/config/ironic").exists()


def test_kayobe_passes_on_all_flags(tmp_path: Path) -> None:
    """Kayobe renders the flags that it knows from kolla.yml, and merges kolla/globals.yml over them."""
    unknown = {"enable_nova_swtpm": True, "enable_tgtd": False}
    variables = {"enable_horizon": True, **unknown}
    write_config(tmp_path, kolla_config_layout="kayobe", kolla_config_variables=variables)
    flags, own = (yaml.safe_load((tmp_path / "etc" / name).read_text()) for name in ("kolla.yml", "kolla/globals.yml"))
    role = KAYOBE / "ansible/roles/kolla-ansible"
    known = {f"enable_{name}" for name in yaml.safe_load((role / "vars/main.yml").read_text())["kolla_feature_flags"]}
    assert known & variables.keys() == {"enable_horizon"}
    (loop,) = re.findall(
        "{% for feature_flag in .*?{% endfor %}", (role / "templates/kolla/globals.yml").read_text(), re.DOTALL
    )
    environment = Environment(trim_blocks=True)
    environment.filters["bool"] = bool
    rendered = environment.from_string(loop).render(
        kolla_feature_flags=sorted(name.removeprefix("enable_") for name in known),
        inventory_hostname="localhost",
        hostvars={"localhost": flags},
    )
    passed_on = yaml.safe_load(rendered)
    assert passed_on["enable_horizon"] is True
    assert not passed_on.keys() & unknown.keys()
    assert {name: {**passed_on, **own}[name] for name in variables} == variables


def test_kolla_ansible_and_kayobe_are_of_one_release() -> None:
    files = (KOLLA / "group_vars/all/common.yml", KAYOBE / "ansible/inventory/group_vars/all/openstack")
    kolla, kayobe = (yaml.safe_load(file.read_text())["openstack_release"] for file in files)
    assert kolla == kayobe


def test_bare_metal_servers_are_no_hypervisors(tmp_path: Path) -> None:
    inventory = write_pod64(tmp_path, "server2", "bare_metal: true")
    settings = {"kolla_config_path": str(tmp_path / "etc"), "kolla_config_networks": NETWORKS}
    run_role(tmp_path, "kolla_config", "-i", str(inventory), **settings)
    for folder in ("etc/config/nova", "etc/host_vars"):
        names = {path.name for path in (tmp_path / folder).iterdir() if path.is_dir()}
        assert names == {"server1", "server3", "server4"}
    hosts = {"server1": {}, "server2": {}}
    output = run_role(tmp_path, "kolla_config", "-i", str(inventory), fails=True, **settings, kolla_config_hosts=hosts)
    message = (
        "Cannot configure server2 as hypervisors: these servers have bare_metal in pod.yml, so Ironic deploys them. "
        "Remove them from kolla_config_hosts, or remove bare_metal."
    )
    assert message in " ".join(output.split())


IRONIC_OPTIONS = """
import json, sys
import ironic.conf
CONF = ironic.conf.CONF
CONF(["--config-file", sys.argv[1]], project="ironic")
print(json.dumps([CONF.conductor.force_power_state_during_sync, CONF.enabled_network_interfaces]))
"""


@pytest.mark.parametrize("layout", ["kolla", "kayobe"])
def test_ironic_accepts_the_files_for_bare_metal_nodes(tmp_path: Path, layout: str) -> None:
    options = {"kolla_config_layout": layout, "kolla_config_bare_metal": True}
    write_config(tmp_path, **options)
    (file,) = (tmp_path / "etc").rglob("ironic/ironic-conductor.conf")
    assert run_openstack_python(IRONIC_OPTIONS, file, venv=IRONIC) == [False, ["noop", "flat", "neutron"]]
    assert "changed=0" in write_config(tmp_path, **options)


def test_ironic_keeps_the_values_of_the_site(tmp_path: Path) -> None:
    file = tmp_path / "etc/config/ironic/ironic-conductor.conf"
    file.parent.mkdir(parents=True)
    file.write_text("[conductor]\nforce_power_state_during_sync = true\n")
    (tmp_path / "etc/config/ironic.conf").write_text("[DEFAULT]\nenabled_network_interfaces = noop,own\n")
    write_config(tmp_path, kolla_config_bare_metal=True)
    values = run_openstack_python(IRONIC_OPTIONS, file, venv=IRONIC)
    assert values == [True, ["noop", "own", "flat", "neutron"]]


def test_neutron_gets_the_mechanism_driver_of_bare_metal_nodes(tmp_path: Path) -> None:
    write_config(tmp_path, kolla_config_bare_metal=True)
    file = merged_file(
        tmp_path,
        "neutron/ml2_conf.ini",
        template="neutron/templates/ml2_conf.ini.j2",
        neutron_plugin_agent="openvswitch",
    )
    (drivers,) = re.findall("^mechanism_drivers = (.*)$", file.read_text(), re.MULTILINE)
    assert drivers.split(",")[:2] == ["openvswitch", "baremetal"]


def test_keystone_accepts_the_domains(tmp_path: Path) -> None:
    domains = {"kolla_config_ldap_domains": {"research": LDAP}}
    assert "so secret" not in write_config(tmp_path, "--check", "--diff", **domains)
    assert "so secret" not in write_config(tmp_path, "--diff", **domains)
    file = tmp_path / "etc/config/keystone/domains/keystone.research.conf"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    program = """
import json, sys
from oslo_config import cfg
import keystone.conf
keystone.conf.configure()
cfg.CONF(["--config-file", sys.argv[1]], project="keystone")
ldap = cfg.CONF.ldap
print(json.dumps([cfg.CONF.identity.driver, ldap.url, ldap.user, ldap.password, ldap.user_tree_dn]))
"""
    assert run_openstack_python(program, file) == ["ldap", *LDAP.values()]
    assert "changed=0" in write_config(tmp_path, **domains)


@pytest.mark.parametrize(("layout", "renderings"), [("kolla", 1), ("kayobe", 2)])
def test_values_of_domains_are_literal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, renderings: int
) -> None:
    password = "pa$w{{x}}\\$y$$z{% endraw %}{#"
    monkeypatch.setenv("LDAP_PASSWORD", password)
    options = {
        "password": "{{ lookup('env', 'LDAP_PASSWORD') }}",
        "user": ' "in quotes" ',
        "user_attribute_ignore": ["default_project_id", "tenants"],
        "use_tls": True,
    }
    write_config(tmp_path, kolla_config_layout=layout, kolla_config_ldap_domains={"research": options})
    (file,) = (tmp_path / "etc").rglob("keystone.research.conf")
    for number in range(renderings):
        rendered = tmp_path / f"{number}.conf"
        kolla_play(tmp_path, "server1", {"template": {"src": str(file), "dest": str(rendered)}})
        file = rendered
    program = """
import json, sys
from oslo_config import cfg
import keystone.conf
keystone.conf.configure()
cfg.CONF(["--config-file", sys.argv[1]], project="keystone")
ldap = cfg.CONF.ldap
print(json.dumps([ldap.password, ldap.user, ldap.user_attribute_ignore, ldap.use_tls]))
"""
    assert run_openstack_python(program, file) == [password, *list(options.values())[1:]]


@pytest.mark.parametrize("value", ["a\nb", ["a", "b\r"]])
def test_line_breaks_in_domains_are_rejected(tmp_path: Path, value: Any) -> None:
    output = write_config(
        tmp_path, fails=True, kolla_config_ldap_domains={"research": {"password": value, "url": "ldap://a"}}
    )
    assert "domain 'research' in kolla_config_ldap_domains: password has a line break. Remove the line break." in output
    assert not (tmp_path / "etc").exists()
