# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who carries out what the files of a bond say: systemd-networkd or NetworkManager.

Either looks only at the interfaces that its files name, so it may run beside whatever configures the rest of the host.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..reconcile import Object
from .commands import Host
from .network import PREFIX, Bond, networkd, networkmanager


@dataclass(frozen=True)
class Backend:
    """``render`` gives the files of a bond by name; after they were written there is ``reload``, and ``settle`` for
    every interface that is not as it should be by then.

    A reload reads only files that were changed or touched: with the others, networkd of Debian 12 goes on to mean a
    bond that was there before, and cannot put ports into the new one.
    """

    service: str
    folder: str
    mode: int
    render: t.Callable[[Bond], dict[str, str]]
    reload: tuple[str, ...]
    settle: t.Callable[[str], tuple[str, ...]]

    def files(self, bond: Bond) -> list[Object]:
        """As the engine compares them."""
        return [{"path": "%s/%s" % (self.folder, name), "content": text} for name, text in self.render(bond).items()]

    def ours(self, bond: str, name: str) -> bool:
        """Whether a file is one of this bond."""
        rest = name[len(PREFIX) + len(bond) :]
        return name.startswith(PREFIX + bond) and rest[:1] in (".", "-")

    def present(self, bond: str) -> list[Path]:
        """The files of this bond that are there."""
        return sorted(path for path in Path(self.folder).glob("*") if self.ours(bond, path.name))

    def service_objects(self, host: Host) -> list[Object]:
        """The service as it is."""
        enabled = host.succeeds("systemctl", "is-enabled", "--quiet", self.service)
        active = host.succeeds("systemctl", "is-active", "--quiet", self.service)
        return [{"name": self.service, "enabled": enabled, "active": active}]


def _reconfigure(interface: str) -> tuple[str, ...]:
    return ("networkctl", "reconfigure", interface)


def _bring_up(interface: str) -> tuple[str, ...]:
    return ("nmcli", "--wait", "30", "connection", "up", "id", PREFIX + interface)


BACKENDS = {
    "networkd": Backend(
        "systemd-networkd.service",
        "/etc/systemd/network",
        0o644,
        networkd,
        ("networkctl", "reload"),
        _reconfigure,
    ),
    "networkmanager": Backend(
        "NetworkManager.service",
        "/etc/NetworkManager/system-connections",
        0o600,
        networkmanager,
        ("nmcli", "connection", "reload"),
        _bring_up,
    ),
}
