# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation site, and check it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from tools import links

from . import changes, pages, plugins
from .steps import Step, run

_BUILD = pages.ROOT / "docs" / "build"


@click.command()
@click.option("--fresh", is_flag=True, help="Build all pages again, instead of the changed ones.")
def main(fresh: bool) -> None:
    """Build the documentation site in docs/build/html. Warnings are errors."""
    start = time.monotonic()
    source, site = _BUILD / "source", _BUILD / "html"
    plugins.build(source / "plugins", _BUILD / "work")
    pages.write(source, {"project/changelog.rst": changes.page()})
    theme = Path(__file__).with_name("theme")
    command = (sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-j", "auto")
    again = ("--fresh-env", "--write-all") if fresh else ()
    folders = ("-c", str(theme), "-d", str(_BUILD / "doctrees"), str(source), str(site))
    run(Step("Building the site", (*command, *again, *folders)), logs=_BUILD / "work")
    status = links.main()
    if status:
        raise SystemExit(status)
    click.echo(f"Documentation built in {time.monotonic() - start:.0f} s: {site.relative_to(pages.ROOT)}/index.html")


if __name__ == "__main__":
    main()
