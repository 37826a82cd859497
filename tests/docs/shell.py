# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the commands of a page in a copy of the checkout, in a network of its own.

The network namespace has only a loopback interface. So the twin of a page has its usual addresses, although another
twin runs on this computer, and no command can reach another host.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.documentation.pages import tracked

from .blocks import Block, commands, differences
from .messages import ROOT

_SPACE = ("unshare", "--user", "--map-root-user", "--net")
# Files that the commands of a user read.
_NEEDED = (
    "Makefile",
    "README.md",
    "ansible.cfg",
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
# Programs whose output follows the state of the twin: they are run again until it is the expected one.
_READERS = ("twin status", "vipu list", "vipu get", "vipu-admin list", "vipu-admin get")


class Shell:
    """A bash that keeps its folder and variables from one block to the next."""

    def __init__(self, folder: Path, home: Path) -> None:
        variables = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        variables |= {"HOME": str(home), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "120"}
        self._bash = subprocess.Popen(
            [*_SPACE, "bash"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._count = 0
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

    def close(self) -> None:
        """End the shell."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(20)
        except subprocess.TimeoutExpired:
            self._bash.kill()
            self._bash.wait()
        if self._bash.stdout:
            self._bash.stdout.close()


def require_namespaces() -> None:
    """Skip the test where the kernel allows no network namespaces."""
    probe = [*_SPACE, "ip", "link", "set", "lo", "up"]
    if subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("network namespaces are not available")


@contextmanager
def checkout(folder: Path) -> Iterator[Shell]:
    """Copy the checkout into a folder and open a shell there; at the end, stop the twin."""
    require_namespaces()
    copy, home = folder / "openipu.pod", folder / "home"
    home.mkdir()
    for name in filter(_is_needed, tracked()):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    _link_environment(copy / ".venv")
    shell = Shell(copy, home)
    try:
        yield shell
    finally:
        shell.close()
        if (copy / ".twin").is_dir():
            twin = Path(sys.prefix) / "bin/twin"
            subprocess.run([twin, "down"], cwd=copy, capture_output=True, timeout=120, check=True)


def _is_needed(name: str) -> bool:
    return name.startswith(_NEEDED)


def _link_environment(folder: Path) -> None:
    """Make an environment of links to the present one. Its mark is new, so that make installs nothing into it."""
    folder.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.name != ".ready":
            (folder / path.name).symlink_to(path)
    (folder / ".ready").touch()


def run_page(page: Path, shell: Shell, seconds: float = 240) -> None:
    """Run all blocks of a page that can run, and compare their outputs with those on the page."""
    for block in commands(page):
        if not block.not_run:
            _run(block, shell, seconds)


def _run(block: Block, shell: Shell, seconds: float) -> None:
    end = time.monotonic() + seconds
    output = shell.run(_with_failure(block.text) if block.fails else block.text, seconds)
    last = block.text.strip().splitlines()[-1].removeprefix(".venv/bin/")
    reads = last.startswith(_READERS)
    while missing := differences(block.output, output):
        assert reads and time.monotonic() < end, f"{block.place}: not printed: {missing}\noutput:\n{output}"
        output = shell.run(block.text.strip().splitlines()[-1], seconds)


def _with_failure(text: str) -> str:
    """Return commands that succeed when the last one fails."""
    *first, last = text.strip().splitlines()
    return "\n".join([*first, f"if {last}; then false; fi"])
