# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of playbooks/ipum_health.yml for a machine that does not respond; other tests have responding ones."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import yaml

from tests.integration.bringup.own_twin import BIN, ROOT, run


def test_an_unreachable_machine_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # free after this block
    host = {
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": "itadmin",
        "pod_agent_id": "ag01",
        "pod_addresses": {"bmc": "127.0.0.1"},
    }
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"machines": {"hosts": {"ipum01": host}}}))
    settings = {"virm_agent_connection": {}, "virm_agent_bmc": {"port": port}}
    playbook = ROOT / "playbooks" / "ipum_health.yml"
    done = run(BIN / "ansible-playbook", playbook, "-i", inventory, "-e", json.dumps(settings), check=False)
    output = " ".join(done.stdout.split())
    assert done.returncode == 2
    assert (
        "ipum01: Cannot connect to the gateway by SSH: check that 127.0.0.1 is on the network and accepts logins of "
        f"'itadmin'. Cannot connect to the BMC at 127.0.0.1:{port}: connection refused. Check its power and network, "
        "host and port."
    ) in output
