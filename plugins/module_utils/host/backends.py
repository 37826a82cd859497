# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Backends that configure a bond from files: systemd-networkd and NetworkManager.

Each manages only the interfaces that its files name, so another program can configure the rest of the host.
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
    """Service, files and commands of a backend.

    ``render`` returns the files of a bond by name. ``reload`` is the command after writing them. ``activate`` returns
    the command for an interface that still differs after the reload. ``deletion_pending`` returns a command that
    succeeds until the service has processed the deletion of an interface; None if it need not before the reload.

    A reload reads only files with a new modification time. Without the others, networkd of Debian 12 keeps using a
    deleted bond and cannot add ports to the new one. When it notices the deletion after the reload, it drops the new
    bond with the old one.
    """

    service: str
    folder: str
    mode: int
    render: t.Callable[[Bond], dict[str, str]]
    reload: tuple[str, ...]
    activate: t.Callable[[str], tuple[str, ...]]
    deletion_pending: t.Callable[[str], tuple[str, ...]] | None = None

    def files(self, bond: Bond) -> list[Object]:
        """Return the desired files in the form that the engine compares."""
        return [{"path": "%s/%s" % (self.folder, name), "content": text} for name, text in self.render(bond).items()]

    def owns(self, bond: str, name: str) -> bool:
        """Return whether a file name belongs to the bond."""
        rest = name[len(PREFIX) + len(bond) :]
        return name.startswith(PREFIX + bond) and rest[:1] in (".", "-")

    def existing_files(self, bond: str) -> list[Path]:
        """Return the existing files of the bond, sorted."""
        return sorted(path for path in Path(self.folder).glob("*") if self.owns(bond, path.name))

    def deletion_pending_commands(self, interfaces: t.Iterable[str]) -> list[tuple[str, ...]]:
        """Return the commands that succeed until the service has processed the deletion of these interfaces."""
        pending = self.deletion_pending
        return [pending(interface) for interface in interfaces] if pending else []

    def service_objects(self, host: Host) -> list[Object]:
        """Return the actual state of the service."""
        enabled = host.succeeds("systemctl", "is-enabled", "--quiet", self.service)
        active = host.succeeds("systemctl", "is-active", "--quiet", self.service)
        return [{"name": self.service, "enabled": enabled, "active": active}]


def _reconfigure(interface: str) -> tuple[str, ...]:
    return ("networkctl", "reconfigure", interface)


def _get_link(interface: str) -> tuple[str, ...]:
    name, path = "org.freedesktop.network1", "/org/freedesktop/network1"
    return ("busctl", "call", name, path, name + ".Manager", "GetLinkByName", "s", interface)


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
        _get_link,
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
