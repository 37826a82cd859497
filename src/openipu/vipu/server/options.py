# SPDX-License-Identifier: GPL-3.0-or-later
"""Options shared by ``vipu-server`` and its commands, each with an environment variable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from openipu.process.failures import ProgramError
from openipu.shared.vipu.addresses import is_loopback, is_wildcard
from openipu.shared.vipu.ports import CONTROLLER_PORT
from openipu.vipu.tls import issue, load

if TYPE_CHECKING:
    from openipu.vipu.storage.etcd.keys import Location

HOST = click.option(
    "--host", default="127.0.0.1", show_default=True, envvar="VIPU_SERVER_HOST", help="Address of the controller."
)
HOST_TO_CHECK = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    envvar="VIPU_SERVER_HOST",
    help="Address to query, as in vipu-server --host. A wildcard address, such as 0.0.0.0, queries localhost.",
)
PORT = click.option(
    "--port",
    default=CONTROLLER_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    envvar="VIPU_SERVER_PORT",
    help="Port of the controller.",
)
DATABASE = click.option(
    "--database",
    default="vipu-server.db",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="VIPU_SERVER_DATABASE",
    help="Database file.",
)
SECURE = click.option(
    "--secure", is_flag=True, envvar="VIPU_SERVER_SECURE", help="Use mutual TLS, users and access keys."
)
CERTS = click.option(
    "--certs",
    default="vipu-certs",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    envvar="VIPU_SERVER_CERTS",
    help="Directory of the certificates of --tls-init.",
)
NAMES = click.option(
    "--tls-san",
    "names",
    multiple=True,
    envvar="VIPU_SERVER_TLS_SAN",
    help="Further name or address of this server in its certificate. May be repeated.",
)
MAX_DAYS = 36_500  # a century; dates end in the year 9999
DAYS = click.option(
    "--tls-days",
    default=issue.VALIDITY.days,
    show_default=True,
    type=click.IntRange(1, MAX_DAYS),
    envvar="VIPU_SERVER_TLS_DAYS",
    help="Validity of new certificates in days.",
)


_AGENT_TLS = (
    ("agent_tls_ca", "CA certificate of the agents, PEM."),
    ("agent_tls_certificate", "Client certificate for calls to agents, PEM."),
    ("agent_tls_key", "Private key of --agent-tls-certificate, PEM."),
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def agent_tls(command: _Command) -> _Command:
    """Add the options of the files for TLS with agents."""
    return _files(command, _AGENT_TLS)


def _files(command: _Command, files: Sequence[tuple[str, str]]) -> _Command:
    """Add options for files. ``files``: name and help text of each."""
    for name, help in reversed(files):
        command = click.option(
            f"--{name.replace('_', '-')}",
            type=click.Path(dir_okay=False, path_type=Path),
            envvar=f"VIPU_SERVER_{name.upper()}",
            help=help,
        )(command)
    return command


_STORE_FILES = (
    ("store_tls_ca", "CA certificate of etcd, PEM. Enables TLS."),
    ("store_tls_certificate", "Client certificate for etcd, PEM."),
    ("store_tls_key", "Private key of --store-tls-certificate, PEM."),
    ("store_password_file", "File with the password of --store-user."),
)


def store(command: _Command) -> _Command:
    """Add the options of the store in etcd. The command receives ``location``, None for the database."""

    @functools.wraps(command)
    def without_exposure(*arguments: Any, insecure_network: bool, **options: Any) -> Any:
        return command(*arguments, **options)

    without: Any = without_exposure
    option = click.option(
        "--insecure-network", is_flag=True, help="Allow --store-user without TLS to addresses other than loopback."
    )
    return server_store(option(without))  # type: ignore[no-any-return]


def server_store(command: _Command) -> _Command:
    """Add the options of ``store`` to a command with ``insecure_network``. A group only uses them without a command."""

    @functools.wraps(command)
    def with_location(*arguments: Any, insecure_network: bool, **options: Any) -> Any:
        url, user, files = options.pop("store"), options.pop("store_user"), [options.pop(n) for n, _ in _STORE_FILES]
        used = click.get_current_context().invoked_subcommand is None
        location = _location(url, user, *files, insecure_network=insecure_network) if used else None
        return command(*arguments, location=location, insecure_network=insecure_network, **options)

    decorated: Any = _files(with_location, _STORE_FILES)
    decorated = click.option(
        "--store-user", default="", envvar="VIPU_SERVER_STORE_USER", help="User of etcd. Omit for no authentication."
    )(decorated)
    return click.option(  # type: ignore[no-any-return]
        "--store",
        metavar="URL",
        envvar="VIPU_SERVER_STORE",
        help="Store of the records, as etcd://HOST:PORT,HOST:PORT,…[/PREFIX]. Omit to use the file of --database.",
    )(decorated)


def _location(
    url: str | None,
    user: str,
    ca: Path | None,
    certificate: Path | None,
    key: Path | None,
    password: Path | None,
    *,
    insecure_network: bool,
) -> Location | None:
    """Return the store in etcd. Raises UsageError, StoreError and TlsError."""
    if url is None:
        return None
    from openipu.vipu.storage.etcd import keys

    if not url.startswith(keys.SCHEME):
        raise click.UsageError(f"Cannot use --store {url.rpartition('@')[2]!r}: it must begin with {keys.SCHEME}.")
    if bool(certificate) != bool(key) or (certificate and not ca):
        raise click.UsageError("--store-tls-certificate and --store-tls-key belong together, and need --store-tls-ca.")
    if bool(user) != bool(password):
        raise click.UsageError("--store-user and --store-password-file belong together.")
    try:
        secret = load.read(password).decode().strip() if password else ""
    except UnicodeDecodeError:
        raise ProgramError(
            f"Cannot use --store-password-file {str(password)!r}: it is not UTF-8 text. Save it as UTF-8."
        ) from None
    location = keys.parse(url, keys.Tls(ca, certificate, key) if ca else None, user, secret)
    hosts = [endpoint.rpartition(":")[0] for endpoint in location.endpoints]
    if user and not (ca or insecure_network or all(map(is_loopback, hosts))):
        raise click.UsageError(
            "--store-user requires TLS (--store-tls-ca), because others on the network could read the password. "
            "--insecure-network allows it without."
        )
    return location


def check_positions(context: click.Context, common: Collection[str]) -> None:
    """Reject options of the controller before a command, which would not apply to it. Raises UsageError.

    ``common``: names of the parameters that apply to commands too. Environment variables are for both, so they are
    not rejected.
    """
    name = context.invoked_subcommand
    assert name is not None and isinstance(context.command, click.Group)
    command = context.command.get_command(context, name)
    own = {option for parameter in (command.params if command else ()) for option in parameter.opts}
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        if given and parameter.name not in common:
            option = max(parameter.opts, key=len)
            remedy = f"Set it after the command: 'vipu-server {name} {option} …'" if option in own else "Omit it"
            raise click.UsageError(f"Option {option} before '{name}' does not apply to this command. {remedy}.")


def certificate_names(host: str, names: tuple[str, ...], admin_host: str | None = None) -> list[str]:
    """Return the names in a certificate of this server: its addresses, the loopback names, and ``names``."""
    own = [address for address in (host, admin_host) if address and not is_wildcard(address)]
    return list(dict.fromkeys([*own, "localhost", "127.0.0.1", "::1", *names]))


def check_exposure(hosts: Iterable[str], insecure_network: bool) -> None:
    """Reject addresses other than loopback without --secure, unless --insecure-network allows them."""
    for host in hosts:
        if not is_loopback(host) and not insecure_network:
            raise ProgramError(
                f"Cannot listen on {host}: without --secure only loopback addresses are allowed. Use --secure, or "
                "--insecure-network if every host of that network may control the POD."
            )
