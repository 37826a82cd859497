# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of the hosts: Debian's root file system with the packages of packages.txt, made once and kept.

Everything hangs on a fingerprint of what it is made of, so a new package makes a new image and the old
one is removed.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from openipu.twin.processes import ProcessError

from .site import CACHE, environment, run

SUITE = "bookworm"
NAME = "localhost/openipu-host"
USER = "ansible"  # who logs in: may do everything by sudo, and has no password
_PREFIX = "image-"
_PACKAGES = Path(__file__).with_name("packages.txt")
_ETC_APT = Path("/etc/apt")
# What nobody reads there; the last one alone is 200 MB.
_LEFT_OUT = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/javascript/moment-timezone/*"]
# How this machine reaches a mirror: proxies, what it makes of certificates and dates.
_SETTING = re.compile(r'Acquire::(?!IndexTargets|Changelogs|CompressionTypes|cdrom)[^"]+ "[^"]+";$')

# Run with the root file system as $1 and the public key of who logs in as $2.
_FINISH = f"""
set -eu
chroot "$1" useradd --create-home --shell /bin/bash {USER}
echo '{USER} ALL=(ALL) NOPASSWD: ALL' >"$1/etc/sudoers.d/{USER}"
chmod 0440 "$1/etc/sudoers.d/{USER}"
install -d -m 0700 -o 1000 -g 1000 "$1/home/{USER}/.ssh"
install -m 0600 -o 1000 -g 1000 "$2" "$1/home/{USER}/.ssh/authorized_keys"
: >"$1/etc/default/locale"
# No host has the identity of another: each makes its own when it first starts.
rm -f "$1"/etc/ssh/ssh_host_*
: >"$1/etc/machine-id"
cat >"$1/etc/systemd/system/host-keys.service" <<UNIT
[Unit]
Description=Keys by which others know this host
Before=ssh.service
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A
[Install]
WantedBy=multi-user.target
UNIT
# A service that a role is to start does not start before it does.
preset="$1/etc/systemd/system-preset/00-hosts.preset"
mkdir -p "${{preset%/*}}"
printf '%s\\n' 'enable ssh.service' 'enable host-keys.service' 'disable *' >"$preset"
chroot "$1" systemctl --quiet preset-all
rm "$preset"
# A container has no devices of its own, nor a console.
chroot "$1" systemctl --quiet mask systemd-udevd.service console-getty.service getty.target
"""


@dataclass(frozen=True)
class Image:
    """One that is there: its folder holds the root file system, and the key with which one logs in."""

    folder: Path

    @property
    def reference(self) -> str:
        """What podman calls it."""
        return f"{NAME}:{self.folder.name.removeprefix(_PREFIX)}"

    @property
    def root(self) -> Path:
        """The root file system, as a tar archive."""
        return self.folder / "root.tar"

    @property
    def key(self) -> Path:
        """The private key of who logs in."""
        return self.folder / "id_ed25519"

    @property
    def store(self) -> Path:
        """Where podman reads it from: a store that hosts share and never write to."""
        return self.folder / "store"

    @property
    def lock(self) -> Path:
        """Held by who uses it."""
        return self.folder / "lock"


def packages(bare: bool = False) -> list[str]:
    """What packages.txt names; for a bare host its first paragraph only, after the one that tells what it is."""
    text = _PACKAGES.read_text()
    lines = (line.partition("#")[0].strip() for line in (text.split("\n\n")[1] if bare else text).splitlines())
    return [line for line in lines if line]


def image(say: Callable[[str], None], bare: bool = False) -> Image:
    """The image, made when it is not there; one command at a time. Raises ProcessError.

    A ``bare`` one has nothing that a role installs: it has to be fetched from a mirror.
    """
    sources, options = mirror()
    wanted = packages(bare)
    described = "\n".join([SUITE, *wanted, _FINISH, *_LEFT_OUT, *map(str, sources), *options])
    prefix = f"{_PREFIX}bare-" if bare else f"{_PREFIX}full-"
    made = Image(CACHE / f"{prefix}{hashlib.sha256(described.encode()).hexdigest()[:12]}")
    if made.folder.exists():
        return made
    _remove_unused(prefix)
    say(f"Making the hosts' root file system: Debian {SUITE} with {len(wanted)} packages and what they need …")
    begun = time.monotonic()
    new = Image(Path(tempfile.mkdtemp(prefix=f"{prefix}new-", dir=CACHE)))
    _debootstrap(new, wanted, sources, options)
    _load(new, made.reference)
    new.folder.rename(made.folder)
    say(f"Made in {time.monotonic() - begun:.0f} s, and kept in {made.folder}.")
    return made


def _remove_unused(prefix: str) -> None:
    """Remove such images of other packages from which no hosts run, and what was not finished."""
    for folder in CACHE.glob(f"{prefix}*"):
        with contextlib.suppress(BlockingIOError), Image(folder).lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def mirror() -> tuple[list[Path], list[str]]:
    """Where this machine's own apt fetches from, when it is of the same release, and with which settings."""
    candidates = [_ETC_APT / "sources.list", *sorted((_ETC_APT / "sources.list.d").glob("*"))]
    sources = [
        path
        for path in candidates
        if path.suffix in (".list", ".sources") and path.exists() and re.search(rf"\b{SUITE}\b", path.read_text())
    ]
    dump = run(["apt-config", "dump"], "read apt's settings")
    options = [line for line in dump.splitlines() if _SETTING.match(line)]
    return sources, options


def _debootstrap(new: Image, wanted: list[str], sources: list[Path], options: list[str]) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(new.key)], "make a key")
    finish = new.folder / "finish.sh"
    finish.write_text(_FINISH)
    command = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=minbase", "--skip=cleanup/apt/lists"]
    command += [f"--include={','.join(wanted)}", *(f"--aptopt={option}" for option in options)]
    command += [f"--dpkgopt=path-exclude={paths}" for paths in _LEFT_OUT]
    command += [f'--customize-hook=sh {finish} "$1" {new.key}.pub', SUITE, str(new.root), *map(str, sources)]
    log = new.folder / "mmdebstrap.log"
    with log.open("wb") as output:
        done = subprocess.run(command, env=environment(), stdout=output, stderr=output, check=False)  # noqa: S603
    if done.returncode:
        words = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("E:")]
        last = words[-1] if words else "mmdebstrap failed"
        raise ProcessError(f"The hosts' root file system could not be made: {last} (its log: {log}).")


def _load(new: Image, reference: str) -> None:
    """Have podman lay the root file system out in a store of its own."""
    command = ["podman", f"--root={new.store}", "--runroot=/run/podman", "--tmpdir=/run/libpod"]
    command += ["--storage-driver=overlay", "--events-backend=none", "--cgroup-manager=cgroupfs"]
    command += ["import", "--quiet", "--change=CMD /sbin/init", str(new.root), reference]
    # Podman keeps locks for all of its stores in one place: none of this one may stay there.
    apart = 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && exec "$@"'
    apart_command = ["unshare", "--mount", "sh", "-c", apart, "sh", *command]
    run(apart_command, "load the hosts' root file system", {**environment(), "TMPDIR": str(new.folder)})
