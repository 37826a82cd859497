# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of ``site.yml`` for PODs of one to 64 racks: CPU time without the twin, wall time and memory of both runs."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openipu.twin.launch.generate import PodSize
from tests import ROOT

from .collection import BIN, ENVIRONMENT, PLAYBOOK
from .lab import own_octet
from .measure import Sample, Table, Target, command

RACKS = (1, 4, 16, 64)
_FORMER_CPU = 2.6  # seconds per rack of an unchanged run with 32 racks, before the playbooks were made linear
_START_SECONDS = 300  # of a twin with 1024 machines
_TWIN = str(BIN / "twin")


def bench_racks(table: Table, _rounds: int) -> None:
    """Bring up PODs of several sizes, and repeat it; peer: a POD of one rack in the same run."""
    samples = {racks: _bring_up(racks) for racks in RACKS}
    for run, title in enumerate(("first run", "second run, unchanged")):
        one = samples[RACKS[0]][run]
        table.add(f"site.yml, one rack, {title}: CPU, wall time", f"{one.cpu:.1f} s, {one.wall:.1f} s", "")
        table.add("same, memory of the largest process", f"{one.memory:.0f} MB", "")
        for racks in RACKS[1:]:
            sample = samples[racks][run]
            ratio = sample.cpu / (racks * one.cpu)
            table.add(
                f"site.yml, {racks} racks, {title}: CPU, wall time",
                f"{sample.cpu:.1f} s, {sample.wall:.1f} s ({ratio:.2f} × per rack)",
                f"one rack {one.cpu:.1f} s, {one.wall:.1f} s",
                Target("≤ 1 × per rack", 1),
                ratio,
            )
            table.add("same, memory of the largest process", f"{sample.memory:.0f} MB", f"one rack {one.memory:.0f} MB")
    racks, (_, unchanged) = samples.popitem()
    table.add(
        f"site.yml, {racks} racks, unchanged: CPU per rack",
        f"{unchanged.cpu / racks:.2f} s",
        f"32 racks formerly {_FORMER_CPU} s",
        Target(f"≤ {_FORMER_CPU / 2} s", _FORMER_CPU / 2),
        unchanged.cpu / racks,
    )


def _bring_up(racks: int) -> tuple[Sample, Sample]:
    """Return the first and the second run of ``site.yml`` on the twin of a POD."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, _twin(Path(folder), racks) as (pod, environment):
        playbook = [PLAYBOOK, "-i", str(pod), str(ROOT / "playbooks/site.yml")]
        first = command(playbook, env=environment, expect="changed=1")
        return first, command(playbook, env=environment, forbid="changed=1")


@contextmanager
def _twin(folder: Path, racks: int) -> Iterator[tuple[Path, dict[str, str]]]:
    """Start the twin of a POD; yield its pod.yml and the environment of its playbooks. Raises RuntimeError."""
    state = folder / "state"
    size = PodSize(racks=racks, devices=True, partitions=4, offset=own_octet())
    pod = size.write(folder / "pod", str(state))
    environment = {
        **ENVIRONMENT,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "TWIN_STATE_DIR": str(state),
    }
    try:
        command([_TWIN, "up", "--inventory", str(pod), "--state-dir", str(state)])
        yield pod, environment
    finally:
        subprocess.run([_TWIN, "down", "--state-dir", str(state)], capture_output=True, timeout=_START_SECONDS)
