# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches in the files of the role kolla_config, read by networking-generic-switch."""

from __future__ import annotations

import configparser
import stat
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.openstack.role_runs import write_pod64
from tests.openstack.test_kolla_config import kolla_play, run_openstack_python, write_config

PACKAGES = ROOT / ".cache/kolla"
PASSWORD = "pa$s{{w}}\\y$${% endraw %}{#"
MAC = "44:4c:a8:00:00:01"
DEVICES = """
import json, sys
sys.path.append(sys.argv[1])
from networking_generic_switch import config
from neutron.conf.plugins.ml2 import config as ml2
ml2.register_ml2_plugin_opts(config.CONF)
config.CONF(["--config-file", sys.argv[2]], project="neutron")
print(json.dumps([config.CONF.ml2.mechanism_drivers, config.get_devices()]))
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Inventory of a POD64 whose data switch has a MAC."""
    return write_pod64(tmp_path, "tor1", f"mac: {MAC}")


@pytest.mark.parametrize(("layout", "renderings"), [("kolla", 1), ("kayobe", 2)])
def test_the_driver_reads_the_switches(
    tmp_path: Path, inventory: Path, monkeypatch: pytest.MonkeyPatch, layout: str, renderings: int
) -> None:
    monkeypatch.setenv("SWITCH_PASSWORD", PASSWORD)
    options: dict[str, Any] = {
        "kolla_config_layout": layout,
        "kolla_config_bare_metal": True,
        "kolla_config_switches": {"tor1": {}, "mgmt1": {"ngs_manage_vlans": True, "secret": ' "in quotes" '}},
        "kolla_config_switch_options": {"username": "neutron", "password": "{{ lookup('env', 'SWITCH_PASSWORD') }}"},
    }
    line = ("-i", str(inventory), "--diff", "-v")
    config = tmp_path / ("etc/kolla/config" if layout == "kayobe" else "etc/config")
    file = config / "neutron/ml2_conf.ini"
    file.parent.mkdir(parents=True)
    file.write_text("# Ours.\n[ml2_type_flat]\nflat_networks = *\n")
    outputs = [write_config(tmp_path, "--check", *line, **options), write_config(tmp_path, *line, **options)]
    assert not [text for output in outputs for text in ("pa$s", "in quotes") if text in output]
    assert stat.S_IMODE(file.stat().st_mode) & 0o007 == 0
    assert "changed=0" in write_config(tmp_path, *line, **options)
    assert file.read_text().startswith("# Ours.\n[ml2_type_flat]\nflat_networks = *\n")
    for number in range(renderings):
        rendered = tmp_path / f"{number}.ini"
        content = {"template": {"src": str(file), "dest": str(rendered)}}
        kolla_play(tmp_path, "server1", content, neutron_plugin_agent="openvswitch")
        file = rendered
    drivers, devices = run_openstack_python(DEVICES, PACKAGES, file)
    assert drivers[0] == "openvswitch"
    assert drivers[-1] == "genericswitch"
    account = {"device_type": "netmiko_arista_eos", "username": "neutron", "password": PASSWORD}
    assert devices == {
        "tor1": {**account, "ip": "10.1.3.111", "ngs_mac_address": MAC, "ngs_manage_vlans": "False"},
        "mgmt1": {**account, "ip": "10.1.3.121", "ngs_manage_vlans": "True", "secret": ' "in quotes" '},
    }
    (metadata,) = PACKAGES.glob("networking_generic_switch-*.dist-info/entry_points.txt")
    entry_points = configparser.ConfigParser()
    entry_points.read(metadata)
    assert account["device_type"] in entry_points["generic_switch.devices"]
    assert "genericswitch" in entry_points["neutron.ml2.mechanism_drivers"]


def test_a_new_file_with_a_password_is_private(tmp_path: Path, inventory: Path) -> None:
    options: dict[str, Any] = {"kolla_config_switch_options": {"username": "neutron", "password": "so secret"}}
    file = tmp_path / "etc/config/neutron/ml2_conf.ini"
    write_config(tmp_path, "-i", str(inventory), **options)
    assert "genericswitch" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    file.unlink()
    write_config(tmp_path, "-i", str(inventory), kolla_config_switches={"tor1": {}}, **options)
    assert "password = so secret" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("switches", "options", "message"),
    [
        ({"tor9": {}}, {"username": "neutron"}, "Cannot configure tor9 in kolla_config_switches: the inventory has no"),
        ({"tor1": {}}, {}, "switch 'tor1': username is missing, password or key_file is missing. Correct"),
        ({"tor1": {"secret": "so\nsecret"}}, {"username": "n", "key_file": "k"}, "'tor1': secret has a line break."),
    ],
)
def test_invalid_switches_are_rejected(
    tmp_path: Path, inventory: Path, switches: dict[str, Any], options: dict[str, str], message: str
) -> None:
    given = {"kolla_config_switches": switches, "kolla_config_switch_options": options}
    output = write_config(tmp_path, "-i", str(inventory), fails=True, **given)
    assert message in output
    assert "so secret" not in output
    assert not (tmp_path / "etc").exists()
