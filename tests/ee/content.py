# SPDX-License-Identifier: GPL-3.0-or-later
"""Credential types, credentials and job templates, in the shape of infra.aap_configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SWITCHES = {
    "name": "Arista eAPI",
    "inputs": {
        "fields": [
            {"id": "username", "label": "User name", "type": "string"},
            {"id": "password", "label": "Password", "type": "string", "secret": True},
            {"id": "ca", "label": "Certificate authority", "type": "string", "multiline": True},
            {"id": "port", "label": "Port", "type": "string", "default": "443"},
        ],
        "required": ["username", "password", "ca"],
    },
    "injectors": {
        "file": {"template.ca": "{{ ca }}"},
        "extra_vars": {
            "eos_connection": {
                "username": "{{ username }}",
                "password": "{{ password }}",
                "ca_path": "{{ tower.filename.ca }}",
                "port": "{{ port }}",
            }
        },
    },
}
PDUS = {
    "name": "PDU SNMPv3",
    "inputs": {
        "fields": [
            {"id": "username", "label": "User name", "type": "string"},
            {"id": "auth_key", "label": "Authentication pass phrase", "type": "string", "secret": True},
            {"id": "priv_key", "label": "Encryption pass phrase", "type": "string", "secret": True},
            {"id": "port", "label": "Port", "type": "string", "default": "161"},
        ],
        "required": ["username", "auth_key", "priv_key"],
    },
    "injectors": {
        "extra_vars": {
            "pdu_connection": {
                "username": "{{ username }}",
                "auth_key": "{{ auth_key }}",
                "priv_key": "{{ priv_key }}",
                "port": "{{ port }}",
            }
        }
    },
}
KUBECONFIG = {
    "name": "Kubernetes kubeconfig",
    "inputs": {
        "fields": [
            {"id": "kubeconfig", "label": "kubeconfig", "type": "string", "secret": True},
            {"id": "verbose", "label": "Verbose", "type": "boolean"},
            {"id": "protocol", "label": "Protocol", "type": "string", "choices": ["http", "https"], "default": "https"},
        ],
        "required": ["kubeconfig"],
    },
    "injectors": {
        "file": {"template": "{{ kubeconfig }}"},
        "env": {"KUBECONFIG": "{{ tower.filename }}", "PROTOCOL": "{{ protocol }}", "VERBOSE": "{{ verbose }}"},
    },
}
CREDENTIAL_TYPES: list[dict[str, Any]] = [SWITCHES, PDUS, KUBECONFIG]

BRING_UP: dict[str, Any] = {
    "name": "Bring up the POD",
    "playbook": "playbooks/site.yml",
    "credentials": ["POD PDUs", "POD switches"],
    "ask_job_type_on_launch": True,
    "timeout": 1800,
}
CLUSTER_TESTS: dict[str, Any] = {
    "name": "Cluster tests",
    "playbook": "playbooks/cluster_test.yml",
    "timeout": 1800,
    "survey_enabled": True,
    "survey_spec": {
        "name": "Cluster tests",
        "description": "",
        "spec": [
            {
                "question_name": "Cluster tests",
                "variable": "pod_cluster_test",
                "type": "multiplechoice",
                "required": True,
                "choices": ["once", "always", "never"],
                "default": "once",
            },
            {
                "question_name": "Timeout in seconds",
                "variable": "pod_cluster_test_timeout",
                "type": "integer",
                "required": True,
                "min": 60,
                "max": 7200,
                "default": 1800,
            },
        ],
    },
}


def twin_credentials(state: Path) -> list[dict[str, Any]]:
    """Return the credentials for the devices of a twin with this state folder."""
    keys = {"auth_key": "twin-authentication", "priv_key": "twin-encryption"}
    switches = {"username": "admin", "password": "loopback-only", "port": "8443"}
    authority = (state / "devices" / "tls" / "client" / "ca.crt").read_text()
    return [
        {
            "name": "POD switches",
            "credential_type": SWITCHES["name"],
            "inputs": {**switches, "ca": authority},
        },
        {"name": "POD PDUs", "credential_type": PDUS["name"], "inputs": {"username": "admin", "port": "1161", **keys}},
    ]
