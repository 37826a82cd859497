# SPDX-License-Identifier: GPL-3.0-or-later
"""Endpoint of metrics: responses, TLS and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import structlog
from prometheus_client.metrics_core import GaugeMetricFamily

from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.metrics.exporter import Exporter
from openipu.vipu.metrics.https import Https, HttpsError
from openipu.vipu.metrics.options import metrics_address
from openipu.vipu.tls import issue
from tests.integration.scraping import Scrape, get

HOST = "127.84.0.1"


class Example:
    """Collector that waits or fails on request."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.requested = threading.Semaphore(0)
        self.error: Exception | None = None

    def collect(self) -> Iterator[Any]:
        self.requested.release()
        assert self.go.wait(20)
        if self.error:
            raise self.error
        yield GaugeMetricFamily("vipu_example", "An example.", 42)


@pytest.fixture
def example() -> Example:
    return Example()


@pytest.fixture
def start() -> Iterator[Callable[..., str]]:
    with contextlib.ExitStack() as stack:

        def begin(collector: Any, https: Https | None = None, host: str = HOST) -> str:
            exporter = Exporter(MetricsAddress(host, 0, https), [collector])
            exporter.bind()
            exporter.start()
            stack.callback(exporter.stop)
            return exporter.listen.url

        yield begin


def test_metrics_are_at_one_path_in_the_requested_format(start: Callable[..., str], example: Example) -> None:
    url = start(example)
    assert Scrape(url).get("vipu_example") == 42
    assert Scrape(url).get("process_open_fds")
    status, kind, text = get(url, accept="text/plain")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "vipu_example 42.0\n" in text
    assert get(url + "/more") == (404, "text/plain; charset=utf-8", "Metrics are at /metrics.\n")
    assert get(url.removesuffix("/metrics") + "/")[0] == 404


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/plain;version=x", "text/plain"),
        ("application/openmetrics-text", "application/openmetrics-text"),
        ("application/openmetrics-text; version=abc", "application/openmetrics-text"),
        ("application/openmetrics-text;version=99.0;escaping=allow-utf-8", "application/openmetrics-text"),
        ("text/html, application/openmetrics-text;q=0.5", "application/openmetrics-text"),
        ("text/plain, application/openmetrics-text;q=0.5", "text/plain"),
        (";;=,", "text/plain"),
    ],
)
def test_unusual_accept_headers(start: Callable[..., str], example: Example, accept: str, kind: str) -> None:
    status, content_type, text = get(start(example) + "?name[]=nothing", accept=accept)
    assert (status, content_type.split(";")[0]) == (200, kind)
    assert "vipu_example 42.0\n" in text


def test_responses_are_compressed_on_request(start: Callable[..., str], example: Example) -> None:
    url = start(example)
    connection = http.client.HTTPConnection(HOST, int(url.split(":")[2].split("/")[0]), timeout=10)
    connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    reply = connection.getresponse()
    assert reply.headers["Content-Encoding"] == "gzip"
    assert b"vipu_example 42.0" in gzip.decompress(reply.read())
    connection.request("POST", "/metrics", body=b"x")
    assert connection.getresponse().status == 405
    connection.close()


def test_ipv6(start: Callable[..., str], example: Example) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    url = start(example, host="::1")
    assert url.startswith("http://[::1]:")
    assert Scrape(url).get("vipu_example") == 42


def test_a_failing_collector_fails_only_its_scrape(
    start: Callable[..., str], example: Example, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_PROCESS", "hush-hush")
    url = start(example)
    example.error = RuntimeError("the disk is on fire")
    structlog.reset_defaults()  # like a program without configured logs
    status, _, text = get(url)
    assert (status, text) == (500, "Cannot collect metrics. Read the log.\n")
    output = "".join(capfd.readouterr())
    assert "the disk is on fire" in output
    assert "hush-hush" not in output
    example.error = None
    assert Scrape(url).get("vipu_example") == 42


def test_requests_run_in_parallel_up_to_a_limit(start: Callable[..., str], example: Example) -> None:
    url = start(example)
    example.go.clear()
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(get(url)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert example.requested.acquire(timeout=10)
    assert get(url)[0] == 503
    example.go.set()
    for thread in threads:
        thread.join(10)
    assert statuses == [200] * 8
    assert Scrape(url).get("vipu_example") == 42


def test_a_port_in_use_is_reported(example: Example) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="the port is in use") as rejected:
            Exporter(MetricsAddress(HOST, port), [example]).bind()
        assert f"{HOST}:{port}" in str(rejected.value)
        assert "--metrics-port" in str(rejected.value)
    for host in ("192.0.2.1", "no.such.host.invalid", "a" * 300):
        with pytest.raises(OSError, match="Cannot serve metrics on"):
            Exporter(MetricsAddress(host, 0), [example]).bind()


def test_the_port_is_free_again_after_the_end(example: Example) -> None:
    exporter = Exporter(MetricsAddress(HOST, 0), [example])
    port = exporter.bind().port
    exporter.stop()  # before start
    exporter = Exporter(MetricsAddress(HOST, port), [example])
    exporter.bind()
    exporter.start()
    assert Scrape(exporter.listen.url).get("vipu_example") == 42
    exporter.stop()
    exporter.stop()
    with pytest.raises(ConnectionRefusedError):
        get(exporter.listen.url)
    socket.create_server((HOST, port)).close()


def test_an_event_loop_serves_several_endpoints_and_is_not_blocked(example: Example) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        exporters = [Exporter(MetricsAddress(HOST, 0), [example]) for _ in range(3)]
        for exporter in exporters:
            exporter.bind()
            exporter.start_in(loop)
        example.go.clear()
        slow = loop.run_in_executor(None, get, exporters[0].listen.url)
        assert await loop.run_in_executor(None, example.requested.acquire, True, 10)
        silent = socket.create_connection((HOST, exporters[1].listen.port))  # sends nothing
        await asyncio.sleep(0)
        example.go.set()
        for exporter in exporters:
            scrape = await loop.run_in_executor(None, Scrape, exporter.listen.url)
            assert scrape.get("vipu_example") == 42
        assert (await slow)[0] == 200
        silent.close()
        for exporter in exporters:
            exporter.stop()
            with pytest.raises(ConnectionRefusedError):
                get(exporter.listen.url)

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics") / "certs"
    issue.create(folder, [HOST])
    return folder


def client(certs: Path, own: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certs / "client" / "ca.crt"))
    if own:
        context.load_cert_chain(certs / "client" / "client.crt", certs / "client" / "client.key")
    return context


def test_https(start: Callable[..., str], example: Example, certs: Path) -> None:
    url = start(example, Https(certs / "server" / "server.crt", certs / "server" / "server.key", None))
    assert url.startswith("https://")
    assert Scrape(url, client(certs)).get("vipu_example") == 42
    with pytest.raises(ssl.SSLCertVerificationError):
        get(url)
    with pytest.raises((OSError, http.client.HTTPException)):
        get(url.replace("https", "http"))
    assert Scrape(url, client(certs)).get("vipu_example") == 42


def test_https_with_client_certificates(start: Callable[..., str], example: Example, certs: Path) -> None:
    server = certs / "server"
    url = start(example, Https(server / "server.crt", server / "server.key", server / "ca.crt"))
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        get(url, tls=client(certs))
    assert Scrape(url, client(certs, own=True)).get("vipu_example") == 42


def test_replaced_certificates_apply_to_the_next_connection(
    start: Callable[..., str], example: Example, certs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    issue.create(other, [HOST])
    own = tmp_path / "own"
    shutil.copytree(certs / "server", own)
    url = start(example, Https(own / "server.crt", own / "server.key", None))
    assert Scrape(url, client(certs)).get("vipu_example") == 42
    for name, more in (("server.key", None), ("server.crt", other)):  # a key without its certificate is not loaded
        (tmp_path / name).write_bytes((other / "server" / name).read_bytes())
        (tmp_path / name).rename(own / name)
        assert Scrape(url, client(more or certs)).get("vipu_example") == 42
    with pytest.raises(ssl.SSLCertVerificationError):
        get(url, tls=client(certs))


def test_invalid_files(certs: Path, tmp_path: Path) -> None:
    server, other = certs / "server", certs / "client"
    invalid = tmp_path / "rubbish.pem"
    invalid.write_text("rubbish")
    for certificate, key, ca, message in (
        (tmp_path / "none.crt", server / "server.key", None, "No such file or directory"),
        (invalid, server / "server.key", None, "it is not PEM|no start line"),
        (server / "server.crt", other / "client.key", None, "key values mismatch"),
        (server / "server.crt", server / "server.key", tmp_path / "none.crt", "No such file or directory"),
        (
            server / "server.crt",
            server / "server.key",
            invalid,
            "no certificate or crl found|it is not PEM|no start line",
        ),
    ):
        with pytest.raises(HttpsError, match=message) as rejected:
            Https(certificate, key, ca)
        assert re.fullmatch(r"Cannot use the (certificate|authority) '.*\.", str(rejected.value))


def test_options(certs: Path) -> None:
    server = certs / "server"
    assert metrics_address("127.0.0.1", 0, None, None, None) is None
    assert metrics_address("127.0.0.1", 2112, None, None, None) == MetricsAddress("127.0.0.1", 2112)
    given = metrics_address("127.0.0.1", 2112, server / "server.crt", server / "server.key", server / "ca.crt")
    assert given and given.tls and given.tls.context().verify_mode is ssl.CERT_REQUIRED
    for files in ((server / "server.crt", None, None), (None, None, server / "ca.crt")):
        with pytest.raises(click.ClickException, match="--metrics-tls-key together"):
            metrics_address("127.0.0.1", 2112, *files)
