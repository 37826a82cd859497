# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of cloud-init as the role control_instance renders them, for a vPOD in the POD of inventory/pod64."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.integration.bringup.own_twin import BIN

ADDRESS, SUBNET = "10.4.0.151", "10.4.0.0/24"
GW_ADDRESS, BMC_ADDRESS = "10.1.2.151", "10.1.1.151"
CONTROLLER = "10.1.2.101"  # server1 in the network of the IPU-Gateways
MACS = ("fa:16:3e:00:00:01", "fa:16:3e:00:00:02")  # of the port in the control network and of that of the machines
# As the role vpod sets them. test_user_data.py compares them.
SETTINGS: dict[str, Any] = {
    "control_instance_name": "v1-controller",
    "control_instance_address": ADDRESS,
    "control_instance_subnet": SUBNET,
    "control_instance_controller": CONTROLLER,
    "control_instance_machines": ["ipum01", "ipum02"],
    "control_instance_log_addresses": [BMC_ADDRESS, GW_ADDRESS],
    "control_instance_interfaces": [{"mac": MACS[1], "addresses": [f"{BMC_ADDRESS}/24", f"{GW_ADDRESS}/24"]}],
    "control_instance_poplar_vms": ["v1-poplar.pod64.example"],
    "control_instance_management_servers": [CONTROLLER, "10.1.3.101"],
    "control_instance_dns_servers": [CONTROLLER],
}
_PLAY = [
    {
        "hosts": "controllers[0]",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "openipu.pod.control_instance", "tasks_from": "cloud_init"},
                "vars": SETTINGS,
            },
            {
                "ansible.builtin.copy": {
                    "dest": "{{ dest }}",
                    "mode": "0644",
                    "content": "{{ control_instance_cloud_init | to_json }}",
                }
            },
        ],
    }
]


def files(settings: dict[str, Any]) -> dict[str, str]:
    """Return the decoded files of settings of cloud-init by path."""
    return {
        file["path"]: gzip.decompress(base64.b64decode(file["content"])).decode() for file in settings["write_files"]
    }


def render(
    folder: Path, host: dict[str, Any] | None = None, role: str = "control_instance", **settings: Any
) -> dict[str, Any]:
    """Return the settings of cloud-init. ``settings`` replace those above, ``host`` are variables of the play."""
    play = json.loads(json.dumps(_PLAY))
    play[0]["vars"].update(host or {})
    play[0]["tasks"][0]["vars"] = {**SETTINGS, **settings}
    play[0]["tasks"][0]["ansible.builtin.include_role"]["name"] = f"openipu.pod.{role}"
    file, dest = folder / "render.yml", folder / "cloud-init.json"
    file.write_text(yaml.safe_dump(play))
    done = subprocess.run(
        [BIN / "ansible-playbook", file, "-i", ROOT / "inventory/pod64/pod.yml", "-e", f"dest={dest}"],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(dest.read_text())  # type: ignore[no-any-return]
