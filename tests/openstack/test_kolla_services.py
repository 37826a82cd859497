# SPDX-License-Identifier: GPL-3.0-or-later
"""Further services in the files of the role kolla_config: variables of Kolla Ansible, domains of Keystone."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import yaml

from tests import ROOT
from tests.openstack.test_kolla_config import run_openstack_python, write_config

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
    (tmp_path / "kayobe").mkdir()
    write_config(tmp_path / "kayobe", kolla_config_layout="kayobe", kolla_config_variables={"enable_horizon": True})
    flags = yaml.safe_load((tmp_path / "kayobe/etc/kolla.yml").read_text())
    assert flags["kolla_enable_horizon"] is True


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
