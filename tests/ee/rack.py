# SPDX-License-Identifier: GPL-3.0-or-later
"""An AWX whose jobs reach hosts with systemd by SSH."""

from __future__ import annotations

import os
from pathlib import Path

from tests.roles.rack import WHEELS, Rack, write_variables
from tests.unit.collection.awx.content import load
from tools.ee.image import USER, Image
from tools.ee.jobs import Controller
from tools.hosts.image import USER as SSH_USER

from .desk import HOSTS, Desk, remove_collection

SOURCE = "inventory/bare-hosts/pod.yml"
EXPOSED = "/exposed"  # folder of the site in jobs
# The environment of the hosts has the tree of control groups that podman mounts for a job.
_WITHOUT_GROUPS = (
    "unshare",
    "--mount",
    "--propagation=private",
    "sh",
    "-c",
    'umount /sys/fs/cgroup && exec "$@"',
    "sh",
)


def make_desk(rack: Rack, image: Image, project: Path, folder: Path) -> Desk:
    """Return an AWX for running hosts. ``folder``: for the files of jobs; it must exist."""
    user, group = map(int, USER.split(":"))
    for path in (rack.exposed, *rack.exposed.rglob("*")):
        os.chown(path, user, group)
    remove_collection(project)
    write_variables(project / "inventory" / "bare-hosts", EXPOSED, f"{EXPOSED}-wheels")
    content = load(awx_pod_file=SOURCE)
    controller = Controller(
        image,
        project,
        folder,
        content.credential_types,
        exposed={rack.exposed: EXPOSED, WHEELS: f"{EXPOSED}-wheels"},
        enter=lambda command: rack.environment.command_line([*_WITHOUT_GROUPS, *command]),
    )
    key = rack.environment.image.key.read_text()
    inputs = {HOSTS: {"username": SSH_USER, "ssh_key_data": key, "become_method": "sudo"}}
    return Desk(controller, inputs, content, SOURCE, local_hosts=False)
