# SPDX-License-Identifier: GPL-3.0-or-later
"""The older command line ``vipu-cli``: its words and flags, without a controller."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from openipu.vipu.cli.older import cluster, vipu_cli


def run(line: str) -> tuple[int, str]:
    done = CliRunner().invoke(vipu_cli, line.split(), prog_name="vipu-cli")
    return done.exit_code, done.output


@pytest.mark.parametrize("flags", ["", "-a", "-a --showjson", "--showjson -a", "--admin"])
def test_the_version_is_printed_with_all_flags(flags: str) -> None:
    status, text = run(f"{flags} --version")
    assert status == 0 and text.startswith("vipu-cli ")


@pytest.mark.parametrize("verb", ["remove", "delete"])
def test_delete_is_remove(verb: str) -> None:
    status, text = run(f"{verb} partition --help")
    assert status == 0 and "Remove a partition and its files" in text


def test_commands_of_administrators_need_a_flag() -> None:
    assert run("-a list clusters --help")[0] == 0
    for words in ("list clusters", "delete cluster", "test"):
        status, text = run(words)
        assert status == 2 and f"it is vipu-cli -a {words}." in text
    assert "it is" not in run("-a watch certificates")[1]


@pytest.mark.parametrize("line", ["list -a cluster --showjson", "list cluster --showjson -a", "list cluster --admin"])
def test_the_flags_may_follow_the_words(line: str) -> None:
    # No server listens on port 1.
    status, text = run(f"-H 127.0.0.1 --api-port 1 {line}")
    assert status == 1 and ('"result": "failed"' in text) == ("--showjson" in line)
    assert run("create partition p --size 1 -- -a")[0] == 2


def test_a_failure_is_json_too() -> None:
    # No server listens on port 1.
    for flags, is_json in (("--showjson", True), ("", False)):
        status, text = run(f"{flags} -H 127.0.0.1 --api-port 1 list partition")
        assert status == 1 and ('"result": "failed"' in text) == is_json


def test_a_cluster_has_the_ipus_of_each_domain() -> None:
    found = cluster({"id": "cl0", "agents": ["a", "b", "c", "d"], "num_ilds": 2})
    domains = found["spec"]["ipu_link_domains"]
    assert [[ipu["agent_id"] for ipu in domain["ipus"]] for domain in domains] == [[*"aaaabbbb"], [*"ccccdddd"]]
