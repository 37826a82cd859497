# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role `monitoring`: watched units, validation, targets and secret files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

ROLE = ROOT / "roles" / "monitoring"
FAMILIES = ("Debian", "RedHat")


def run_tasks(folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> str:
    """Run tasks with the variables of the role, overridden by ``variables``, and return the output of Ansible."""
    family = variables.pop("family", "Debian")
    options = variables.pop("options", ())
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLE / name) for name in ("defaults/main.yml", f"vars/{family}.yml", "vars/main.yml")],
        "tasks": tasks,
    }
    book = folder / "play.yml"
    book.write_text(yaml.safe_dump([play]))
    settings = folder / "settings.yml"
    settings.write_text(yaml.safe_dump({"ansible_python_interpreter": sys.executable, **variables}))
    result = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "-i",
            "localhost,",
            "-c",
            "local",
            "-e",
            f"@{settings}",
            *options,
            book,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return re.sub(r"\s+", " ", result.stdout + result.stderr)


@pytest.mark.parametrize("family", FAMILIES)
def test_units_of_the_collection_and_of_monitoring_are_watched(tmp_path: Path, family: str) -> None:
    output = run_tasks(
        tmp_path, [{"ansible.builtin.debug": {"msg": "<{{ monitoring_watched | join('|') }}>"}}], family=family
    )
    match = re.search(r"<(.+?)>", output)
    assert match, output
    units = yaml.safe_load((ROLE / f"vars/{family}.yml").read_text())["monitoring_units"].values()
    own_units = {file.name.removesuffix(".j2") for file in (ROOT / "roles").rglob("*.service.j2")}
    own_units = own_units - {"maintenance.service"} | {
        "vipu-backup.service",
        "vipu-renew.service",
    }  # its units
    assert "openipu-firewall.service" in own_units
    assert not [unit for unit in (*units, *own_units) if not re.fullmatch(f"({match[1]})[.]service", unit)]


def test_grafana_rejects_the_default_password_on_a_network_address(tmp_path: Path) -> None:
    accepted: list[dict[str, Any]] = [
        {"monitoring_address": "127.0.0.1"},
        {"monitoring_grafana_password_file": "/etc/grafana.password"},
        {"monitoring_parts": ["prometheus"]},
    ]
    reachable = {
        "monitoring_grafana_install": True,
        "monitoring_parts": ["grafana"],
        "monitoring_targets": {},
        "monitoring_address": "10.1.3.101",
    }
    include = {"ansible.builtin.include_tasks": str(ROLE / "tasks/validate.yml")}
    tasks = [{**include, "vars": {**reachable, **settings}} for settings in (*accepted, {})]
    done = {"ansible.builtin.debug": {"msg": "<accepted>"}}
    output = run_tasks(tmp_path, [each for task in tasks for each in (task, done)])
    message = "Cannot install Grafana on 10.1.3.101: its administrator would have the default password. Set"
    before, rejection, _rest = output.partition(message)
    assert rejection and "failed=1" in output, output  # it ends the play
    assert before.count("<accepted>") == len(accepted), output


def test_the_controller_target_is_its_metrics_endpoint(tmp_path: Path) -> None:
    target = "{{ monitoring_pod_targets['vipu-controller'] | map(attribute='address') | first }}"
    output = run_tasks(
        tmp_path,
        [
            {"ansible.builtin.include_vars": str(ROOT / "roles/vipu_server/defaults/main.yml")},
            {"ansible.builtin.add_host": {"name": "controller1", "groups": "controllers"}},
            {
                "ansible.builtin.debug": {
                    "msg": f"<{{{{ vipu_server_metrics_host }}}}:{{{{ vipu_server_metrics_port }}}}={target}>"
                }
            },
        ],
        vipu_api_host="10.3.1.101",
    )
    assert "<10.3.1.101:2112=10.3.1.101:2112>" in output


def test_metrics_of_deployed_roles_are_scraped_with_tls_and_token(tmp_path: Path) -> None:
    """Render the configuration of Prometheus for hosts of the roles vipu_server and virm_agent, one without TLS."""
    for name in ("login/ca.crt", "agents.crt", "metrics.token"):
        file = tmp_path / "control" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name} of {name}\n")
    control = tmp_path / "control"
    agent = {"pod_kind": "machine", "pod_rack": "rack1", "pod_unit": 1, "pod_agent_id": "ag01"}
    agents = [
        {
            **agent,
            "name": "ipum1",
            "pod_addresses": {"gw": "10.2.1.1"},
            "virm_agent_tls_ca": str(control / "agents.crt"),
        },
        {**agent, "name": "ipum2", "pod_addresses": {"gw": "10.2.1.2"}},
    ]
    server = {"pod_kind": "server", "pod_rack": "rack1", "pod_addresses": {"p2": "10.3.1.101"}}
    login = {"vipu_server_login_folder": str(control / "login"), **server}
    hosts = [{"name": "controller1", "groups": ["controllers", "deploy_vipu_server"], **login}]
    hosts += [{**each, "groups": ["machines", "deploy_virm_agent"]} for each in agents]
    template = {"src": str(ROLE / "templates/prometheus.yml.j2"), "dest": str(tmp_path / "prometheus.yml")}
    braces = {"variable_start_string": "[[", "variable_end_string": "]]"}
    output = run_tasks(
        tmp_path,
        [
            *({"ansible.builtin.add_host": host} for host in hosts),
            {"ansible.builtin.include_tasks": str(ROLE / "tasks/validate.yml")},
            {"ansible.builtin.template": {**template, **braces, "mode": "0600"}},
            {
                "ansible.builtin.copy": {
                    "content": "{{ [monitoring_pod_targets, monitoring_prometheus_files] | to_json }}",
                    "dest": str(tmp_path / "made.json"),
                    "mode": "0600",
                }
            },
        ],
        vipu_api_host="10.3.1.101",
        vipu_metrics_token_file=str(control / "metrics.token"),
        monitoring_parts=["prometheus"],
    )
    assert "failed=0" in output, output
    targets, files = json.loads((tmp_path / "made.json").read_text())
    schemes = {
        each["address"]: each["labels"].get("__scheme__", "http")
        for job in ("vipu-controller", "ipu-machine")
        for each in targets[job]
    }
    assert schemes == {"10.3.1.101:2112": "https", "10.2.1.1:2112": "https", "10.2.1.2:2112": "http"}
    contents = {file["path"]: (file["content"], file.get("secret", False)) for file in files}
    assert contents == {
        "/etc/prometheus/exporters.token": ("metrics.token of metrics.token", True),
        "/etc/prometheus/exporters.crt": ("ca.crt of login/ca.crt\nagents.crt of agents.crt\n", False),
    }
    jobs = {job["job_name"]: job for job in yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"]}
    for name in ("vipu-controller", "ipu-machine"):
        assert jobs[name]["tls_config"] == {"ca_file": "/etc/prometheus/exporters.crt"}
        assert jobs[name]["authorization"] == {"credentials_file": "/etc/prometheus/exporters.token"}
    assert "authorization" not in jobs["node"]
    (control / "metrics.token").unlink()
    missing = run_tasks(
        tmp_path,
        [
            *({"ansible.builtin.add_host": host} for host in hosts),
            {"ansible.builtin.include_tasks": str(ROLE / "tasks/validate.yml")},
        ],
        vipu_metrics_token_file=str(control / "metrics.token"),
        monitoring_parts=["prometheus"],
        monitoring_targets={},
    )
    assert f"the control node does not have {control}/metrics.token. Run the roles" in missing


def test_servers_on_loopback_are_federated_at_their_management_address(tmp_path: Path) -> None:
    own = ["127.0.0.1", "127.0.1.1", "localhost", "::1", "0.0.0.0", "::", "10.9.1.101"]
    hosts = [
        {
            "name": f"server{number}",
            "groups": "controllers",
            "pod_group": f"pod_{number}",
            "pod_name": str(number),
            "pod_addresses": {"p2": f"10.{number}.3.101"},
            "monitoring_address": address,
        }
        for number, address in enumerate(own)
    ]
    found = "<{{ monitoring_inventory_prometheus | map(attribute='address') | join(' ') }}>"
    output = run_tasks(
        tmp_path,
        [*({"ansible.builtin.add_host": host} for host in hosts), {"ansible.builtin.debug": {"msg": found}}],
    )
    assert f"<{' '.join(f'10.{number}.3.101:9090' for number in range(6))} 10.9.1.101:9090>" in output


def test_check_mode_reports_mistakes_before_missing_certificates(tmp_path: Path) -> None:
    """Roles that check mode has not run may write the certificates."""
    federation = {
        "monitoring_parts": ["prometheus"],
        "monitoring_targets": {},
        "monitoring_exporter_ca": [],
        "monitoring_exporter_token_file": "",
        "monitoring_federate": [{"pod": "north", "address": "10.1.3.101:9090"}] * 2,
        "monitoring_federate_ca": [str(tmp_path / "ca.crt")],
    }
    validate: list[dict[str, Any]] = [{"ansible.builtin.include_tasks": str(ROLE / "tasks/validate.yml")}]
    missing = f"the control node does not have {tmp_path}/ca.crt. Correct monitoring_federate_ca."
    assert missing in run_tasks(tmp_path, validate, **federation)
    checked = run_tasks(tmp_path, validate, options=("--check",), **federation)
    assert "two servers in monitoring_federate have the same pod." in checked
    assert missing not in checked


def test_files_with_credentials_are_secret() -> None:
    services = yaml.safe_load((ROLE / "vars/main.yml").read_text())["monitoring_services"]
    public = {
        file["template"] for service in services.values() for file in service.get("files", ()) if not file.get("secret")
    }
    assert public == {"rules/recording.yml.j2", "rules/alerts.yml.j2"}
