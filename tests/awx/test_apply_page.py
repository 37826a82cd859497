# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the page awx-apply.md work as printed, each block with an empty AWX."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import yaml

from tests import ROOT
from tests.awx.pages import HOST, open_shell
from tests.awx.standin.app import ADMINISTRATOR
from tests.awx.standin.resources import RESOURCES
from tests.awx.standin.server import Server
from tests.docs.blocks import commands
from tests.docs.shell import run_block

PAGE = ROOT / "docs/how-to/awx-apply.md"
DEFAULTS = ROOT / "extensions/awx/defaults.yml"
TOKEN = "token-of-the-reader"


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    project = yaml.safe_load(DEFAULTS.read_text().replace("!unsafe", ""))["awx_project_url"]
    shutil.copytree(ROOT / "playbooks", tmp_path / "project/playbooks")
    quick_start, proof = (list(found) for _, found in groupby(commands(PAGE), lambda block: block.line))
    with open_shell(tmp_path) as shell:
        for blocks in (quick_start, proof):
            with Server(tmp_path, {project: tmp_path / "project"}, shell.listen(443), HOST) as server:
                item = server.awx.store.add(RESOURCES["tokens"], {"scope": "write"})
                item |= {"_token": TOKEN, "_user": ADMINISTRATOR}
                for block in blocks:
                    typed = f"{TOKEN}\n" if block.text.startswith("read ") else ""
                    run_block(replace(block, text=block.text + typed), shell, 600)
                assert server.awx.unknown_fields == []
                organizations = [each["name"] for each in server.awx.store.all("organizations")]
                assert ("IPU-POD" in organizations, "POD-test" in organizations) == (blocks is quick_start, False)
            shutil.rmtree(tmp_path / "certificates")
