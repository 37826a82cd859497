# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that ``vipu-server`` and its commands have in common, each with one variable of the environment."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import click
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import DEFAULT_PORT

from openipu.vipu import tls

HOST = click.option(
    "--host", default="127.0.0.1", show_default=True, envvar="VIPU_SERVER_HOST", help="Address to listen on."
)
PORT = click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    envvar="VIPU_SERVER_PORT",
    help="Its port.",
)
DATABASE = click.option(
    "--database",
    default="vipu-server.db",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="VIPU_SERVER_DATABASE",
    help="Where all records are.",
)
SECURE = click.option("--secure", is_flag=True, envvar="VIPU_SERVER_SECURE", help="Mutual TLS, users and access keys.")
CERTS = click.option(
    "--certs",
    default="vipu-certs",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    envvar="VIPU_SERVER_CERTS",
    help="Directory with the certificates of --tls-init.",
)
NAMES = click.option(
    "--tls-san",
    "names",
    multiple=True,
    envvar="VIPU_SERVER_TLS_SAN",
    help="Another name or address of this server in its certificate.",
)
DAYS = click.option(
    "--tls-days",
    default=tls.VALIDITY.days,
    show_default=True,
    type=click.IntRange(min=1),
    envvar="VIPU_SERVER_TLS_DAYS",
    help="How long new certificates are valid.",
)


def everywhere(host: str) -> bool:
    """Whether a host to listen on is the wildcard address, which nobody can connect to from elsewhere."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def certificate_names(host: str, names: tuple[str, ...]) -> list[str]:
    """What a certificate of this server is for: where it listens, this machine, and what was named."""
    own = [] if everywhere(host) else [host]
    return list(dict.fromkeys([*own, "localhost", "127.0.0.1", "::1", *names]))
