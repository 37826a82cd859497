# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the page events.md work as printed, with the packages that the suite installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.awx.standin.app import ADMINISTRATOR, PASSWORD
from tests.awx.standin.server import Server
from tests.docs.blocks import blocks, commands
from tests.docs.shell import Shell, checkout, run_block
from tests.events.environment import HOME, missing
from tests.waiting import until

PAGE = ROOT / "docs/how-to/events.md"
CONTROLLER, AWX = "10.1.3.101", "awx.example.com"
# A cluster whose only agent does not respond, so that its test fails at once.
RACK = """
.venv/bin/vipu-server --init
.venv/bin/vipu-server --host {host} --insecure-network &> controller.log &
.venv/bin/vipu-server health --host {host} --wait 60
export VIPU_CLI_API_HOST={host}
.venv/bin/vipu-admin create agent ag01 --host 127.9.9.1
.venv/bin/vipu-admin create cluster cl0 --agents ag01
"""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in a checkout, in the network of the controller of inventory/pod64."""
    if reason := missing():
        pytest.skip(reason)
    authority = str(tmp_path / "certificates/server/ca.crt")
    # The environment of the suite contains this checkout as a collection. The page installs its archive.
    given = {"SSL_CERT_FILE": authority, "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"}
    with checkout(tmp_path, more=("extensions/eda/",), **given) as made:
        made.name_host(AWX, tmp_path / "hosts")
        made.keep_unchanged(tmp_path / "changes", "/var/lib")
        made.run(f"ip address add {CONTROLLER} dev lo", 20)
        try:
            yield made
        finally:
            made.kill()


def test_the_commands_of_the_page_work(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "openipu.pod"
    found = [block for block in commands(PAGE) if not block.not_run]
    install, archive, state_folder, controller, settings, drift, request = found
    (folder / "rulebook").symlink_to(HOME)
    shell.run(".venv/bin/ansible-galaxy collection build --output-path dist .", 60)
    for block in (install, archive):
        run_block(block, shell)
    assert (tmp_path / "home/.ansible/collections/ansible_collections/openipu/pod/MANIFEST.json").exists()
    variables = next(block.text for block in blocks(PAGE) if block.text.startswith("# variables.yml"))
    (folder / "variables.yml").write_text(variables)
    shell.run(RACK.format(host=CONTROLLER), 60)
    log, state = folder / "background.log", "/var/lib/eda/vipu-events.json"

    for block in (state_folder, controller):
        run_block(block, shell)
    shell.run(f"until grep --quiet --no-messages ag01 {state}; do kill -0 $!; sleep 0.2; done", 120)
    shell.run(".venv/bin/vipu-admin test cluster cl0 || true", 60)
    until(lambda: "Cluster test of cl0 failed" in log.read_text(), 120, log.read_text)
    shell.run("test ! -e /var/lib/eda/tickets", 20)  # a dry run

    run_block(settings, shell)
    with Server(tmp_path, {}, shell.listen(443), AWX) as server:
        post = f"curl --silent --show-error --fail --user {ADMINISTRATOR}:{PASSWORD} --request POST"
        token = json.loads(shell.run(f"{post} {server.url}/api/v2/tokens/", 20))["token"]
        shell.run(f"export CONTROLLER_OAUTH_TOKEN={token}", 20)
        run_block(drift, shell)
        shell.run("curl --silent --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:5002/", 90)
        run_block(request, shell)
        shown = "Dry run: workflow Correct drift would start for POD pod64: 2 changes"
        until(lambda: shown in log.read_text(), 60, log.read_text)
