# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with which the launcher reaches the workers by SSH. The addresses of workers are known when they run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from openipu.kubernetes.cluster.client import Object
from openipu.kubernetes.domain import reserved, ssh

_MODE = 0o444  # the user of the launcher differs from that of the init container


def deliver(keys: Path, folder: Path, workers: Iterable[Object]) -> None:
    """Copy the keys of a launcher to a folder, and write the configuration of ssh for its workers."""
    for name in (ssh.IDENTITY, ssh.KNOWN_HOSTS):
        shutil.copyfile(keys / name, folder / name)
        (folder / name).chmod(_MODE)
    addresses = {each["metadata"]["name"]: _address(each) for each in workers}
    (folder / ssh.CLIENT_CONFIG).write_text(ssh.client_config(addresses, str(folder)), encoding="utf-8")
    (folder / ssh.CLIENT_CONFIG).chmod(_MODE)


def _address(worker: Object) -> tuple[str, int]:
    return worker["status"]["podIP"], int(worker["metadata"]["labels"][reserved.SSH_PORT_LABEL])
