# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/ipum_health.yml where nobody answers: what it says. Gateways and BMCs that do are in other tests."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import yaml
from own_twin import BIN, ROOT, run


def test_a_machine_that_answers_nowhere_is_told_in_sentences(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody's from here on
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
    said = " ".join(done.stdout.split())
    assert done.returncode == 2
    assert (
        "ipum01: Its gateway does not answer over ssh: see that 127.0.0.1 is in the network, and that it lets itadmin "
        f"in. The BMC at 127.0.0.1:{port} does not answer (connection refused): see that it has power and is in the "
        "network."
    ) in said
