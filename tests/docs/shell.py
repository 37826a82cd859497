# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the commands of a page in a copy of the checkout, in a network of its own.

The network namespace has only a loopback interface. So the twin of a page has its usual addresses, although another
twin runs on this computer, and no command can reach another host.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests import ROOT
from tools.documentation.pages import tracked

from .blocks import Block, commands, differences

# Root keeps its groups: programs such as dnsmasq set theirs.
_OWN_NETWORK = ("unshare", *(("--user", "--map-root-user") if os.geteuid() else ()), "--net", "--mount")
# Files that the commands of a user read.
_NEEDED = (
    "Makefile",
    "README.md",
    "ansible.cfg",
    "charts/",
    "galaxy.yml",
    "inventory/",
    "meta/",
    "playbooks/",
    "plugins/",
    "pyproject.toml",
    "requirements/",
    "roles/",
    "src/",
    "tools/bootstrap.sh",
)
# Listens on a port of the network of the shell, and sends the socket to the test.
_LISTEN = """
import socket, sys
with socket.socket(socket.AF_UNIX) as channel, socket.create_server(("127.0.0.1", int(sys.argv[2]))) as listener:
    channel.connect(sys.argv[1])
    socket.send_fds(channel, [b"listener"], [listener.fileno()])
"""
# Programs whose output follows the state of the twin: they are run again until it is the expected one.
_READERS = (
    "kubectl describe",
    "kubectl get",
    "kubectl logs",
    "openstack baremetal node show",
    "twin status",
    "vipu get",
    "vipu list",
    "vipu-admin --api-host 127.3.1.101 discover agent",
    "vipu-admin get",
    "vipu-admin list",
)


class Shell:
    """A bash that keeps its folder and variables from one block to the next.

    Without ``own_network``, it has the network of the test, for pages whose programs have namespaces of their own.
    ``enter``: prefix of a command that runs in other namespaces.
    """

    def __init__(
        self, folder: Path, home: Path, more: Mapping[str, str], *, own_network: bool = True, enter: Sequence[str] = ()
    ) -> None:
        variables = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        variables |= {"HOME": str(home), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "120", **more}
        self._bash = subprocess.Popen(
            [*enter, *(_OWN_NETWORK if own_network else ()), "bash"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._count = 0
        if own_network:
            self.run("ip link set lo up", 20)

    def run(self, text: str, seconds: float) -> str:
        """Run commands, and return their output. Fail the test when one fails or the time is over."""
        assert self._bash.stdin is not None
        self._count += 1
        mark = f"end-of-block-{self._count}:"
        # With ``set -e``, the shell ends at the first command that fails.
        self._bash.stdin.write(f"set -e\n{text}\nset +e\necho {mark}\n".encode())
        self._bash.stdin.flush()
        output = self._read(mark, time.monotonic() + seconds)
        assert mark in output, f"a command failed:\n{text}\nits output:\n{output}"
        return output.partition(mark)[0]

    def listen(self, port: int) -> socket.socket:
        """Return a socket that listens on a port in the network of the shell, for a server in the test."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as channel:
            path = f"{folder}/socket"
            channel.bind(path)
            channel.listen()
            self.run(f"{sys.executable} - {path} {port} <<'END'{_LISTEN}END\n", 20)
            connection = channel.accept()[0]
            with connection:
                return socket.socket(fileno=socket.recv_fds(connection, 16, 1)[1][0])

    def name_host(self, name: str, file: Path) -> None:
        """Give this computer another name, for the shell only. ``file``: a new file for the names of hosts."""
        file.write_text(f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {name}\n")
        self.run(f"mount --bind {file} /etc/hosts", 20)

    def keep_unchanged(self, scratch: Path, *folders: str) -> None:
        """Store writes below these folders in an overlay, which is removed with the shell."""
        commands = [f"mkdir {scratch}", f"mount -t tmpfs tmpfs {scratch}"]
        for number, folder in enumerate(folders):
            upper, work = f"{scratch}/{number}", f"{scratch}/{number}-work"
            layers = f"lowerdir={folder},upperdir={upper},workdir={work}"
            commands += [f"mkdir {upper} {work}", f"mount -t overlay overlay -o {layers} {folder}"]
        self.run("\n".join(commands), 20)

    def _read(self, mark: str, end: float) -> str:
        assert self._bash.stdout is not None
        output = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while mark.encode() not in output:
                assert selector.select(max(0.0, end - time.monotonic())), f"no end in time; output:\n{output.decode()}"
                part = os.read(self._bash.stdout.fileno(), 65536)
                if not part:
                    break
                output += part
        return output.decode(errors="replace")

    def kill(self) -> None:
        """End the shell and the processes that it started in the background, before ``close``."""
        os.killpg(self._bash.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the shell, and the processes that it started in the background."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(20)
        except subprocess.TimeoutExpired:
            self._bash.kill()
            self._bash.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGTERM)
        if self._bash.stdout:
            self._bash.stdout.close()


def require_namespaces() -> None:
    """Skip the test where the kernel allows no network namespaces."""
    probe = [*_OWN_NETWORK, "ip", "link", "set", "lo", "up"]
    if subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("network namespaces are not available")


@contextmanager
def checkout(
    folder: Path, *, own_network: bool = True, more: tuple[str, ...] = (), **variables: str
) -> Iterator[Shell]:
    """Copy the checkout into a folder and open a shell there; at the end, stop the twin.

    ``more``: prefixes of further files. ``variables``: further variables of the shell.
    """
    if own_network:
        require_namespaces()
    copy, home = folder / "openipu.pod", folder / "home"
    home.mkdir()
    for name in (*tracked(), "src/openipu/shared"):  # the last one is a link to a folder
        if not name.startswith((*_NEEDED, *more)):
            continue
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    _link_environment(copy / ".venv")
    shell = Shell(copy, home, variables, own_network=own_network)
    try:
        yield shell
    finally:
        shell.close()
        twin = Path(sys.prefix) / "bin/twin"
        for state in copy.glob(".twin*"):
            command = [twin, "down", "--state-dir", state]
            subprocess.run(command, cwd=copy, capture_output=True, timeout=120, check=True)


def _link_environment(folder: Path) -> None:
    """Make an environment of links to the present one. Its mark is new, so that make installs nothing into it."""
    folder.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.name != ".ready":
            (folder / path.name).symlink_to(path)
    (folder / ".ready").touch()


def run_page(page: Path, shell: Shell, seconds: float = 240) -> None:
    """Run all blocks of a page that can run, and compare their outputs with those on the page.

    Commands that run on are ended at the end of the page.
    """
    blocks = [block for block in commands(page) if not block.not_run]
    for block in blocks:
        run_block(block, shell, seconds)
    if any(block.runs_on for block in blocks):
        shell.run("kill $(jobs -p); wait", 60)


def run_block(block: Block, shell: Shell, seconds: float = 240) -> None:
    """Run a block, and compare its output with that on the page."""
    end = time.monotonic() + seconds
    if block.before:
        shell.run(block.before, seconds)
    output = _printed(shell.run(_as_printed(block), seconds))
    last = block.text.strip().splitlines()[-1].removeprefix(".venv/bin/")
    reads = last.startswith(_READERS)
    while missing := differences(block.output, output):
        assert reads and time.monotonic() < end, f"{block.place}: not printed: {missing}\noutput:\n{output}"
        output = _printed(shell.run(block.text.strip().splitlines()[-1], seconds))


def _printed(output: str) -> str:
    """Return an output as in a checkout: its environment has links, but messages have the paths of the programs."""
    return output.replace(f"{sys.prefix}/bin/", ".venv/bin/")


def _as_printed(block: Block) -> str:
    """Return commands that succeed when those of the block have the described result."""
    if not (block.fails or block.runs_on):
        return block.text
    *first, last = block.text.strip().replace("\\\n", " ").splitlines()  # one line for each command
    return "\n".join([*first, f"if {last}; then false; fi" if block.fails else f"{last} &> background.log &"])
