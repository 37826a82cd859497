# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the webhooks: several replicas, renewal during requests, and recovery."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import PODS, ApiError, open_client
from openipu.kubernetes.tls import certificates
from openipu.kubernetes.tls.certificates import Issued, KeyPair
from tests.integration.vipu_servers import InProcess
from tests.kubernetes import webhooks
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import SECONDS, Operator
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.kubernetes.webhooks import WebhookSetup, plain_pod
from tests.ports import free_port
from tests.waiting import until

ENOUGH = 20  # requests with each certificate


@pytest.fixture
def setup(cluster: Cluster) -> Iterator[WebhookSetup]:
    """Yield webhook configurations for two replicas."""
    made = webhooks.make_setup(cluster, ports=[free_port(), free_port()])
    yield made
    made.remove()


@pytest.fixture
def operator(
    setup: WebhookSetup, cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]
) -> Iterator[Operator]:
    """Yield the first replica, which is not started. Webhooks need no proxy."""
    cluster.create_account(OPERATOR)
    made = Operator(cluster, Proxy(cluster, tmp_path, vipu()), setup.options(0))
    yield made
    made.kill()


@pytest.fixture
def second(operator: Operator, setup: WebhookSetup) -> Iterator[Operator]:
    """Yield the second replica, which is not started."""
    made = replace(operator, name="second", port=free_port(), options=setup.options(1), process=None)
    yield made
    made.kill()


def hosts(cluster: Cluster) -> list[str]:
    """Return the names of the Service, and the address of the test."""
    service = f"ipu-operator-webhook-svc.{cluster.namespace}"
    return [f"{service}.svc", f"{service}.svc.cluster.local", service, "127.0.0.1"]


def store(cluster: Cluster, issued: Issued) -> None:
    """Write the Secret of the webhooks."""
    data = {"ca": issued.authority, "cert": issued.pair.certificate, "key": issued.pair.key}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    metadata = {"name": "admission", "namespace": cluster.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
    cluster.kubectl("replace", "--filename=-", stdin=json.dumps(secret))


def stored(cluster: Cluster) -> dict[str, bytes]:
    """Return the content of the Secret."""
    data = cluster.get("secret", "admission")["data"]
    return {name: base64.b64decode(text) for name, text in data.items()}


def review(setup: WebhookSetup) -> bytes:
    """Return a review of a pod with three IPUs, which is rejected."""
    pod = plain_pod(setup.users, "pod", "3")
    request = {"uid": "1", "operation": "CREATE", "namespace": setup.users.namespace, "object": pod}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def test_two_replicas_agree_on_one_authority(setup: WebhookSetup, operator: Operator, second: Operator) -> None:
    setup.install()
    starts = [threading.Thread(target=each.start, kwargs={"leads": False}) for each in (operator, second)]
    for each in starts:
        each.start()
    for each in starts:
        each.join()
    until(lambda: all("certificate in use" in each.log for each in (operator, second)), SECONDS)
    authorities = until(lambda: setup.bundle() == stored(setup.cluster)["ca"] and setup.bundle(), SECONDS)
    assert authorities.count(b"BEGIN CERTIFICATE") == 1
    replies = [webhooks.post(port, "/mutate-v1-pod", review(setup), authorities) for port in setup.ports]
    assert replies[0] == replies[1]
    assert replies[0].body["response"]["allowed"] is False
    setup.wait()  # the API server calls both, also the one that does not lead
    operator.kill()
    until(lambda: "leading" in second.log, SECONDS)


def test_a_renewal_fails_no_request(setup: WebhookSetup, operator: Operator, second: Operator) -> None:
    setup.install()
    for number, each in enumerate((operator, second)):
        webhooks.start(each, setup, leads=not number)
    setup.wait()
    margins = iter((8, 24, 72))  # busy machines need more time
    until(lambda: not is_due(setup, next(margins)), SECONDS)
    setup.wait()
    requests = Requests(setup)
    requests.start()
    try:
        until(lambda: requests.failures or requests.saw_both(), 60, lambda: repr(requests.serials))
        done = requests.count + ENOUGH
        until(lambda: requests.failures or requests.count >= done, 60)
    finally:
        requests.stop()
    assert requests.failures == []
    assert stored(setup.cluster).keys() == {"ca", "cert", "key"}
    assert setup.bundle().count(b"BEGIN CERTIFICATE") == 2  # the former CA stays until the next renewal
    for each in (operator, second):  # the API server has to make new connections
        each.kill()
        each.start(leads=False)
    until(lambda: requests.serials == {port: requests.serials[port] | {serial(setup, port)} for port in setup.ports})
    setup.wait()


def is_due(setup: WebhookSetup, seconds: float) -> bool:
    """Store a certificate that is due in some seconds, for both replicas. Return whether it is due already."""
    # Five minutes of its lifetime are in the past, and it is due when a third of its lifetime is left.
    lifetime = datetime.timedelta(seconds=(3 * seconds + 300) / 2)
    issued = certificates.issue(hosts(setup.cluster), lifetime)
    store(setup.cluster, issued)
    until(lambda: setup.bundle() == issued.authority, SECONDS)
    until(lambda: all(serial(setup, port, issued.authority) for port in setup.ports), SECONDS)
    return certificates.is_due(issued.pair, datetime.datetime.now(datetime.UTC))


def serial(setup: WebhookSetup, port: int, authorities: bytes = b"") -> str | None:
    """Return the serial number of the certificate of a replica, None if clients reject it."""
    try:
        return webhooks.post(port, "/mutate-v1-pod", review(setup), authorities or setup.bundle()).serial
    except OSError:
        return None


class Requests:
    """Requests without a pause: of the API server, and with a new connection each to all replicas."""

    def __init__(self, setup: WebhookSetup) -> None:
        self._setup = setup
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._direct, self._through_the_api_server)]
        self.count = 0
        self.failures: list[str] = []
        self.serials: dict[int, set[str]] = {port: set() for port in setup.ports}

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def saw_both(self) -> bool:
        """Return whether all replicas have used two certificates."""
        return all(len(each) == 2 for each in self.serials.values())

    def _direct(self) -> None:
        body = review(self._setup)
        while not self._stop.is_set():
            authorities = self._setup.bundle()
            for port in self._setup.ports:
                try:
                    reply = webhooks.post(port, "/mutate-v1-pod", body, authorities)
                except OSError as error:
                    self.failures.append(str(error))
                else:
                    self.serials[port].add(reply.serial)

    def _through_the_api_server(self) -> None:
        async def create() -> None:
            async with await open_client(str(self._setup.users.kubeconfig)) as client:
                while not self._stop.is_set():
                    try:
                        await client.create(PODS, plain_pod(self._setup.users, "pod", "4"), dry_run=True)
                        self.count += 1
                    except ApiError as error:
                        self.failures.append(str(error))

        asyncio.run(create())


def test_a_deleted_secret_is_stored_again(setup: WebhookSetup, operator: Operator) -> None:
    setup.ports.pop()
    setup.install()
    webhooks.start(operator, setup)
    before = stored(setup.cluster)
    setup.cluster.kubectl("delete", "secret", "admission")
    until(lambda: setup.cluster.run("get", "secret", "admission").returncode == 0, SECONDS)
    assert stored(setup.cluster) == before
    setup.wait()


@pytest.mark.parametrize("content", [{}, {"ca": "x", "cert": "x", "key": "x"}], ids=["empty", "damaged"])
def test_an_unusable_secret_is_replaced(setup: WebhookSetup, operator: Operator, content: dict[str, str]) -> None:
    setup.ports.pop()
    metadata = {"name": "admission", "namespace": setup.cluster.namespace}
    setup.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": content})
    setup.install()
    webhooks.start(operator, setup)
    setup.wait()


def test_a_changed_configuration_is_corrected(setup: WebhookSetup, operator: Operator) -> None:
    setup.ports.pop()
    setup.install()
    webhooks.start(operator, setup)
    setup.wait()
    setup.remove()
    setup.install()  # without the CA, as after a new installation of the chart
    setup.bundle()
    until(lambda: setup.bundle() == stored(setup.cluster)["ca"], SECONDS)
    setup.wait()


def test_mounted_files_are_read_again(setup: WebhookSetup, operator: Operator, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()

    def mount(pair: KeyPair) -> None:
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)

    def served(authorities: bytes) -> str | None:
        return serial(setup, setup.ports[0], authorities)

    first, following = (certificates.issue(["127.0.0.1"]) for _ in range(2))
    mount(first.pair)
    operator.options = (*setup.options(0), "--webhook-certificates", str(folder))
    operator.start()
    until(lambda: served(first.authority))
    (folder / "tls.key").write_bytes(following.pair.key)  # while they are being replaced, they do not match
    until(lambda: "tls.key does not belong to tls.crt" in operator.log)
    assert served(first.authority)
    mount(following.pair)
    until(lambda: served(following.authority))
    assert setup.cluster.run("get", "secret", "admission").returncode == 1  # cert-manager has its own


def test_the_key_is_in_no_log(setup: WebhookSetup, operator: Operator) -> None:
    setup.ports.pop()
    setup.install()
    operator.options += ("--log-level", "debug")
    webhooks.start(operator, setup)
    key = stored(setup.cluster)["key"].decode()
    assert key.startswith("-----BEGIN PRIVATE KEY-----")
    assert not any(line in operator.log for line in key.splitlines() if line)


def test_readiness_waits_for_the_certificate(setup: WebhookSetup, operator: Operator) -> None:
    setup.ports.pop()
    operator.start()
    until(lambda: "webhook configuration is missing" in operator.log, SECONDS)
    assert ready(operator)[0] == 503
    setup.install()
    until(lambda: ready(operator) == (200, {"status": "ok"}), SECONDS)


def ready(operator: Operator) -> tuple[int, Any]:
    probe = replace(operator.proxy, port=operator.port)
    return probe.call("GET", "/readyz")


def test_failure_policy_fail_recovers_from_zero_replicas(setup: WebhookSetup, operator: Operator) -> None:
    setup.ports.pop()
    setup.install()

    def created(where: Cluster, name: str, **labels: str) -> bool:
        pod = plain_pod(where, name)
        pod["metadata"]["labels"] = labels
        return where.run("create", "--filename=-", stdin=json.dumps(pod)).returncode == 0

    until(lambda: not created(setup.users, "a"))  # the API server has the webhooks
    assert not created(setup.cluster, "a")
    assert created(setup.cluster, "operator", **{webhooks.RELEASE_LABEL: "ipu-operator"})
    webhooks.start(operator, setup)
    until(lambda: created(setup.users, "b"), SECONDS)
    assert created(setup.cluster, "b")
    operator.kill()
    until(lambda: not created(setup.users, "c"))
    assert created(setup.cluster, "c")  # without the operator, because the namespace has its label now
    operator.start()
    until(lambda: created(setup.users, "d"), SECONDS)
