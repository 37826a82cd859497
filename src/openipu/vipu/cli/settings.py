# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that every command has, and where their values come from.

A flag goes before the environment (``VIPU_CLI_<FLAG>``), that before the file of ``--config``, that
before ``/etc/vipu/vipu-cli.hcl``, that before the default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openipu.vipu.cli import config

if TYPE_CHECKING:  # it loads gRPC, which --help and --version do without
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection

ENVIRONMENT = "VIPU_CLI_"
_PORT = click.IntRange(1, 65535)
_FILE = click.Path(dir_okay=False)
# name, further spelling, type, help. Those of the connection may stand in configuration files too.
_CONNECTION: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
    ("api-host", ("-H",), str, "Host of the controller.  [default: localhost]"),
    ("api-port", (), _PORT, "Its port.  [default: 8090]"),
    ("api-user-id", (), str, "Who asks, of a secure controller."),
    ("api-access-key", (), str, "The access key of that user; better given by environment or file."),
    ("ca-path", (), _FILE, "Authority that signed the certificate of the controller, PEM; means TLS."),
    ("client-cert", (), _FILE, "Certificate to show to the controller, PEM; means TLS."),
    ("client-key", (), _FILE, "Its private key, PEM."),
    ("metadata-user-id-key", (), str, "Metadata key of the user id, as the controller has it."),
    ("metadata-access-key-key", (), str, "Metadata key of the access key, as the controller has it."),
)
# What a flag is called in a Connection, where that is not its own name without ``api``.
_FIELDS = {"metadata-user-id-key": "user_id_metadata", "metadata-access-key-key": "access_key_metadata"}
_OTHER: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
    ("config", (), _FILE, "Configuration file, HCL; it goes before /etc/vipu/vipu-cli.hcl."),
    ("output", ("-o",), click.Choice(["text", "json"]), "Form of the output.  [default: text]"),
)
NAMES = frozenset(name.replace("-", "_") for name, *_ in (*_CONNECTION, *_OTHER))


def root_options() -> list[click.Parameter]:
    """The flags as they stand before the verb, with the environment behind them."""
    return [
        click.Option([f"--{name}", *short], type=type, help=help, envvar=ENVIRONMENT + _name(name).upper())
        for name, short, type, help in (*_CONNECTION, *_OTHER)
    ]


def leaf_options() -> list[click.Parameter]:
    """The same flags as they are accepted after the noun too, where they win; only --output is shown there."""
    return [
        click.Option([f"--{name}", *short], type=type, help=help, hidden=name != "output")
        for name, short, type, help in (*_CONNECTION, *_OTHER)
    ]


class Settings:
    """The values of the flags that every command has."""

    def __init__(self, ctx: click.Context) -> None:
        """Take what the command line and the environment gave; files are read when they are needed."""
        chain: click.Context | None = ctx
        self._given: dict[str, Any] = {}
        while chain is not None:
            for name, *_ in (*_CONNECTION, *_OTHER):
                if self._given.get(name) is None:
                    self._given[name] = chain.params.get(_name(name))
            chain = chain.parent

    @property
    def json(self) -> bool:
        """Whether the output is JSON."""
        return bool(self._given["output"] == "json")

    def connection(self, **more: Any) -> Connection:
        """Where the controller is and who asks; raises ConfigError."""
        from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection

        found = {}
        sources = list(self._sources())
        for name, _, type, _ in _CONNECTION:
            for path, values in sources:
                if values.get(name) is not None:
                    found[name] = _checked(path, name, values[name], type)
                    break
        fields = {_field(name): value.lower() if name in _FIELDS else value for name, value in found.items()}
        return Connection(**fields, **more)

    def _sources(self) -> Iterator[tuple[Path | None, dict[str, Any]]]:
        yield None, self._given
        if self._given["config"]:
            path = Path(self._given["config"])
            yield path, _known(path, config.read(path))
        yield config.SYSTEM_FILE, _known(config.SYSTEM_FILE, config.read(config.SYSTEM_FILE, optional=True))


def check(path: Path) -> None:
    """Raise ConfigError unless every setting of a file is one, and has a value that it may have."""
    values = config.read(path)
    for sentence, _ in _unknown(path, values):
        raise config.ConfigError(sentence)
    for name, _, type, _ in _CONNECTION:
        if name in values:
            _checked(path, name, values[name], type)


def _known(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The values; warns of slips of the pen. Other programs may have settings of their own in a file."""
    for sentence, near in _unknown(path, values):
        if near:
            click.echo(f"Warning: {sentence}", err=True)
    return values


def _unknown(path: Path, values: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A sentence for each setting that no flag has, and the flag that may have been meant."""
    flags = [name for name, *_ in _CONNECTION]
    for name in values:
        if name not in flags:
            near = difflib.get_close_matches(name, flags, 1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(flags)}."
            yield f"{name} in {str(path)!r} is not used: {meant}", near


def _checked(path: Path | None, name: str, value: Any, type: Any) -> Any:
    """A value of a file in the form that the flag has."""
    if path is None:
        return value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise config.ConfigError(f"In {str(path)!r}, {name} is neither text nor a number.")
    if type is not _PORT:
        return str(value)
    try:
        return _PORT.convert(value, None, None)
    except click.BadParameter as error:
        raise config.ConfigError(f"In {str(path)!r}, {name} is no port: {error.message}") from None


def _field(flag: str) -> str:
    return _FIELDS.get(flag) or _name(flag).removeprefix("api_")


def _name(flag: str) -> str:
    return flag.replace("-", "_")
