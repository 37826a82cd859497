# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics, probes and logs of the operator at a real API server."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import SECONDS, Operator, RunningJob
from tests.kubernetes.proxies import Proxy, token
from tests.ports import free_port
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.unit.kubernetes.operator.test_metrics_certificate import write
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")

API_AUDIENCE = "https://kubernetes.default.svc"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@dataclass
class Endpoint:
    """The metrics of a replica, and a client."""

    port: int = field(default_factory=free_port)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--metrics-port", str(self.port))

    def get(self, token: str = "", accept: str = "", path: str = "/metrics") -> tuple[int, str]:
        """Return status and text of a scrape."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}")
        request.headers |= {"Authorization": f"Bearer {token}"} if token else {}
        request.headers |= {"Accept": accept} if accept else {}
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # self-signed
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def reached(self, token: str) -> dict[str, float] | None:
        """Return the samples, None if nothing listens yet."""
        try:
            return self.samples(token)
        except urllib.error.URLError:
            return None

    def samples(self, token: str) -> dict[str, float]:
        """Return name and labels -> value."""
        status, text = self.get(token)
        assert status == 200, text
        return {
            each.name + "".join(f" {value}" for _, value in sorted(each.labels.items())): each.value
            for family in text_string_to_metric_families(text)
            for each in family.samples
        }


@dataclass
class Metered(Operator):
    """An operator with metrics."""

    metrics: Endpoint = field(default_factory=Endpoint)

    def start(self, *, leads: bool = True) -> None:
        self.options = (*self.options, *self.metrics.options)
        super().start(leads=leads)

    def probe(self, path: str) -> tuple[int, Any]:
        """Return status and answer of a probe."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture
def operator(proxy: Proxy) -> Iterator[Metered]:
    """Yield an operator with metrics."""
    made = Metered(proxy.cluster, proxy, options=("--log-format", "json"))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def prometheus(cluster: Cluster) -> Iterator[str]:
    """Yield the token of a service account that may scrape, as the published instructions allow it."""
    role = f"{cluster.namespace}-metrics-reader"
    cluster.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role, "labels": {"component": "metrics-reader"}},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }
    )
    cluster.create_account("prometheus")
    found = cluster.kubectl("get", "clusterrole", "-l", "component=metrics-reader", "--output=name").split()
    assert f"clusterrole.rbac.authorization.k8s.io/{role}" in found
    account = f"--serviceaccount={cluster.namespace}:prometheus"
    binding = f"{cluster.namespace}-metrics"
    cluster.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={role}", account)
    yield token(cluster, "prometheus", API_AUDIENCE)
    cluster.kubectl("delete", "clusterrolebinding", binding)
    cluster.kubectl("delete", "clusterrole", role)


def submit(operator: Operator, name: str = "job", **spec: Any) -> RunningJob:
    """Create a job."""
    metadata = {"name": name, "namespace": operator.cluster.namespace}
    operator.cluster.create({**first_form(**spec), "metadata": metadata})
    return RunningJob(operator, name)


def test_a_scrape_needs_a_token_with_the_right_to_get_metrics(
    cluster: Cluster, operator: Metered, prometheus: str
) -> None:
    scrape = operator.metrics.get
    assert scrape() == (401, "The token of a service account is required.\n")
    assert scrape("nonsense")[0] == 401
    assert scrape(token(cluster, "prometheus", "gc-proxy"))[0] == 401  # a token for another server
    cluster.create_account("late")
    late = token(cluster, "late", API_AUDIENCE)
    assert scrape(late)[0] == 403
    assert scrape(prometheus)[0] == 200
    assert scrape(prometheus, path="/other")[0] == 404
    role = f"--clusterrole={cluster.namespace}-metrics-reader"
    name = f"{cluster.namespace}-late"
    cluster.kubectl("create", "clusterrolebinding", name, role, f"--serviceaccount={cluster.namespace}:late")
    try:
        until(lambda: scrape(late)[0] == 200)  # the denial is kept for 5 s
    finally:
        cluster.kubectl("delete", "clusterrolebinding", name)


def test_reviews_are_kept_for_a_short_time(operator: Metered, prometheus: str) -> None:
    name = "ipu_operator_api_requests_total 201 POST"
    first = operator.metrics.samples(prometheus)[name]
    for _ in range(20):
        last = operator.metrics.samples(prometheus)[name]
    assert last - first < 20


def test_figures_of_a_job(operator: Metered, prometheus: str) -> None:
    def samples() -> dict[str, float]:
        return operator.metrics.samples(prometheus)

    until(lambda: samples().get("ipu_operator_jobs running") == 0, SECONDS)  # the caches are complete
    job = submit(operator, restartPolicy={"type": "OnFailure", "backOffLimit": 1}, modelReplicas="32")
    job.wait("Running")
    until(lambda: samples()["ipu_operator_partitions active"] == 1, SECONDS, lambda: str(samples()))
    found = samples()
    assert found["ipu_operator_leader"] == 1
    assert found["ipu_operator_jobs running"] == 1
    assert found["ipu_operator_waiting_jobs"] == found["ipu_operator_oldest_wait_seconds"] == 0
    assert found["ipu_operator_reconcile_errors_total"] == operator.log.count("handler failed")
    assert found["ipu_operator_reconcile_duration_seconds_count"] > 3
    assert found["ipu_operator_api_requests_total 201 POST"] > 3
    waiting = submit(operator, "waiting")
    until(lambda: "Position 1" in waiting.status.get("lastMessage", ""), SECONDS)
    found = samples()
    assert (found["ipu_operator_waiting_jobs"], found["ipu_operator_jobs pending"]) == (1, 1)
    assert found["ipu_operator_proxy_failures_total NoCapacity"] >= 1
    until(lambda: samples()["ipu_operator_oldest_wait_seconds"] > found["ipu_operator_oldest_wait_seconds"] > 0)
    waiting.delete()
    job.end("job-launcher", 1)
    until(lambda: samples()["ipu_operator_job_restarts_total"] == 1, SECONDS)
    job.wait("Running")
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    until(lambda: samples()["ipu_operator_jobs succeeded"] == 1, SECONDS)
    found = samples()
    assert found["ipu_operator_jobs running"] == found["ipu_operator_waiting_jobs"] == 0
    assert found["ipu_operator_job_restarts_total"] == 1
    until(lambda: samples()["ipu_operator_queue_depth jobs"] == 0)


def test_openmetrics(operator: Metered, prometheus: str) -> None:
    status, text = operator.metrics.get(prometheus, OPENMETRICS)
    assert status == 200
    families = {each.name: each for each in openmetrics.text_string_to_metric_families(text)}
    assert families["ipu_operator_leader"].samples[0].value == 1
    assert families["process_cpu_seconds"].samples[0].value > 0


def test_a_standby_has_metrics_and_is_ready(operator: Metered, prometheus: str) -> None:
    job = submit(operator)
    job.wait("Running")
    standby = replace(operator, name="other", port=free_port(), process=None, metrics=Endpoint())
    standby.start(leads=False)
    try:
        until(lambda: standby.probe("/readyz") == (200, {"status": "ok"}), SECONDS)
        found = until(lambda: standby.metrics.reached(prometheus), SECONDS)  # each port has a server of its own
        assert found["ipu_operator_leader"] == 0
        assert not {name for name in found if name.startswith("ipu_operator_jobs ")}
        operator.kill()
        until(lambda: standby.metrics.samples(prometheus).get("ipu_operator_jobs running") == 1, SECONDS)
        found = standby.metrics.samples(prometheus)
        assert (found["ipu_operator_leader"], found["ipu_operator_job_restarts_total"]) == (1, 0)
    finally:
        standby.kill()


def test_a_mounted_certificate_is_verified(proxy: Proxy, tmp_path: Path, prometheus: str) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    write(folder, "metrics.example.org")
    endpoint = Endpoint()
    operator = Metered(proxy.cluster, proxy, options=("--metrics-certificates", str(folder)), metrics=endpoint)
    operator.start()
    try:
        assert endpoint.get(prometheus)[0] == 200
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        address = "127.0.0.1", endpoint.port
        with (
            socket.create_connection(address) as plain,
            context.wrap_socket(plain, server_hostname="metrics.example.org") as connection,
        ):
            assert connection.version() in ("TLSv1.2", "TLSv1.3")
    finally:
        operator.kill()


def test_unusable_certificates_are_one_sentence(proxy: Proxy, tmp_path: Path) -> None:
    operator = Metered(proxy.cluster, proxy, options=("--metrics-certificates", str(tmp_path / "missing")))
    with pytest.raises(AssertionError):
        operator.start()
    assert operator.log.splitlines()[-1].startswith("Error OPU614: Cannot use ")
    assert "Traceback" not in operator.log


def test_probes_of_a_leader(operator: Metered) -> None:
    until(lambda: operator.probe("/readyz") == (200, {"status": "ok"}), SECONDS)
    assert operator.probe("/healthz") == (200, {"status": "ok"})


def test_a_replica_without_the_api_server_is_alive_but_not_ready(proxy: Proxy, tmp_path: Path) -> None:
    configuration = yaml.safe_load(proxy.cluster.kubeconfig.read_text())
    configuration["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    unreachable = tmp_path / "unreachable.kubeconfig"
    unreachable.write_text(yaml.safe_dump(configuration))
    operator = Metered(proxy.cluster, proxy, options=("--kubeconfig", str(unreachable)))
    operator.start(leads=False)
    try:
        until(lambda: "cannot renew the lease" in operator.log)
        assert operator.probe("/healthz") == (200, {"status": "ok"})
        status, answer = operator.probe("/readyz")
        assert (status, answer["status"]) == (503, "failed")
        assert "This replica cannot lead." in answer["failures"]["replica"]
        assert operator.metrics.get("token")[0] == 503  # it cannot be checked
    finally:
        operator.kill()


def test_each_step_of_a_job_is_logged_as_json(operator: Metered) -> None:
    job = submit(operator, restartPolicy={"type": "OnFailure", "backOffLimit": 1})
    job.wait("Running")
    job.end("job-launcher", 1)
    until(lambda: job.status.get("restartCount") == 1, SECONDS)
    job.wait("Running")
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    job.delete()
    name = f"{operator.cluster.namespace}/job"

    def steps() -> list[str]:
        lines = [json.loads(line) for line in operator.log.splitlines()]  # every line is JSON
        assert all({"event", "level", "timestamp"} <= each.keys() for each in lines)
        found = [each["event"] for each in lines if each.get("job") == name]
        return [each for each in found if each != "API server requests to try again"]  # it may be late with a token

    until(lambda: "job removed" in steps(), SECONDS)
    assert steps() == [
        "IPUJobPending",
        "partition reserved",
        "PodsCreated",
        "IPUJobRunning",
        "IPUJobRestarting",
        "PodsCreated",
        "IPUJobRunning",
        "IPUJobSucceeded",
        "job removed",
    ]
