# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of others that answer over HTTP on a port of loopback, for as long as a test needs them."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from waiting import until

HOST = "127.0.0.1"
SECONDS = 30.0


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of loopback that nobody has now."""
    with socket.socket(socket.AF_INET, kind) as asked:
        asked.bind((HOST, 0))
        return int(asked.getsockname()[1])


def fetched(url: str) -> str:
    """What is there; raises OSError with what was answered instead."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        raise OSError(f"{url}: {error.code}: {error.read().decode()}") from None


@contextmanager
def running(command: Sequence[str | Path], log: Path, ready: Callable[[], bool]) -> Iterator[None]:
    """A process until the end of the block, from when it is ready on."""
    with log.open("w") as said, subprocess.Popen([str(part) for part in command], stdout=said, stderr=said) as process:
        try:
            until(lambda: process.poll() is not None or ready(), SECONDS, log.read_text)
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def answers(url: str) -> Callable[[], bool]:
    """Whether somebody does at this address."""

    def ask() -> bool:
        try:
            fetched(url)
        except OSError:
            return False
        return True

    return ask


def metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What an exporter tells: by name, each series' labels and value."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if match:
            labels = dict(re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            found.setdefault(match[1], []).append((labels, float(match[3])))
    return found
