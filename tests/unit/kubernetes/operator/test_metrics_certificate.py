# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate of the metrics endpoint: in memory, mounted, replaced and invalid."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509
from structlog.testing import CapturingLogger

from openipu.kubernetes.operator.metrics_certificate import CertificateError, MetricsCertificate
from openipu.kubernetes.tls import certificates


def write(folder: Path, name: str) -> None:
    """Replace the files of a certificate, as kubelet does."""
    issued = certificates.issue([name])
    files = {"ca.crt": issued.authority, "tls.crt": issued.pair.certificate, "tls.key": issued.pair.key}
    for file, content in files.items():
        (folder / f"{file}.new").write_bytes(content)
        (folder / f"{file}.new").rename(folder / file)


def serve(certificate: MetricsCertificate, body: Callable[[Callable[[], Awaitable[str]]], Awaitable[None]]) -> None:
    """Run a server with the certificate. ``body`` receives a function that returns the name in its certificate."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificate.context)
        port = server.sockets[0].getsockname()[1]

        async def name() -> str:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            found = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(True))
            writer.close()
            return found.subject.rfc4514_string().removeprefix("CN=")

        following = asyncio.create_task(certificate.run())
        try:
            async with asyncio.timeout(20):
                await body(name)
        finally:
            following.cancel()
            server.close()

    asyncio.run(run())


def test_without_files_the_certificate_is_self_signed() -> None:
    async def body(name: Callable[[], Awaitable[str]]) -> None:
        assert await name() == "host-1"

    serve(MetricsCertificate(None, "host-1"), body)


def test_replaced_files_apply_to_the_next_connection(tmp_path: Path) -> None:
    write(tmp_path, "first")

    async def body(name: Callable[[], Awaitable[str]]) -> None:
        assert await name() == "first"
        write(tmp_path, "second")
        while await name() != "second":
            await asyncio.sleep(0.005)

    serve(MetricsCertificate(tmp_path, "host-1", 0.01), body)


def test_invalid_new_files_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "first")
    log = CapturingLogger()
    monkeypatch.setattr("openipu.kubernetes.tls.mounted._log", log)

    async def body(name: Callable[[], Awaitable[str]]) -> None:
        (tmp_path / "tls.key").write_text("nonsense")
        while not any(each.args[0].startswith("cannot use the certificate") for each in log.calls):
            await asyncio.sleep(0.005)
        assert await name() == "first"

    serve(MetricsCertificate(tmp_path, "host-1", 0.01), body)


@pytest.mark.parametrize("text", [None, "nonsense"])
def test_unusable_files_are_one_sentence(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        for name in ("tls.crt", "tls.key"):
            (tmp_path / name).write_text(text)
    with pytest.raises(CertificateError, match=r"^Cannot use tls\.crt and tls\.key of .+ for metrics: .+\. Mount"):
        MetricsCertificate(tmp_path, "host-1")
