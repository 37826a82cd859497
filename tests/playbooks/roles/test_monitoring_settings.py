# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role `monitoring`: watched units, validation, targets and secret files."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.vipu.tls import issue
from tests import ROOT
from tests.ports import free_port

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
        timeout=240,
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
            {"ansible.builtin.include_vars": str(ROOT / "roles/vipu_server/vars/main.yml")},
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


STORE = {"vipu_server_store": "etcd://10.3.1.11"}
SERVERS = {
    f"server{number}": {"pod_addresses": {"p1": f"10.2.1.10{number}", "p2": f"10.3.1.10{number}"}} for number in (1, 2)
}


@pytest.mark.parametrize(
    ("api_host", "hosts", "expected"),
    [
        # On one store, each controller has its own address, and the address for clients can be a virtual one.
        (
            "10.3.1.10",
            {
                "server1": {"vipu_server_host": "0.0.0.0", "vipu_server_advertise": "10.3.1.11", **STORE},
                "server2": {"vipu_server_host": "10.3.1.12", "vipu_server_metrics_port": 2113, **STORE},
                "server3": {"vipu_server_host": "0.0.0.0", "vipu_server_metrics_host": "10.4.1.13", **STORE},
                "server4": {"vipu_server_host": "::", "vipu_server_advertise": "fd00::4", **STORE},
                "server5": {"vipu_server_host": "0.0.0.0", "ansible_host": "10.3.1.15", **STORE},
            },
            "server1=10.3.1.11:2112 server2=10.3.1.12:2113 server3=10.4.1.13:2112 server4=[fd00::4]:2112 "
            "server5=10.3.1.15:2112",
        ),
        # Two names of one controller are one target.
        (
            "10.3.1.10",
            {
                "server1": {"vipu_server_advertise": "10.3.1.11", **STORE},
                "alias": {"vipu_server_host": "10.3.1.11", **STORE},
            },
            "server1=10.3.1.11:2112",
        ),
        # Other controllers, with and without a server in the POD
        ("10.3.1.101", SERVERS, "server1=10.3.1.101:2112"),
        ("10.3.1.102", SERVERS, "server2=10.3.1.102:2112"),
        ("vipu.pod1.example", SERVERS, "server1=vipu.pod1.example:2112"),
        (
            "10.3.1.101, 10.2.1.102,vipu3,10.3.1.101",
            SERVERS,
            "server1=10.3.1.101:2112 server2=10.2.1.102:2112 vipu3=vipu3:2112",
        ),
    ],
)
def test_every_controller_is_a_target_once(
    tmp_path: Path, api_host: str, hosts: dict[str, dict[str, Any]], expected: str
) -> None:
    add_hosts: list[dict[str, Any]] = [
        {"ansible.builtin.add_host": {"name": name, "groups": "controllers", **settings}}
        for name, settings in hosts.items()
    ]
    targets = "monitoring_pod_targets['vipu-controller']"
    target = f"{{% for each in {targets} %}}{{{{ each.labels.host }}}}={{{{ each.address }}}} {{% endfor %}}"
    output = run_tasks(
        tmp_path,
        [*add_hosts, {"ansible.builtin.debug": {"msg": f"<{target}>"}}],
        monitoring_pod_hosts=list(hosts),
        vipu_api_host=api_host,
    )
    assert f"<{expected} >" in output, output


def test_only_the_first_controller_of_a_pod_sends_alerts(tmp_path: Path) -> None:
    every = "alertmanager,grafana,ipmi_exporter,log_receiver,node_exporter,prometheus,snmp_exporter"
    expected = {"server1": every, "server2": "log_receiver,node_exporter", "poplar1": "node_exporter", "server3": every}
    tasks: list[dict[str, Any]] = []
    for name in expected:
        pod = {"pod_group": "pod_b" if name == "server3" else "pod_a", "pod_addresses": {"p2": "10.3.1.1"}}
        kind = "poplar_servers" if name == "poplar1" else "controllers"
        tasks.insert(0, {"ansible.builtin.add_host": {"name": name, "groups": [kind, pod["pod_group"]], **pod}})
        parts = "<{{ inventory_hostname }} {{ monitoring_parts | sort | join(',') }}>"
        tasks.append({"ansible.builtin.debug": {"msg": parts}, "vars": {"inventory_hostname": name, **pod}})
    output = run_tasks(tmp_path, [*tasks[len(expected) - 1 :: -1], *tasks[len(expected) :]])
    for name, parts in expected.items():
        assert f"<{name} {parts}>" in output, output


@pytest.fixture
def endpoints(tmp_path: Path) -> Iterator[int]:
    """Serve https on 127.0.0.1 and 127.0.0.2 with a certificate for the first address and localhost. Yield the port."""
    issue.create(tmp_path / "pki", ["127.0.0.1", "localhost"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pki/server/server.crt", tmp_path / "pki/server/server.key")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(421 if self.headers["Host"].startswith("localhost") else 401)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    port = free_port()
    with ExitStack() as stack:
        for host in ("127.0.0.1", "127.0.0.2"):
            server = stack.enter_context(ThreadingHTTPServer((host, port), Handler))
            server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        yield port


def test_controllers_that_prometheus_would_reject_are_reported(tmp_path: Path, endpoints: int) -> None:
    silent = free_port()
    wrong = [f"127.0.0.2:{endpoints}", f"localhost:{endpoints}"]
    addresses = [f"127.0.0.1:{endpoints}", f"127.0.0.1:{silent}", *wrong]
    include = {"ansible.builtin.include_tasks": str(ROLE / "tasks/controller_endpoints.yml")}
    settings = {"monitoring_exporter_tls": {"ca": str(tmp_path / "pki/ca/ca.crt")}}

    def check(addresses: list[str]) -> str:
        targets = [{"address": address, "labels": {"host": "server1"}} for address in addresses]
        return run_tasks(tmp_path, [include], monitoring_targets={"vipu-controller": targets}, **settings)

    output = check(addresses)
    assert (
        f"Cannot scrape the controller 'server1' at {wrong[0]}: its certificate is not valid for this address; "
        f"the controller 'server1' at {wrong[1]}: its metrics endpoint rejects this host name. Add the address to "
        "vipu_server_tls_names" in output
    ), output
    assert "failed=1" in output
    assert "failed=0" in check(addresses[:2])


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
