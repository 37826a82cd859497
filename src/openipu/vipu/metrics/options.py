# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of programs that tell metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.vipu.metrics.exporter import PATH, PORT, Listen
from openipu.vipu.metrics.https import Https, HttpsError

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address of the metrics."),
    click.option(
        "--metrics-port",
        default=0,
        show_default=True,
        type=click.IntRange(0, 65535),
        help=f"Tell metrics at http://ADDRESS:PORT{PATH}, customarily {PORT}; 0: nowhere.",
    ),
    click.option("--metrics-tls-certificate", type=_FILE, help="Certificate of the metrics, PEM: https, not http."),
    click.option("--metrics-tls-key", type=_FILE, help="Its private key, PEM."),
    click.option(
        "--metrics-tls-ca", type=_FILE, help="Authority of those who may fetch metrics, PEM; none: everybody."
    ),
)


def metrics_options(command: _Command) -> _Command:
    """Give a program these options; their values, which begin with ``metrics_``, are for ``wanted``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def wanted(
    metrics_host: str,
    metrics_port: int,
    metrics_tls_certificate: Path | None,
    metrics_tls_key: Path | None,
    metrics_tls_ca: Path | None,
) -> Listen | None:
    """Where to tell metrics, None for nowhere. Raises ClickException."""
    certificate, key, ca = metrics_tls_certificate, metrics_tls_key, metrics_tls_ca
    if bool(certificate) != bool(key) or (ca and not certificate):
        raise click.ClickException(
            "--metrics-tls-certificate and --metrics-tls-key belong together, and --metrics-tls-ca needs both."
        )
    if not metrics_port:
        return None
    try:
        tls = Https(certificate, key, ca) if certificate and key else None
    except HttpsError as error:
        raise click.ClickException(str(error)) from None
    return Listen(metrics_host, metrics_port, tls)
