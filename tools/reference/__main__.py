# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the generated pages of the reference; with --check, only report stale ones."""

from __future__ import annotations

from pathlib import Path

import click

from . import alerts, awx_workflows, chart_objects, commands, grpc_api, messages, pod_keys, rest_api

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its path in docs/reference."""
    sources = (commands, grpc_api, rest_api, alerts, awx_workflows, chart_objects, pod_keys, messages)
    return {name: text for source in sources for name, text in source.pages().items()}


@click.command()
@click.option("--check", is_flag=True, help="Change no file; fail when a page is stale.")
def main(check: bool) -> None:
    """Write the generated pages of docs/reference."""
    stale = []
    for name, text in pages().items():
        file = PAGES / name
        if file.is_file() and file.read_text() == text:
            continue
        stale.append(name)
        if not check:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    if check and stale:
        names = ", ".join(stale)
        raise click.ClickException(f"Stale pages in docs/reference: {names}. Run python -m tools.reference.")


if __name__ == "__main__":
    main()
