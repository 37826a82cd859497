# SPDX-License-Identifier: GPL-3.0-or-later
"""Command-line options of programs that export metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.process.failures import ProgramError, program_error
from openipu.vipu.metrics.access import Token, TokenError
from openipu.vipu.metrics.address import PATH, PORT, MetricsAddress
from openipu.vipu.metrics.https import Https, HttpsError

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address of the metrics endpoint."),
    click.option(
        "--metrics-port",
        default=0,
        show_default=True,
        type=click.IntRange(0, 65535),
        help=f"Port of the metrics at http://ADDRESS:PORT{PATH}, usually {PORT}. 0 disables metrics.",
    ),
    click.option(
        "--metrics-tls-certificate", type=_FILE, help="Certificate of the metrics endpoint, PEM. Enables https."
    ),
    click.option("--metrics-tls-key", type=_FILE, help="Private key of that certificate, PEM."),
    click.option(
        "--metrics-tls-ca", type=_FILE, help="Authority of client certificates, PEM. Omit to allow all clients."
    ),
    click.option(
        "--metrics-token-file",
        type=_FILE,
        help="File with a bearer token that clients must send, of mode 0600. Omit to allow all clients.",
    ),
    click.option(
        "--metrics-name",
        multiple=True,
        help="Name of this host in URLs of clients. Its host name, localhost and IP addresses are always allowed. "
        "May be repeated.",
    ),
)


def metrics_options(command: _Command) -> _Command:
    """Add the options to a command; pass their values, ``metrics_*``, to ``metrics_address``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def metrics_address(
    metrics_host: str,
    metrics_port: int,
    metrics_tls_certificate: Path | None,
    metrics_tls_key: Path | None,
    metrics_tls_ca: Path | None,
    metrics_token_file: Path | None = None,
    metrics_name: tuple[str, ...] = (),
) -> MetricsAddress | None:
    """Return the address of the metrics endpoint, None when metrics are disabled. Raises ProgramError."""
    certificate, key, ca = metrics_tls_certificate, metrics_tls_key, metrics_tls_ca
    if bool(certificate) != bool(key) or (ca and not certificate):
        raise ProgramError(
            "Cannot serve metrics: the TLS options are incomplete. Give --metrics-tls-certificate and "
            "--metrics-tls-key together. --metrics-tls-ca needs both."
        )
    if not metrics_port:
        return None
    try:
        tls = Https(certificate, key, ca) if certificate and key else None
        token = Token(metrics_token_file) if metrics_token_file else None
    except (HttpsError, TokenError) as error:
        raise program_error(error) from None
    return MetricsAddress(metrics_host, metrics_port, tls, token, metrics_name)
