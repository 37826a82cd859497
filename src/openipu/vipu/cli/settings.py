# SPDX-License-Identifier: GPL-3.0-or-later
"""Global flags of all commands, and the sources of their values.

Sources in order of precedence: flag, environment variable (``VIPU_CLI_<FLAG>``), file of ``--config``,
``/etc/vipu/vipu-cli.hcl``, default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openipu.process.arguments import is_text
from openipu.shared.vipu.ports import CONTROLLER_PORT
from openipu.vipu.cli import config_file

if TYPE_CHECKING:  # its import loads gRPC, which --help and --version do not need
    from openipu.shared.vipu.client import Connection

ENVIRONMENT = "VIPU_CLI_"
_PORT = click.IntRange(1, 65535)
_FILE = click.Path(dir_okay=False)
# name, short flag, type, help. Configuration files may set the flags of the connection too.
_CONNECTION: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
    ("api-host", ("-H",), str, "Host of the controller, or several as HOST:PORT,HOST:PORT,….  [default: localhost]"),
    ("api-port", (), _PORT, f"Port of the controller.  [default: {CONTROLLER_PORT}]"),
    ("api-user-id", (), str, "User id, for a secure controller."),
    ("api-access-key", (), str, "Access key of the user. Prefer the environment or a file."),
    ("ca-path", (), _FILE, "CA certificate of the controller, PEM. Enables TLS."),
    ("client-cert", (), _FILE, "Client certificate, PEM. Enables TLS."),
    ("client-key", (), _FILE, "Private key of the client certificate, PEM."),
    ("metadata-user-id-key", (), str, "Metadata key of the user id, as set in the controller."),
    ("metadata-access-key-key", (), str, "Metadata key of the access key, as set in the controller."),
    ("insecure-network", (), click.BOOL, "Send the access key without TLS to addresses other than loopback."),
)
# Flag -> field of Connection, when that is not its name without ``api``.
_FIELDS = {"metadata-user-id-key": "user_id_metadata", "metadata-access-key-key": "access_key_metadata"}
_OTHER: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
    ("config", (), _FILE, "Configuration file, HCL. Overrides /etc/vipu/vipu-cli.hcl."),
    ("output", ("-o",), click.Choice(["text", "json"]), "Output format.  [default: text]"),
)
NAMES = frozenset(name.replace("-", "_") for name, *_ in (*_CONNECTION, *_OTHER))


def root_options() -> list[click.Parameter]:
    """Return the flags before the verb, which environment variables can set."""
    return [
        _option(name, short, type, help=help, envvar=ENVIRONMENT + _name(name).upper())
        for name, short, type, help in (*_CONNECTION, *_OTHER)
    ]


def leaf_options() -> list[click.Parameter]:
    """Return the same flags after the noun, which take precedence. Only --output is in the help."""
    return [
        _option(name, short, type, help=help, hidden=name != "output")
        for name, short, type, help in (*_CONNECTION, *_OTHER)
    ]


def _option(name: str, short: tuple[str, ...], type: Any, **more: Any) -> click.Option:
    # Without a default, an omitted flag leaves the choice to the next source.
    flag: dict[str, Any] = {"is_flag": True, "default": None} if type is click.BOOL else {}
    return click.Option([f"--{name}", *short], type=type, **flag, **more)


class Settings:
    """Values of the global flags."""

    def __init__(self, ctx: click.Context) -> None:
        """Read command line and environment. Files are read when a connection is needed."""
        chain: click.Context | None = ctx
        self._given: dict[str, Any] = {}
        while chain is not None:
            for name, *_ in (*_CONNECTION, *_OTHER):
                if self._given.get(name) is None:
                    self._given[name] = chain.params.get(_name(name))
            chain = chain.parent

    @property
    def json(self) -> bool:
        """Return whether the output is JSON."""
        return bool(self._given["output"] == "json")

    def connection(self, **more: Any) -> Connection:
        """Return address and credentials of the connection. Raises ConfigError."""
        return _connection(list(self._sources()), **more)

    def _sources(self) -> Iterator[tuple[Path | None, dict[str, Any]]]:
        yield None, self._given
        if self._given["config"]:
            path = Path(self._given["config"])
            yield path, _known(path, config_file.read(path))
        yield (
            config_file.SYSTEM_FILE,
            _known(config_file.SYSTEM_FILE, config_file.read(config_file.SYSTEM_FILE, optional=True)),
        )


def read_connection(path: Path, **more: Any) -> Connection:
    """Return address and credentials in a configuration file, for other programs. Raises ConfigError."""
    return _connection([(path, config_file.read(path))], **more)


def _connection(sources: Sequence[tuple[Path | None, dict[str, Any]]], **more: Any) -> Connection:
    """Return the connection with each setting of the first source that has it."""
    from openipu.shared.vipu.client import Connection

    found = {}
    for name, _, type, _ in _CONNECTION:
        for path, values in sources:
            if values.get(name) is not None:
                found[name] = _checked(path, name, values[name], type)
                break
    fields = {_field(name): value.lower() if name in _FIELDS else value for name, value in found.items()}
    return Connection(**fields, **more)


def check(path: Path) -> None:
    """Raise ConfigError when a file has an unknown setting or an invalid value."""
    values = config_file.read(path)
    for message, _ in _unknown(path, values):
        raise config_file.ConfigError(message)
    for name, _, type, _ in _CONNECTION:
        if name in values:
            _checked(path, name, values[name], type)


def _known(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, and warn about probable typing errors. Other programs may use the same file."""
    for message, near in _unknown(path, values):
        if near:
            click.echo(f"Warning: {message}", err=True)
    return values


def _unknown(path: Path, values: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield a message and similar flags for each unknown setting."""
    flags = [name for name, *_ in _CONNECTION]
    for name in values:
        if name not in flags:
            near = difflib.get_close_matches(name, flags, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(flags)}."
            yield f"{name} in {str(path)!r} is not used: {hint}", near


def _checked(path: Path | None, name: str, value: Any, type: Any) -> Any:
    """Return a value from a file in the type of its flag."""
    if path is None:
        return value
    if type is click.BOOL:
        if not isinstance(value, bool):
            raise config_file.ConfigError(
                f"Cannot use {name} in {str(path)!r}: it is not a boolean. Set true or false."
            )
        return value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise config_file.ConfigError(
            f"Cannot use {name} in {str(path)!r}: it is neither text nor a number. Set one of them."
        )
    if isinstance(value, str) and ("\0" in value or not is_text(value)):
        raise config_file.ConfigError(
            f"Cannot use {name} in {str(path)!r}: it has characters that are no text. Remove them."
        )
    if type is not _PORT:
        return str(value)
    try:
        return _PORT.convert(value, None, None)
    except click.BadParameter as error:
        raise config_file.ConfigError(
            f"Cannot use {name} in {str(path)!r}: it is not a port. {error.message}"
        ) from None


def _field(flag: str) -> str:
    return _FIELDS.get(flag) or _name(flag).removeprefix("api_")


def _name(flag: str) -> str:
    return flag.replace("-", "_")
