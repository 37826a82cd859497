# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of cloud-init for the control instance, as the role renders them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.control_instance.fake_actions import DHCP_ADDRESS
from tests.control_instance.ordering import CONTROLLER_VM, POPLAR_VM, order
from tests.control_instance.rendering import (
    ADDRESS,
    BMC_ADDRESS,
    CONTROLLER,
    GW_ADDRESS,
    MACS,
    SUBNET,
    files,
    render,
)

KEY = "ssh-ed25519 AAAA operator"
LIMIT = 65535  # bytes of user data in Nova, in Base64

pytestmark = pytest.mark.timeout(600)


def test_an_order_has_the_services_of_the_role_control_instance(tmp_path: Path) -> None:
    """The other tests use the settings that the role vpod gives to the role control_instance."""
    settings = {"vpod_controller_public_keys": [KEY], "vpod_controller_cloud_init": {"packages": ["vim"]}}
    vms = order(tmp_path, **settings).vms
    assert list(vms) == [CONTROLLER_VM, POPLAR_VM]
    vm = vms[CONTROLLER_VM]
    assert [(port["mac"], port["addresses"]) for port in vm.ports] == [
        (MACS[0], [ADDRESS]),
        (MACS[1], [BMC_ADDRESS, GW_ADDRESS]),
    ]
    first, _, rest = vm.user_data.partition("\n")
    assert first == "#cloud-config"
    services = render(tmp_path)
    packages = [*services["packages"], "vim"]
    assert json.loads(rest) == {**services, "packages": packages, "ssh_authorized_keys": [KEY]}
    assert vm.options["config_drive"] is True
    alone = order(tmp_path, **settings, vpod_controller_services=False).vms[CONTROLLER_VM]
    assert json.loads(alone.user_data.partition("\n")[2]) == {"ssh_authorized_keys": [KEY], "packages": ["vim"]}


def test_an_order_uses_the_first_free_address(tmp_path: Path) -> None:
    addresses = [DHCP_ADDRESS, "10.4.0.10", "10.4.0.11"]
    settings = {"vpod_controller_public_keys": [KEY], "vpod_controller_addresses": addresses}
    vms = order(tmp_path, **settings).vms
    vm = vms[CONTROLLER_VM]
    assert vm.ports[0]["addresses"] == ["10.4.0.10"]
    services = json.loads(vm.user_data.partition("\n")[2])
    assert "bind 10.4.0.10:8090\n" in files(services)["/etc/haproxy/haproxy.cfg"]
    assert (
        'api-host="10.4.0.10"' in json.loads(vms[POPLAR_VM].user_data.partition("\n")[2])["write_files"][1]["content"]
    )


def test_settings_of_a_vpod_with_16_machines_fit_into_user_data(tmp_path: Path) -> None:
    machines = [f"ipum{number:02}" for number in range(1, 17)]
    settings = render(tmp_path, control_instance_machines=machines)
    assert len(base64.b64encode(json.dumps(settings).encode())) < LIMIT / 2  # the rest is for the settings of the site
    assert len(json.loads(files(settings)["/etc/prometheus/targets/ipu-machine.json"])) == 16
    assert settings == render(tmp_path, control_instance_machines=machines)


def test_tls_ends_at_a_secure_controller(tmp_path: Path) -> None:
    endpoint = files(render(tmp_path))["/etc/haproxy/haproxy.cfg"]
    assert f"bind {ADDRESS}:8090\n" in endpoint
    assert endpoint.rstrip().endswith(f"mode tcp\n    server controller {CONTROLLER}:8090 check inter 5s")
    assert "proto h2" not in endpoint


def test_settings_of_the_current_host_do_not_apply(tmp_path: Path) -> None:
    """The role renders on a controller of the POD, whose services have other settings, such as TLS."""
    leaks = {"common_ssh_connection": {"address": "10.66.66.66", "to_port": 22}}  # a fact of the role common
    for role in ("common", "monitoring", "log_receiver"):
        defaults = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text())
        leaks.update({name: other(value) for name, value in defaults.items()})
    assert render(tmp_path, host=leaks) == render(tmp_path)


def test_settings_with_secrets_are_not_rendered(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "monitoring_web_users": {"operator": "$2b$12$hash"},
        "monitoring_scrape_configs": [{"job_name": "site", "authorization": {"credentials": "token"}}],
        "monitoring_federate": [{"pod": "other", "address": "10.0.0.1:9090"}],
    }
    with pytest.raises(AssertionError) as raised:
        render(tmp_path, role="monitoring", monitoring_exporter_token_file="", **settings)
    message = " ".join(str(raised.value).split())
    for name in settings:
        assert name in message.partition("can contain secrets")[0]
    assert "hash" not in message and "credentials" not in message


def other(value: Any) -> Any:
    """Return another value of the same type. A template in a default counts as text."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1000
    if isinstance(value, list):
        return ["leak"]
    return {"leak": "leak"} if isinstance(value, dict) else "leak"


@pytest.mark.parametrize(
    "controller", ["vipu.pod64.example", "10.1.2", "10.1.2.101:8090", "10.1.2.101\n    server evil 10.1.2.9"]
)
def test_names_of_the_controller_are_rejected(tmp_path: Path, controller: str) -> None:
    with pytest.raises(AssertionError, match="is not an"):
        render(tmp_path, control_instance_controller=controller)


def test_the_firewall_allows_the_machines_and_the_controller_only(tmp_path: Path) -> None:
    lines = firewall(render(tmp_path))
    out = [line for line in lines if line.startswith("ip saddr 10.1.") and " daddr " in line and "accept" in line]
    assert [line.split(" accept ")[0] for line in out] == [
        *(
            f"ip saddr 10.1.{net}.0/24 ip daddr 10.1.2.101/32 {kind} dport 53"
            for net in (1, 2)
            for kind in ("udp", "tcp")
        ),
        "ip saddr 10.1.2.0/24 ip daddr 10.1.2.101/32 tcp dport { 8090 }",
        "ip saddr 10.1.2.0/24 ip daddr 10.1.2.1/32 tcp dport { 2112 }",
        "ip saddr 10.1.2.0/24 ip daddr 10.1.2.2/32 tcp dport { 2112 }",
    ]


def test_clients_of_the_metrics(tmp_path: Path) -> None:
    def sources(**settings: Any) -> list[str]:
        lines = [line for line in firewall(render(tmp_path, **settings)) if "metrics for the tenant" in line]
        return [line.split("saddr ")[1].split()[0] for line in lines]

    assert sources() == [SUBNET]
    assert sources(control_instance_metrics_clients=["10.4.0.20"]) == ["10.4.0.20/32"]
    assert sources(control_instance_metrics_clients=[]) == []


def firewall(settings: dict[str, Any]) -> list[str]:
    return [line.strip() for line in files(settings)["/etc/openipu/firewall.nft"].splitlines()]


def test_security_updates_can_be_switched_off(tmp_path: Path) -> None:
    file = "/etc/apt/apt.conf.d/60openipu-updates"
    settings = render(tmp_path)
    assert "unattended-upgrades" in settings["packages"]
    assert "label=Debian-Security" in files(settings)[file]
    assert 'Automatic-Reboot "false"' in files(settings)[file]
    assert 'Automatic-Reboot "true"' in files(render(tmp_path, control_instance_updates_reboot=True))[file]
    without = render(tmp_path, control_instance_security_updates=False)
    assert set(settings["packages"]) - set(without["packages"]) == {"unattended-upgrades"}
    assert files(settings).keys() - files(without).keys() == {file}
    timers = ["systemctl", "enable", "--now", "apt-daily.timer", "apt-daily-upgrade.timer"]
    assert settings["runcmd"] == [*without["runcmd"], timers]


def test_services_that_listen_start_after_the_firewall(tmp_path: Path) -> None:
    rendered = files(render(tmp_path))
    for service in ("haproxy", "prometheus", "prometheus-node-exporter", "rsyslog"):
        drop_in = rendered[f"/etc/systemd/system/{service}.service.d/openipu-firewall.conf"]
        assert "Requires=openipu-firewall.service\nAfter=openipu-firewall.service\n" in drop_in
    assert "StartLimitIntervalSec=0" in rendered["/etc/systemd/system/haproxy.service.d/openipu-restart.conf"]
