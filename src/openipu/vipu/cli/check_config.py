# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``python -m openipu.vipu.cli.check_config FILE``: validate a configuration file."""

from __future__ import annotations

import sys
from pathlib import Path

from openipu.vipu.cli.config_file import ConfigError
from openipu.vipu.cli.settings import check


def main(path: str) -> None:
    """Exit with a message and status 1 when the file has a setting that the command lines cannot use."""
    try:
        check(Path(path))
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m openipu.vipu.cli.check_config FILE")
    main(sys.argv[1])
