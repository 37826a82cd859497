# SPDX-License-Identifier: GPL-3.0-or-later
"""A global Prometheus federates those of two PODs over TLS, with the configuration of the role `monitoring`."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.shared.pod.load import load
from tests.integration.bringup import two_pods
from tests.integration.bringup.two_pods import TwoPods
from tests.peers.exporters import HOST, responds, running
from tests.peers.monitoring_files import write_files
from tests.peers.programs import needs
from tests.peers.test_prometheus import Query, query_prometheus
from tests.ports import free_port
from tests.waiting import until

pytestmark = needs("prometheus", "promtool", "openssl", packages="prometheus openssl")
# The user of the global server, with the hash of its password.
PASSWORD = "metrics-reader"
USERS = {"global": "$2b$05$oWnLa2fHniEDdElRGUk9b.zgutEUeUY9hrMqptsH8J0D35YcSI0cW"}


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoPods]:
    """Return two PODs with running twins, and a host for the global server in the same inventory."""
    made = two_pods.write(tmp_path_factory.mktemp("pods"))
    variables = made.inventory / "group_vars"
    variables.mkdir()
    for name in made.twins:
        settings = {"monitoring_address": "{{ pod_addresses.p2 }}", "monitoring_prometheus_port": free_port()}
        (variables / f"pod_{name}.yml").write_text(yaml.safe_dump(settings))
    (made.inventory / "global.yml").write_text("all: {hosts: {metrics1: {}}}\n")
    try:
        made.up()
        yield made
    finally:
        made.down()


def address(pods: TwoPods, name: str) -> str:
    """Return the address and port of the Prometheus of a POD."""
    (server,) = (each for each in load(str(pods.twins[name].inventory)).devices if each.name == "server1")
    port = yaml.safe_load((pods.inventory / f"group_vars/pod_{name}.yml").read_text())["monitoring_prometheus_port"]
    return f"{server.addresses['p2']}:{port}"


@pytest.fixture(scope="module")
def certificates(pods: TwoPods, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a key and a self-signed certificate for each POD."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in pods.twins:
        host = address(pods, name).partition(":")[0]
        options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{host}"]
        subprocess.run(["openssl", "req", "-x509", *options, *files, *subject], check=True, capture_output=True)
    return folder


@contextmanager
def pod_server(pods: TwoPods, certificates: Path, name: str, folder: Path) -> Iterator[None]:
    """Run the Prometheus of a POD with TLS and authentication."""
    files = write_files(
        folder / name,
        pods.inventory,
        f"{name}-server1",
        monitoring_web_certificate=str(certificates / f"{name}.crt"),
        monitoring_web_key=str(certificates / f"{name}.key"),
        monitoring_web_ca=str(certificates / f"{name}.crt"),
        monitoring_web_users=USERS,
        monitoring_web_username="global",
        monitoring_web_password=PASSWORD,
        monitoring_scrape_interval="1s",
        monitoring_parts=["prometheus"],
    )
    tls = {f"{kind}_file": str(certificates / f"{name}.{suffix}") for kind, suffix in (("cert", "crt"), ("key", "key"))}
    (files / "web.yml").write_text(yaml.safe_dump({"tls_server_config": tls, "basic_auth_users": USERS}))
    for job, targets in json.loads((files / "targets.json").read_text()).items():
        groups = [{"targets": [target["address"]], "labels": target["labels"]} for target in targets]
        (files / f"targets/{job}.json").write_text(json.dumps(groups))
    own = address(pods, name)
    command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--web.config.file={files}/web.yml"]
    command += [f"--web.listen-address={own}", f"--storage.tsdb.path={folder}/{name}/data"]
    ca = certificates / f"{name}.crt"

    def ready() -> bool:
        request = [
            "curl",
            "--silent",
            "--fail",
            "--cacert",
            ca,
            "--user",
            f"global:{PASSWORD}",
            f"https://{own}/-/ready",
        ]
        return subprocess.run(request, capture_output=True).returncode == 0

    with running(command, folder / f"{name}.log", ready):
        yield


@pytest.fixture
def federation(
    pods: TwoPods, certificates: Path, tmp_path: Path
) -> Iterator[tuple[Query, dict[str, Callable[[], Any]], Path]]:
    """Run the servers of both PODs and the global one.

    Yield queries of the global server, functions that stop the server of a POD, and the configuration folder.
    """
    with ExitStack() as stack:
        stops = {}
        for name in pods.twins:
            (tmp_path / name).mkdir()
            each = stack.enter_context(ExitStack())
            each.enter_context(pod_server(pods, certificates, name, tmp_path))
            stops[name] = each.close
        port = free_port()
        files = write_files(
            tmp_path,
            pods.inventory,
            "metrics1",
            monitoring_name="global",
            monitoring_federate_ca=[str(certificates / f"{name}.crt") for name in pods.twins],
            monitoring_federate_username="global",
            monitoring_federate_password=PASSWORD,
            monitoring_scrape_interval="1s",
        )
        (files / "targets/node.json").write_text("[]")
        command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
        command.append(f"--web.listen-address={HOST}:{port}")
        stack.enter_context(running(command, tmp_path / "log", responds(f"http://{HOST}:{port}/-/ready")))
        yield functools.partial(query_prometheus, port), stops, files


def test_a_global_server_has_the_data_and_alerts_of_all_pods(
    federation: tuple[Query, dict[str, Callable[[], Any]], Path], pods: TwoPods
) -> None:
    query, stops, files = federation
    checked = subprocess.run(["promtool", "check", "config", files / "prometheus.yml"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    jobs = {job["job_name"]: job for job in yaml.safe_load((files / "prometheus.yml").read_text())["scrape_configs"]}
    # The servers come from the inventory, and devices of the PODs are no targets.
    assert jobs["federate"]["static_configs"] == [
        {"targets": [address(pods, name)], "labels": {"pod": name}} for name in pods.twins
    ]
    targets = json.loads((files / "targets.json").read_text())
    assert {job: len(found) for job, found in targets.items() if found} == {"node": 1}
    assert PASSWORD not in (files / "prometheus.yml").read_text()

    for name in pods.twins:
        controller = f'up{{job="vipu-controller", pod="{name}"}}'
        until(lambda query_=controller: [each["value"][1] for each in query(query_)] == ["1"], 60, controller)
        used = f'sum(cluster:ipus_used:ratio{{pod="{name}"}})'
        until(lambda query_=used: [each["value"][1] for each in query(query_)] == ["0.5"], 60, used)
        assert query(f'ALERTS{{alertname="Watchdog", pod="{name}"}}')
    # Equal names of hosts in two PODs are separate series, and the own rules ignore those of the PODs.
    assert len(query('up{job="ipu-machine"}')) == 2 * two_pods.MACHINES
    assert not query('ALERTS{alertname!~"Watchdog|PodPrometheusDown", pod=""}')

    stops["south"]()
    down = 'ALERTS{alertname="PodPrometheusDown"}'
    until(lambda: bool(query(down)), 60, down)
    assert [each["metric"]["pod"] for each in query(down)] == ["south"]
    assert [each["value"][1] for each in query('up{job="vipu-controller", pod="north"}')] == ["1"]
