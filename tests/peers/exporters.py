# SPDX-License-Identifier: GPL-3.0-or-later
"""Third-party programs that serve HTTP on a loopback port during a test."""

from __future__ import annotations

import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until

HOST = "127.0.0.1"
SECONDS = 30.0


def fetch(url: str) -> str:
    """Return the content of a URL; raise OSError with the response of an HTTP error."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        raise OSError(f"{url}: {error.code}: {error.read().decode()}") from None


@contextmanager
def running(command: Sequence[str | Path], log: Path, ready: Callable[[], bool]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block, which starts when the process is ready. Yield the process."""
    with (
        log.open("w") as output,
        subprocess.Popen([str(part) for part in command], stdout=output, stderr=output) as process,
    ):
        try:
            until(lambda: process.poll() is not None or ready(), SECONDS, log.read_text)
            assert process.poll() is None, log.read_text()
            yield process
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def responds(url: str) -> Callable[[], bool]:
    """Return a function that returns whether a URL can be fetched."""

    def check() -> bool:
        try:
            fetch(url)
        except OSError:
            return False
        return True

    return check


def metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the series of an exporter by metric name, each with its labels and value."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if match:
            labels = dict(re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            found.setdefault(match[1], []).append((labels, float(match[3])))
    return found
