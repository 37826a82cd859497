# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of the command lines: HCL with lines like ``api-host="10.1.3.101"``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

SYSTEM_FILE = Path("/etc/vipu/vipu-cli.hcl")

# Lines of practically every such file. python-hcl2 takes 0.3 s of CPU to build its parser, several times the
# cost of a whole command. So it reads only files with other lines.
_BLANK = re.compile(r"\s*(?:(?:#|//).*)?")
_SETTING = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*("[^"\\$%]*"|\d+|true|false)\s*(?:(?:#|//).*)?')


class ConfigError(Exception):
    """Raised for a configuration file that cannot be used."""

    error_code = "OPU700"


def read(path: Path, optional: bool = False) -> dict[str, Any]:
    """Return the settings of a file by name (``api-host``), unknown names included.

    Return no settings when an ``optional`` file does not exist. Raises ConfigError.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if optional:
            return {}
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: it does not exist. Check --config."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: it is not a text file. Write it as HCL."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: {error.strerror}. Check the path and its permissions."
        ) from None
    settings = _read_lines(text)
    return _hcl(path, text) if settings is None else settings


def _read_lines(text: str) -> dict[str, Any] | None:
    """Return the settings of a file of simple lines, None when it has other lines."""
    settings: dict[str, Any] = {}
    for line in text.splitlines():
        if _BLANK.fullmatch(line):
            continue
        match = _SETTING.fullmatch(line)
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
        position = f" at line {line}" if isinstance(line, int) and line > 0 else ""
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: it is not HCL{position}. "
            'Write lines like api-host="10.1.3.101".'
        ) from None
    except RecursionError:
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: it is nested too deeply. "
            'Write lines like api-host="10.1.3.101".'
        ) from None
    return {name: _unquoted(path, name, value) for name, value in settings.items()}


def _unquoted(path: Path, name: str, value: Any) -> Any:
    """Remove the quotes of a string, which newer releases of the library keep."""
    if not (isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ConfigError(
            f"Cannot read the configuration file {str(path)!r}: {name} has an invalid escape sequence. "
            "Write a backslash as two."
        ) from None
