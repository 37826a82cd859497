# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of what credentials add to a job."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tools.ee.credentials import FILES, CredentialError, inject

from .content import CREDENTIAL_TYPES, KUBECONFIG


def credential(kind: str, **inputs: Any) -> dict[str, Any]:
    return {"name": "Test", "credential_type": kind, "inputs": inputs}


def test_files_are_referenced_by_variables():
    found = inject(CREDENTIAL_TYPES, [credential("Arista eAPI", username="admin", password="x", ca="pem")])
    [(name, content)] = found.files.items()
    assert content == "pem"
    connection = found.extra_variables[0]["eos_connection"]
    assert connection == {"username": "admin", "password": "x", "ca_path": f"{FILES}/{name}", "port": "443"}


def test_a_single_file_and_the_environment():
    found = inject(CREDENTIAL_TYPES, [credential("Kubernetes kubeconfig", kubeconfig="apiVersion: v1")])
    [name] = found.files
    assert found.environment == {"KUBECONFIG": f"{FILES}/{name}", "PROTOCOL": "https", "VERBOSE": "False"}


def test_files_of_two_credentials_have_different_names():
    credentials = [
        credential("Arista eAPI", username="admin", password="x", ca="pem"),
        credential("Kubernetes kubeconfig", kubeconfig="apiVersion: v1"),
    ]
    assert sorted(inject(CREDENTIAL_TYPES, credentials).files.values()) == ["apiVersion: v1", "pem"]


def test_a_machine_credential():
    key = {"username": "ansible", "ssh_key_data": "KEY", "become_method": "sudo", "become_password": "secret"}
    found = inject([], [credential("Machine", **key)])
    assert found.arguments == ["-u", "ansible", "--become-method", "sudo", "--ask-become-pass"]
    assert found.ssh_key == "KEY\n"
    assert list(found.passwords.values()) == ["secret"]


def test_an_openstack_credential_is_a_clouds_file():
    access = {"host": "https://keystone.example.com", "username": "admin", "password": "a: 'b' # c", "project": "admin"}
    found = inject([], [credential("OpenStack", **access, verify_ssl=False)])
    [(name, content)] = found.files.items()
    assert found.environment == {"OS_CLIENT_CONFIG_FILE": f"{FILES}/{name}"}
    cloud = yaml.safe_load(content)["clouds"]["devstack"]
    assert cloud["auth"]["auth_url"] == "https://keystone.example.com"
    assert cloud["auth"]["password"] == "a: 'b' # c"
    assert cloud["verify"] is False


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        ([credential("None")], "no credential type 'None'"),
        ([credential("Kubernetes kubeconfig")], "without values: kubeconfig"),
        ([credential("Kubernetes kubeconfig", kubeconfig="x", other="y")], "unknown fields: other"),
        ([credential("Kubernetes kubeconfig", kubeconfig="x", protocol="ftp")], "'protocol' is not one of its choices"),
        ([credential("Machine"), credential("Machine")], "the job has another 'Machine'"),
    ],
)
def test_wrong_credentials_are_rejected(credentials, message):
    with pytest.raises(CredentialError) as error:
        inject(CREDENTIAL_TYPES, credentials)
    assert message in str(error.value)


@pytest.mark.parametrize("variable", ["ANSIBLE_CONFIG", "PATH"])
def test_reserved_environment_variables_are_rejected(variable):
    kind = {**KUBECONFIG, "injectors": {"env": {variable: "{{ kubeconfig }}"}}}
    with pytest.raises(CredentialError, match=f"AWX rejects the environment variable {variable}"):
        inject([kind], [credential("Kubernetes kubeconfig", kubeconfig="x")])
