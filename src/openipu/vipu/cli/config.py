# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of the command lines: HCL with lines like ``api-host="10.1.3.101"``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

SYSTEM_FILE = Path("/etc/vipu/vipu-cli.hcl")

# What practically every such file consists of. python-hcl2 takes 0.3 s of CPU to make its parser, several
# times what a whole command needs, so it is asked only for files that say more than this.
_BLANK = re.compile(r"\s*(?:(?:#|//).*)?")
_PLAIN = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*("[^"\\$%]*"|\d+|true|false)\s*(?:(?:#|//).*)?')


class ConfigError(Exception):
    """A configuration file that cannot be used, in one sentence."""


def read(path: Path, optional: bool = False) -> dict[str, Any]:
    """The settings of a file by name (``api-host``); names that nobody asks for do no harm.

    An ``optional`` file need not be there. Raises ConfigError.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except FileNotFoundError:
        if optional:
            return {}
        raise ConfigError(f"There is no configuration file {str(path)!r}: check --config.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"The configuration file {str(path)!r} is not HCL: it is not even text.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {str(path)!r}: {error.strerror}.") from None
    settings = _plain(text)
    return _hcl(path, text) if settings is None else settings


def _plain(text: str) -> dict[str, Any] | None:
    """The settings of a file of plain lines; None when it has others."""
    settings: dict[str, Any] = {}
    for line in text.splitlines():
        if _BLANK.fullmatch(line):
            continue
        match = _PLAIN.fullmatch(line)
        if match is None or match[1] in settings:
            return None
        settings[match[1]] = json.loads(match[2]) if match[2][0] != '"' else match[2][1:-1]
    return settings


def _hcl(path: Path, text: str) -> dict[str, Any]:
    import hcl2
    from lark.exceptions import LarkError

    try:
        settings = hcl2.loads(text if text.endswith("\n") else text + "\n")
    except LarkError as error:
        line = getattr(error, "line", None)
        where = f" at line {line}" if isinstance(line, int) and line > 0 else ""
        raise ConfigError(
            f'The configuration file {str(path)!r} is not HCL{where}: write lines like api-host="10.1.3.101".'
        ) from None
    return {name: _unquoted(value) for name, value in settings.items()}


def _unquoted(value: Any) -> Any:
    """Newer releases of the library leave the quotes of a string where they are."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return json.loads(value)
    return value
