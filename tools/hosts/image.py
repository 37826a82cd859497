# SPDX-License-Identifier: GPL-3.0-or-later
"""Image of the hosts: a root file system of Debian with the packages of packages.txt.

It is created once and kept. Its folder is named by a fingerprint of its inputs, so a changed list of packages
creates a new image and removes the old one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from openipu.process.background import ProcessError

from .site import CACHE, run, system_environment

SUITE = "bookworm"
NAME = "localhost/openipu-host"
USER = "ansible"  # SSH user with full sudo rights and without a password
_PREFIX = "image-"
_PACKAGES = Path(__file__).with_name("packages.txt")
_ETC_APT = Path("/etc/apt")
# Files that hosts do not need. The last path alone has 200 MB.
_EXCLUDED_PATHS = [
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/javascript/moment-timezone/*",
]
# Settings of apt for access to a mirror: proxies, certificates, checks of dates.
_APT_SETTING = re.compile(r'Acquire::(?!IndexTargets|Changelogs|CompressionTypes|cdrom)[^"]+ "[^"]+";$')

# Arguments: $1 root file system, $2 public key of the SSH user.
_CUSTOMIZE_SCRIPT = f"""
set -eu
chroot "$1" useradd --create-home --shell /bin/bash {USER}
echo '{USER} ALL=(ALL) NOPASSWD: ALL' >"$1/etc/sudoers.d/{USER}"
chmod 0440 "$1/etc/sudoers.d/{USER}"
install -d -m 0700 -o 1000 -g 1000 "$1/home/{USER}/.ssh"
install -m 0600 -o 1000 -g 1000 "$2" "$1/home/{USER}/.ssh/authorized_keys"
: >"$1/etc/default/locale"
# Each host creates its own identity when it first starts.
rm -f "$1"/etc/ssh/ssh_host_*
: >"$1/etc/machine-id"
cat >"$1/etc/systemd/system/host-keys.service" <<UNIT
[Unit]
Description=SSH host keys
Before=ssh.service
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A
[Install]
WantedBy=multi-user.target
UNIT
# Services start only after a role has started them.
preset="$1/etc/systemd/system-preset/00-hosts.preset"
mkdir -p "${{preset%/*}}"
printf '%s\\n' 'enable ssh.service' 'enable host-keys.service' 'disable *' >"$preset"
chroot "$1" systemctl --quiet preset-all
rm "$preset"
# Containers have no devices and no console.
chroot "$1" systemctl --quiet mask systemd-udevd.service console-getty.service getty.target
"""


@dataclass(frozen=True)
class Image:
    """Image in a folder, with its root file system and its SSH key."""

    folder: Path

    @property
    def reference(self) -> str:
        """Name of the image for podman."""
        return f"{NAME}:{self.folder.name.removeprefix(_PREFIX)}"

    @property
    def root(self) -> Path:
        """Path of the root file system, a tar archive."""
        return self.folder / "root.tar"

    @property
    def key(self) -> Path:
        """Path of the private key of the SSH user."""
        return self.folder / "id_ed25519"

    @property
    def store(self) -> Path:
        """Read-only image store of podman, which all hosts share."""
        return self.folder / "store"

    @property
    def lock(self) -> Path:
        """Lock file, held by running environments of hosts."""
        return self.folder / "lock"


def packages(bare: bool = False) -> list[str]:
    """Return the packages of packages.txt; for a bare host only those of the paragraph 'Base system'."""
    text = _PACKAGES.read_text()
    lines = (line.partition("#")[0].strip() for line in (text.split("\n\n")[1] if bare else text).splitlines())
    return [line for line in lines if line]


def ensure_image(report: Callable[[str], None], bare: bool = False) -> Image:
    """Return the image, which is created if it is missing. Raises ProcessError.

    The caller must hold the lock of the cache. A ``bare`` image has no packages of roles, which hosts then
    download from a mirror.
    """
    sources, options = apt_sources()
    names = packages(bare)
    inputs = "\n".join([SUITE, *names, _CUSTOMIZE_SCRIPT, *_EXCLUDED_PATHS, *map(str, sources), *options])
    prefix = f"{_PREFIX}bare-" if bare else f"{_PREFIX}full-"
    image = Image(CACHE / f"{prefix}{hashlib.sha256(inputs.encode()).hexdigest()[:12]}")
    if image.folder.exists():
        return image
    _remove_unused(prefix)
    report(f"Creating the root file system of the hosts: Debian {SUITE} with {len(names)} packages …")
    begun = time.monotonic()
    new = Image(Path(tempfile.mkdtemp(prefix=f"{prefix}new-", dir=CACHE)))
    _create_root(new, names, sources, options)
    _import(new, image.reference)
    new.folder.rename(image.folder)
    report(f"Created {image.folder} in {time.monotonic() - begun:.0f} s.")
    return image


def _remove_unused(prefix: str) -> None:
    """Remove unused images with this prefix, and incomplete ones."""
    for folder in CACHE.glob(f"{prefix}*"):
        with contextlib.suppress(BlockingIOError), Image(folder).lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def apt_sources() -> tuple[list[Path], list[str]]:
    """Return the apt sources of this machine for the release of the hosts, and its apt settings for mirrors."""
    candidates = [_ETC_APT / "sources.list", *sorted((_ETC_APT / "sources.list.d").glob("*"))]
    sources = [
        path
        for path in candidates
        if path.suffix in (".list", ".sources") and path.exists() and re.search(rf"\b{SUITE}\b", path.read_text())
    ]
    dump = run(["apt-config", "dump"], "read the settings of apt")
    options = [line for line in dump.splitlines() if _APT_SETTING.match(line)]
    return sources, options


def _create_root(new: Image, names: list[str], sources: list[Path], options: list[str]) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(new.key)], "create an SSH key")
    finish = new.folder / "finish.sh"
    finish.write_text(_CUSTOMIZE_SCRIPT)
    write_root(new.root, "minbase", names, sources, options, f'sh {finish} "$1" {new.key}.pub')


def write_root(
    root: Path, variant: str, names: Sequence[str], sources: Sequence[Path], options: Sequence[str], hook: str
) -> None:
    """Write a root file system of Debian to a tar archive. Raises ProcessError.

    Args:
        root: the archive; the log is ``mmdebstrap.log`` beside it.
        variant: set of packages to begin with, as mmdebstrap names it.
        names: further packages.
        sources: files with apt sources, see ``apt_sources``.
        options: settings of apt.
        hook: shell command that changes the root file system, whose folder is ``$1``.
    """
    command = ["unshare", "--mount", "mmdebstrap", "--mode=root", f"--variant={variant}", "--skip=cleanup/apt/lists"]
    command += [f"--include={','.join(names)}", *(f"--aptopt={option}" for option in options)]
    command += [f"--dpkgopt=path-exclude={paths}" for paths in _EXCLUDED_PATHS]
    command += [f"--customize-hook={hook}", SUITE, str(root), *map(str, sources)]
    log = root.with_name("mmdebstrap.log")
    with log.open("wb") as output:
        done = subprocess.run(command, env=system_environment(), stdout=output, stderr=output, check=False)  # noqa: S603
    if done.returncode:
        errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("E:")]
        last = errors[-1] if errors else "mmdebstrap failed"
        raise ProcessError(f"Cannot create the root file system {root.name}: {last} (log: {log}).")


def _import(new: Image, reference: str) -> None:
    """Import the root file system into a separate image store of podman."""
    command = ["podman", f"--root={new.store}", "--runroot=/run/podman", "--tmpdir=/run/libpod"]
    command += ["--storage-driver=overlay", "--events-backend=none", "--cgroup-manager=cgroupfs"]
    command += ["import", "--quiet", "--change=CMD /sbin/init", str(new.root), reference]
    # Podman has one folder for the locks of all stores. Private mounts prevent locks of this store in it.
    script = 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && exec "$@"'
    isolated = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
    run(isolated, "import the root file system of the hosts", {**system_environment(), "TMPDIR": str(new.folder)})
