# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of ansible-playbook in a checkout: plays that run no task are not shown, those without hosts in one line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.playbooks.checkout import PROGRAMS, environment


def play(name: str, hosts: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "hosts": hosts, "gather_facts": False, "tasks": list(tasks), **more}


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"name": text, "ansible.builtin.debug": {"msg": text}, **more}


PLAYS = [
    play("No hosts", "missing"),
    play("First", "one", say("hello", notify="Note", changed_when=True), handlers=[{**say("noted"), "listen": "Note"}]),
    play("Tagged", "one", say("left out", tags="other")),
    play("Absent", "empty:missing", say("never")),
    play("Last", "all", say("bye")),
]


def run(folder: Path, *options: str, plays: list[dict[str, Any]] | None = None) -> subprocess.CompletedProcess[str]:
    (folder / "hosts.yml").write_text("one: {hosts: {here: {ansible_connection: local}}}\nempty: {}\n")
    (folder / "plays.yml").write_text(yaml.safe_dump(plays or PLAYS))
    return subprocess.run(
        [PROGRAMS / "ansible-playbook", "-i", "hosts.yml", "plays.yml", *options],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )


def headers(output: str) -> list[str]:
    return re.findall(r"^(?:PLAY|TASK|RUNNING HANDLER) \[(.*)\]", output, re.MULTILINE)


def test_plays_without_hosts_and_tasks_are_not_shown(tmp_path: Path) -> None:
    done = run(tmp_path, "--skip-tags", "other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert headers(done.stdout) == ["First", "hello", "noted", "Last", "bye"]
    assert "no hosts matched" not in done.stdout
    assert re.findall("^Plays without hosts: .*$", done.stdout, re.MULTILINE) == [
        "Plays without hosts: No hosts; Absent"
    ]
    assert done.stdout.index("Plays without hosts") < done.stdout.index("PLAY RECAP")


def test_a_failed_play_is_shown_as_before(tmp_path: Path) -> None:
    failing = [play("Bad", "one", {"name": "fail", "ansible.builtin.fail": {"msg": "why"}}), *PLAYS[-1:]]
    done = run(tmp_path, plays=failing)
    assert done.returncode == 2
    assert headers(done.stdout) == ["Bad", "fail"]
    assert "why" in done.stdout + done.stderr
    assert "Plays without hosts" not in done.stdout
