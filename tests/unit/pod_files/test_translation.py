# SPDX-License-Identifier: GPL-3.0-or-later
"""Translation of a POD to loopback and back, and the guard against other connections."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from openipu.pod_files.rehearsal import inventory, playbook
from openipu.pod_files.rehearsal.translation import Translator, choose
from openipu.pod_files.variables import Variables
from openipu.pod_files.variables import read as read_variables
from openipu.shared.pod.load import load
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.loopback import read_pod
from tests import ROOT

RACK = ROOT / "inventory/pod64"


@pytest.fixture(scope="module")
def pod():
    return load(str(RACK / "pod.yml"))


def write(folder: Path, target: Path):
    pod = load(str(folder / "pod.yml"))
    translator = Translator(pod, 32)
    variables = read_variables(folder)
    path = inventory.TranslatedPod(pod, variables, translator).write(target, str(target.parent))
    return pod, load(str(path)), translator


@given(st.integers(1 << 24, 223 << 24).map(ipaddress.IPv4Address).filter(lambda address: not address.is_loopback))
def test_every_address_becomes_one_on_loopback_and_comes_back(address):
    translator = Translator(load(str(RACK / "pod.yml")), 16)
    text = f"server {address}, port 80"
    translated = translator.text(text)
    assert ipaddress.ip_address(translated.split()[1].rstrip(",")).is_loopback
    assert translator.original(translated) == text
    assert translator.host(str(address)) == translator.host(str(address))


@pytest.mark.parametrize(
    "text", ["255.255.255.0", "0.0.0.0", "127.0.0.1", "224.0.0.1", "1.2.3", "10.0.0.0/8", "v1.2.3.4"]
)
def test_masks_networks_and_versions_are_kept(pod, text):
    assert Translator(pod, 16).text(text) == text


def test_a_subnet_and_a_name_are_translated(pod):
    translator = Translator(pod, 16)
    assert translator.text("10.1.2.0/24") == translator.subnet("10.1.2.0/24") == "127.16.2.0/24"
    assert translator.original(translator.host("vipu.example")) == "vipu.example"


def test_the_first_usable_network_is_chosen(pod):
    assert choose(pod, 32, lambda found: found.octets[0] == 24).octets[0] == 24
    assert choose(pod, 32, lambda _found: False) is None


def test_the_translated_pod_equals_the_original_but_for_its_addresses(tmp_path):
    real, twin, translator = write(RACK, tmp_path / "pod")
    for original, translated in zip(real.devices, twin.devices, strict=True):
        assert (translated.name, translated.rack, translated.macs) == (original.name, original.rack, original.macs)
        assert {key: translator.original(value) for key, value in translated.addresses.items()} == original.addresses
        assert all(ipaddress.ip_address(address).is_loopback for address in translated.addresses.values())
    assert [cable.port for cable in twin.cables] == [cable.port for cable in real.cables]
    assert [machine.agent for machine in twin.machines] == [machine.agent for machine in real.machines]
    assert twin.partitions == real.partitions
    texts = [path.read_text() for path in (tmp_path / "pod").rglob("*") if path.is_file()]
    assert not [text for text in texts if re.search(r"(?<![\d.])10\.1\.\d+\.\d+(?!/)", text)]


def test_subnets_larger_than_a_half_keep_their_addresses_apart(tmp_path):
    folder = tmp_path / "real"
    shutil.copytree(RACK, folder)
    text = (
        (folder / "pod.yml")
        .read_text()
        .replace("data: {vlan: 11, subnet: 10.1.5.0/24}", "data: {vlan: 11, subnet: 11.0.0.0/8}")
    )
    (folder / "pod.yml").write_text(re.sub(r"  storage: .*", "", text))
    csv = (folder / "machines.csv").read_text().splitlines()
    csv[1] += ",rnic_address"
    csv[2:] = [f"{line},11.{number}.0.7" for number, line in enumerate(csv[2:], 1)]
    (folder / "machines.csv").write_text("\n".join(csv) + "\n")
    real, twin, translator = write(folder, tmp_path / "pod")
    addresses = [machine.addresses["rnic"] for machine in twin.machines]
    assert len(set(addresses)) == len(real.machines)
    assert [translator.original(address) for address in addresses] == [m.addresses["rnic"] for m in real.machines]


def test_hosts_and_kubernetes_are_left_out(tmp_path):
    folder = tmp_path / "real"
    shutil.copytree(RACK, folder)
    with (folder / "pod.yml").open("a") as file:
        file.write("deploy: {controllers: [vipu_server]}\nkubernetes: {}\n")
    real, twin, _translator = write(folder, tmp_path / "pod")
    assert real.deploy and real.kubernetes
    assert not twin.deploy and twin.kubernetes is None


def test_secrets_have_placeholders(tmp_path):
    folder = tmp_path / "real"
    shutil.copytree(RACK, folder)
    (folder / "group_vars/vault.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    (folder / "host_vars").mkdir()
    (folder / "host_vars/pdu1.yml").write_text(
        "pdu_config:\n  contact: !vault |\n    $ANSIBLE_VAULT;1.1\n    31\nx: 1\n"
    )
    variables = read_variables(folder)
    assert variables.encrypted == (Path("group_vars/vault.yml"),)
    assert variables.undefined["vault_switch_password"] == "group_vars/switches.yml:6"
    assert "vault_bmc_password" not in variables.undefined  # only in a comment
    write(folder, tmp_path / "pod")
    assert (tmp_path / "pod/host_vars/pdu1.yml").read_text() == 'pdu_config:\n  contact: "rehearsal"\nx: 1\n'
    assert (tmp_path / "pod/group_vars/vault.yml").read_text() == '{"rehearsal_encrypted": true}'


def test_secrets_may_have_any_name(tmp_path):
    folder = tmp_path / "real"
    shutil.copytree(RACK, folder)
    switches = folder / "group_vars/switches.yml"
    switches.write_text(switches.read_text().replace("vault_switch_password", "my_switch_pw"))
    (folder / "group_vars/controllers.yml").write_text(
        "# my_key\nuser: admin\nvipu_connection: {api_access_key: '{{ user ~ my_key }}'}\nother: '{{ my_other }}'\n"
    )
    _real, twin, _translator = write(folder, tmp_path / "pod")
    names = playbook.undefined(Path(twin.file), playbook.guarded_environment(tmp_path / "log"))
    before = read_variables(folder)
    found = before.with_undefined(names.examined, names.skipped)
    assert found.undefined["my_switch_pw"] == "group_vars/switches.yml:6"
    assert found.undefined["my_key"] == "group_vars/controllers.yml:3"
    assert set(found.undefined) == {"my_switch_pw", "my_key", *before.undefined}
    extra = inventory.extra_variables(twin, found, Translator(twin, 16), tmp_path)
    assert extra["my_switch_pw"] == extra["my_key"] == extra["vault_pdu_auth_key"]


def test_variables_of_devices_without_credentials_have_placeholders_only(tmp_path):
    folder = tmp_path / "real"
    shutil.copytree(RACK, folder)
    (folder / "group_vars/switches.yml").write_text("eos_config: {ntp_servers: ['{{ my_ntp }}']}\n")
    path = folder / "pod.yml"
    path.write_text(path.read_text().replace("{name: mgmt1, ", "{name: mgmt1, managed: false, "))
    write(folder, tmp_path / "pod")
    found = playbook.undefined(tmp_path / "pod/pod.yml", playbook.guarded_environment(tmp_path / "log"))
    assert "vault_pdu_auth_key" in found.examined
    assert found.skipped == ["my_ntp"]
    assert found.lacking == {"eos_connection": ["tor1"]}  # and not mgmt1, which is unmanaged
    # The twin has credentials, so its switches need a value.
    variables = read_variables(folder).with_undefined(found.examined, found.skipped)
    assert "my_ntp" not in variables.undefined
    pod = load(str(folder / "pod.yml"))
    assert inventory.extra_variables(pod, variables, Translator(pod, 16), tmp_path)["my_ntp"] == "rehearsal"


def test_a_misspelled_variable_has_a_suggestion():
    files = {Path("group_vars/all.yml"): "# ntp_serve: x\nntp_server: 10.1.3.1\nnested:\n  ntp_serv: 1\n"}
    variables = Variables(files, (), {})
    assert variables.similar("ntp_servr") == "ntp_server"
    assert variables.similar("ntp_server") is None
    assert variables.similar("vault_pdu_auth_key") is None


def fake_ansible(folder: Path, monkeypatch, script: str) -> Path:
    """Make a shell script the program ``ansible``, and return an inventory."""
    program = folder / "ansible"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder / "pod.yml"


def test_a_search_for_undefined_variables_that_does_not_end_is_an_error(tmp_path, monkeypatch):
    path = fake_ansible(tmp_path, monkeypatch, "sleep 300")
    monkeypatch.setattr(playbook, "_EXAMINATION_SECONDS", 0.2)
    with pytest.raises(playbook.RehearsalError, match=r"Ansible ran longer than 0\.2 s\. Check the lookups"):
        playbook.undefined(path, {})


@pytest.mark.parametrize("output", ["nothing", "localhost | SUCCESS => {}", 'localhost | SUCCESS => {\\"msg\\": [1]}'])
def test_a_search_for_undefined_variables_without_a_result_is_an_error(tmp_path, monkeypatch, output):
    path = fake_ansible(tmp_path, monkeypatch, f'echo "{output}"')
    with pytest.raises(
        playbook.RehearsalError, match=r"Cannot search for undefined variables: the output of .*/ansible"
    ):
        playbook.undefined(path, {})


def test_an_inventory_that_ansible_rejects_has_no_undefined_variables(tmp_path):
    (tmp_path / "pod.yml").write_text("plugin: openipu.pod.pod\n")
    environment = playbook.guarded_environment(tmp_path / "log")
    assert playbook.undefined(tmp_path / "pod.yml", environment) == playbook.Undefined()


def test_the_variables_of_the_preflight_checks_are_examined():
    plays = yaml.safe_load((ROOT / "playbooks/preflight.yml").read_text())
    play = next(each for each in plays if each["name"] == "Check credentials")
    queries = play["tasks"][0]["vars"]["pod_undefined"]
    found = {}
    for terms, options in re.findall(r"query\('[\w.]+', (.*?), hosts=\w+(.*?)\)", queries):
        having = re.search(r"having='(\w+)'", options)
        found[having and having[1]] = tuple(re.findall(r"'(\w+)'", terms))
    assert found == playbook.EXAMINED
    assert tuple(play["hosts"].split(":")) == playbook.EXAMINED_GROUPS


@pytest.mark.parametrize(
    ("statement", "rejected"),
    [
        ("socket.create_connection(('10.9.8.7', 1), 1)", "10.9.8.7"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.9.8.7', 9))", "10.9.8.7"),
        ("socket.getaddrinfo('vipu.example', 1)", "vipu.example"),
        ("socket.getaddrinfo('10gw.example.com', 1)", "10gw.example.com"),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2001:db8::1', 9))", "2001:db8::1"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))", None),
        ("socket.getaddrinfo('localhost', 1)", None),
    ],
)
def test_the_guard_rejects_and_records_other_connections(tmp_path, statement, rejected):
    log = tmp_path / "connections.log"
    environment = playbook.guarded_environment(log)
    done = subprocess.run(
        [sys.executable, "-c", f"import socket; {statement}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if rejected is None:
        assert done.returncode == 0, done.stderr
        assert not log.exists()
    else:
        assert f"the rehearsal contacts loopback only, not {rejected}" in done.stderr
        assert [line.split()[1] for line in log.read_text().splitlines()] == [rejected]


def test_proxies_and_settings_of_the_user_are_dropped(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTPS_PROXY", "ANSIBLE_VAULT_PASSWORD_FILE", "VIPU_CLI_API_HOST"):
        monkeypatch.setenv(name, "10.9.8.7")
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", "/collections")
    environment = playbook.guarded_environment(tmp_path / "log")
    assert "10.9.8.7" not in environment.values()
    assert environment["ANSIBLE_COLLECTIONS_PATH"] == "/collections"
    assert environment["PYTHONPATH"].split(os.pathsep)[0].endswith("guard")


def test_all_hosts_of_the_controller_are_translated(tmp_path):
    folder = tmp_path / "pod"
    shutil.copytree(RACK, folder)
    file = folder / "pod.yml"
    text = file.read_text()
    assert "controller: {server: server1, port: 8090}" in text
    file.write_text(text.replace("{server: server1, port: 8090}", "{host: [10.1.3.101, 10.1.3.102, vipu.example]}"))
    found, translated, translator = write(folder, tmp_path / "twin")
    assert len(set(translated.controller_hosts)) == 3
    assert all(ipaddress.ip_address(host).is_loopback for host in translated.controller_hosts)
    assert tuple(map(translator.original, translated.controller_hosts)) == found.controller_hosts
    extra = inventory.extra_variables(found, read_variables(folder), translator, tmp_path)
    assert extra["vipu_connection"]["api_host"] == translated.api_host
    read_pod(tmp_path / "twin" / "pod.yml")


def test_a_twin_needs_all_hosts_of_the_controller_on_loopback(tmp_path):
    folder = tmp_path / "pod"
    shutil.copytree(ROOT / "inventory/twin", folder)
    file = folder / "pod.yml"
    file.write_text(file.read_text() + "controller: {host: [127.3.1.101, 10.1.3.102]}\n")
    with pytest.raises(TwinError, match=r"the address 10\.1\.3\.102 is not on loopback"):
        read_pod(file)
