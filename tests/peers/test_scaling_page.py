# SPDX-License-Identifier: GPL-3.0-or-later
"""The global Prometheus of the page scaling.md starts with the file and the commands of the page."""

from __future__ import annotations

from pathlib import Path

from tests import ROOT
from tests.docs.blocks import blocks, commands
from tests.docs.shell import Shell, require_namespaces, run_block
from tests.waiting import until

PAGE = ROOT / "docs/explanation/scaling.md"


def test_the_global_prometheus_becomes_ready(tmp_path: Path) -> None:
    require_namespaces()
    (config,) = [block.text for block in blocks(PAGE) if block.language == "yaml" and "/federate" in block.text]
    (tmp_path / "global.yml").write_text(config)
    log = tmp_path / "background.log"
    shell = Shell(tmp_path, tmp_path, {})
    try:
        for block in commands(PAGE):
            run_block(block, shell, 60)
        until(log.exists, 20)
        until(lambda: "Server is ready to receive web requests." in log.read_text(), 60, log.read_text)
    finally:
        shell.kill()
        shell.close()
