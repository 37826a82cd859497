# SPDX-License-Identifier: GPL-3.0-or-later
"""Every verb and noun, with a real controller and the agents of a rack twin."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.cli_support import Cli, cells
from tests.waiting import until

AGENTS = [f"ag{number:02}" for number in range(1, 9)]


@pytest.fixture(scope="module")
def pod(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Create agents, a cluster and two allocations with the commands; return the runner."""
    cli = Cli(tmp_path_factory.mktemp("admin"), lab.address)
    for agent in lab.rack.agents:
        made = cli.out(f"vipu-admin create agent {agent.id} --host {agent.host} --port {agent.port}")
        assert made == f"create agent ({agent.id}): success.\n"
    agents = ",".join(AGENTS)
    assert cli.out(f"vipu-admin create cluster cl0 --agents {agents} --topology torus").endswith("(cl0): success.\n")
    assert cli.out("vipu-admin create allocation a --cluster cl0 --size 4") == "create allocation (a): success.\n"
    rest = cli.json("vipu-admin create allocation b --cluster cl0 --agents ag05,ag06")
    assert rest == {"command": "create allocation", "id": "b", "result": "success", "agents": ["ag05", "ag06"]}
    until(lambda: {agent["state"] for agent in cli.json("vipu-admin list agents")} == {"Up"})
    return cli


@pytest.fixture(autouse=True)
def no_partitions(pod: Cli) -> Iterator[None]:
    """Remove all partitions after a test."""
    yield
    for partition in pod.json("vipu list partitions"):
        pod.out(f"vipu remove partition {partition['id']} --force")


def test_agents(cli: Cli, lab: Any) -> None:
    first = lab.rack.agents[0]
    header, *rows = cells(cli.out("vipu-admin list agents"))
    assert header == ["Agent ID", "Host", "Port", "Status", "Cluster", "Allocation", "Service"]
    assert rows[0] == ["ag01", first.host, str(first.port), "Up", "cl0", "a", "In service"]
    assert [row[0] for row in rows] == AGENTS and rows[-1][-2] == ""
    block = cells(cli.out("vipu-admin get agent ag01"))
    assert [row[0] for row in block[:17]] == [
        "Agent ID",
        "Host",
        "Port",
        "Status",
        "Exporter",
        "Platform",
        "Manufacturer",
        "Discovery Mode",
        "Virm version",
        "Runtime version",
        "Board serial number",
        "Part number",
        "GWSW Version",
        "IPUoF server version",
        "HDF Version",
        "HDF Hash",
        "Num of IPUs",
    ]
    assert block[3] == ["Status", "Up"] and re.fullmatch("[0-9a-f]{40}", block[15][1]) and block[16][1] == "4"
    assert block[17][:6] == ["IPU", "PCI", "Device", "Firmware", "Architecture", "Num Tiles"]
    assert [row[0] for row in block[18:]] == ["0", "1", "2", "3"]
    item = cli.json("vipu-admin get agent ag01")
    assert (item["id"], item["state"], item["facts"]["Platform"], len(item["ipus"])) == ("ag01", "Up", "ipum-p2", 4)


def test_clusters_and_allocations(cli: Cli) -> None:
    names = " ".join(AGENTS)
    assert cells(cli.out("vipu-admin list clusters"))[1] == ["cl0", "1", "torus", "looped", names, "a b"]
    assert ["Agents", names] in cells(cli.out("vipu-admin get cluster cl0"))
    header, first, _ = cells(cli.out("vipu list allocations"))
    assert (header, first) == (["Allocation ID", "Agents"], ["a", "ag01 ag02 ag03 ag04"])
    assert ["Free IPUs", "16"] in cells(cli.out("vipu-admin get allocation a"))
    assert cli.json("vipu get allocation b")["agents"] == ["ag05", "ag06"]
    assert [item["id"] for item in cli.json("vipu-admin list cluster")] == ["cl0"]


def test_a_partition_from_creation_to_removal(cli: Cli) -> None:
    line = "vipu create partition p1 --size 8 --allocation a --gcds 2 --gcd-sync-replicas 4 --routing DNC"
    assert cli.out(line) == "create partition (p1): success.\n"
    assert cli.files() == ["p1_gcd0_ipuof.conf", "p1_gcd1_ipuof.conf"]
    assert stat.S_IMODE((cli.conf / "p1_gcd0_ipuof.conf").stat().st_mode) == 0o600
    assert stat.S_IMODE(cli.conf.stat().st_mode) == 0o700

    header, row = cells(cli.out("vipu list partitions"))
    assert dict(zip(header, row, strict=True)) == {
        "Allocation": "a",
        "Cluster": "cl0",
        "Partition": "p1",
        "ILDs": "1",
        "GW Routing": "UNDEFINED",
        "ILD Routing": "DNC",
        "Size": "8",
        "GCDs": "2",
        "State": "ACTIVE",
    }
    assert cells(cli.out("vipu list partitions --allocation b")) == [header]
    block = cells(cli.out("vipu get partition p1"))
    assert ["State", "ACTIVE"] in block and ["Replicas", "4"] in block
    assert [row[1] for row in block[block.index(["Segment", "Id", "ILD", "Topology Id"]) + 1 :]] == [*"01234567"]
    item = cli.json("vipu get partition p1")
    assert (item["state"], item["operation"], item["num_gcds"], len(item["ipus"])) == ("ACTIVE", "IDLE", 2, 8)

    one = cli.out("vipu get partition p1 --gcd 1 --ipuof-configs")
    assert one == (cli.conf / "p1_gcd1_ipuof.conf").read_text() == cli.out("vipu get partition p1 --gcd 1")
    assert json.loads(one)["attributes"]["GCD Id"] == "1" and len(json.loads(one)["devices"]) == 4
    heading, _, both = cli.out("vipu get partition p1 --ipuof-configs").partition("\n")
    assert heading.startswith("IPUoF configuration of partition p1") and json.loads(both)[1] == json.loads(one)
    assert cli.json("vipu get partition p1 --ipuof-configs") == json.loads(both)

    assert cli.out("vipu remove partition p1") == "remove partition (p1): success.\n"
    assert cli.files() == []
    assert cli.json("vipu list partitions") == []


def test_one_gcd_has_one_file_without_a_number(cli: Cli) -> None:
    cli.out("vipu-admin create partitions p_gcd0 --size 1 --allocation a")
    cli.out("vipu create partition p --size 4 --allocation a --reconfigurable --disable-auto-reset --relocatable")
    assert cli.files() == ["p_gcd0_ipuof.conf", "p_ipuof.conf"]
    heading, _, rest = cli.out("vipu get partition p --ipuof-configs").partition("\n")
    assert "{" not in heading and rest == (cli.conf / "p_ipuof.conf").read_text()
    item = cli.json("vipu get partition p")
    assert item["reconfigurable"] and item["sync_type"] == "c2-compatible"
    cli.out("vipu remove partition p")
    assert cli.files() == ["p_gcd0_ipuof.conf"]  # the name looks like a file of p, but belongs to partition p_gcd0


def test_a_creation_without_wait(cli: Cli) -> None:
    assert cli.out("vipu create partition p1 --size 4 --allocation a --no-wait") == "create partition (p1): success.\n"
    assert cli.files() == []
    until(lambda: cli.json("vipu get partition p1")["state"] == "ACTIVE")
    assert cli.out("vipu reset partition p1") == "reset partition (p1): success.\n"
    assert cli.files() == []  # a reset only updates existing files
    assert cli.json("vipu reset partition p1 --no-wait")["result"] == "success"


def test_the_controller_chooses_an_allocation_and_the_command_names_it(cli: Cli) -> None:
    made = cli("vipu create partition p1 --size 8")
    assert made.stdout == "create partition (p1): success.\n"
    assert made.stderr == (
        "Note: partition 'p1' is in allocation 'b'.\n"
        f"Note: wrote the IPUoF configuration to {cli.conf / 'p1_ipuof.conf'}.\n"
    )
    made = cli("vipu create partition p2 --size 8 --cluster cl0 --no-wait")
    assert (made.stdout, made.stderr) == (
        "create partition (p2): success.\n",
        "Note: partition 'p2' is in allocation 'a'.\n",
    )
    assert cli.json("vipu create partition p3 --size 4")["allocation"] == "a"
    assert cli("vipu create partition p4 --size 4 --allocation a --cluster cl0 --no-wait").stderr == ""
    assert cli.failed("vipu create partition p5 --size 1 --allocation a --cluster cl9") == (
        "create partition (p5): failed: allocation 'a' is in cluster 'cl0', not in 'cl9'. Omit the cluster."
    )


def test_a_reset_rewrites_the_files(cli: Cli) -> None:
    made = cli.json("vipu create partition p1 --size 2 --allocation a")
    assert made["files"] == [str(cli.conf / "p1_ipuof.conf")]
    before = Path(made["files"][0]).read_text()
    Path(made["files"][0]).write_text("stale")
    cli.out("vipu reset partition p1")
    assert Path(made["files"][0]).read_text() == before


def test_scripts_for_the_tables_of_graphcore_work(cli: Cli) -> None:
    # Published scripts read the third cell of the line of an ACTIVE partition, or the fifth word of line three.
    cli.out("vipu create partition p1 --size 2 --allocation a")
    lines = cli.out("vipu-admin list partition").splitlines()
    active = next(line for line in lines if "ACTIVE" in line)
    assert active.split("|")[2].split(" ")[1] == lines[2].split()[4] == "p1"
    # Of these tables, only the list of allocations has a rule before the header.
    assert set(lines[1]) == set(lines[-1]) == {"-"} and lines[0].split("|")[2].strip() == "Partition"
    assert cli.out("vipu list ipu-attrs").split()[0] == "Agent"
    assert set(cli.out("vipu list allocations").splitlines()[0]) == {"-"}
    # The JSON begins on the second line.
    object = cli.out("vipu-admin get partition p1 --ipuof-configs").split("\n", 1)[1]
    assert len(json.loads(object)["devices"]) == 2


def test_attributes_of_ipus(cli: Cli) -> None:
    header, *rows = cells(cli.out("vipu list ipu-attrs --agents ag02"))
    assert header == ["Agent", "IPU", "Attribute", "Value"]
    assert [row[0] for row in rows if row[0]] == ["ag02"] and [row[1] for row in rows if row[1]] == [*"0123"]
    first = [row[2] for row in rows[: next(n for n, row in enumerate(rows) if row[1] == "1")]]
    assert first == sorted(first) and {"clock", "board type", "firmware version"} <= set(first)
    found = cli.json("vipu list ipu-attr")
    assert len(found) == 32 and found[0]["attributes"]["board type"] == "M2000"


def test_server_version(cli: Cli, lab: Any) -> None:
    version, host = cli.out("vipu --server-version").splitlines()
    assert re.fullmatch(r"version: \d+\.\d+\.\d+", version) and host == f"host: {lab.address}"
    assert cli.out("vipu-admin --version") == f"vipu-admin {version.split()[1]}\n"


def test_users(cli: Cli) -> None:
    made = cli("vipu-admin create user alice --allocations a,b")
    assert made.stderr == (
        "Note: this controller runs without --secure. It checks no access keys, and every client that reaches it has "
        "all rights, so users and their allocations restrict nothing.\n"
    )
    lines = made.stdout.splitlines()
    key = re.fullmatch(r"create user \(alice\): success\. Access key is '([^']{11})'\.", lines[0])
    assert key
    assert lines[1:] == [
        "vipu configuration file for the user 'alice' written: alice.vipu-cli.hcl",
        "Use 'vipu --config alice.vipu-cli.hcl' to switch to the user context.",
    ]
    file = cli.home / "alice.vipu-cli.hcl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f'api-user-id="alice"\napi-access-key="{key[1]}"\n' in file.read_text()
    assert cells(cli.out("vipu-admin list users")) == [["User", "Role", "Allocations"], ["alice", "user", "a b"]]
    assert cli.failed("vipu-admin create user alice").startswith("create user (alice): failed: ")
    assert cli.out("vipu-admin remove user alice") == "remove user (alice): success.\n"
    assert cli.json("vipu-admin list users") == []


def test_removal_of_all_kinds(cli: Cli, lab: Any) -> None:
    spare = lab.rack.agents[7]
    assert "allocation" in cli.failed("vipu-admin remove cluster cl0")
    cli.out("vipu-admin create allocation c --cluster cl0 --agents ag07,ag08")
    cli.out("vipu create partition p1 --size 4 --allocation c")
    assert "'p1' is in it" in cli.failed("vipu-admin remove allocation c")
    assert cli.failed("vipu-admin remove allocation c").endswith("Remove the partition first, or use --force.")
    assert cli.out("vipu-admin remove allocation c --force") == (
        "remove allocation (c): success. Also removed: partition p1.\n"
    )
    assert "cluster 'cl0' contains it" in cli.failed(f"vipu-admin remove agent {spare.id}")
    assert [item["id"] for item in cli.json("vipu list allocations")] == ["a", "b"]
    assert "no allocation 'c': choose from a, b" in cli.failed("vipu list partitions --allocation c")
    cli.out("vipu-admin create allocation c --cluster cl0 --agents ag07,ag08")
    for name in ("p1", "p2"):
        cli.out(f"vipu create partition {name} --size 4 --allocation c")
    assert cli.json("vipu-admin remove allocation c --force") == {
        "command": "remove allocation",
        "id": "c",
        "result": "success",
        "also_removed": [{"kind": "partition", "id": "p1"}, {"kind": "partition", "id": "p2"}],
    }


def test_ids_are_completed_from_the_controller(cli: Cli) -> None:
    def completed(program: str, words: str, number: int) -> list[str]:
        name = program.replace("-", "_").upper()
        done = cli.out(
            program, **{f"_{name}_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        )
        return [line.partition(",")[2] for line in done.splitlines() if line]

    assert completed("vipu-admin", "vipu-admin re", 1) == ["release", "remove", "reset"]
    assert completed("vipu-admin", "vipu-admin get agent ag0", 3) == AGENTS
    assert completed("vipu-admin", "vipu-admin create cluster c --agents ag01,ag02,ag08", 5) == ["ag01,ag02,ag08"]
    assert completed("vipu", "vipu create partition p --allocation ", 5) == ["a", "b"]
    assert completed("vipu", "vipu create partition p --routing R", 5) == ["ringswnc"]
    assert completed("vipu", "vipu create partition ", 3) == []
    assert completed("vipu", "vipu --api-port 1 get allocation ", 5) == []
    assert "_VIPU_COMPLETE=bash_complete" in cli.out("vipu", _VIPU_COMPLETE="bash_source")


def test_an_agent_without_quarantine_is_named(cli: Cli) -> None:
    assert cli.json("vipu-admin list quarantine") == []
    assert "it holds no IPUs that are in quarantine" in cli.failed("vipu-admin release quarantine ag01")


def test_agents_out_of_service(cli: Cli) -> None:
    out = "vipu-admin update agent ag07 --out-of-service"
    assert cli.out(f"{out} --reason fan") == "update agent (ag07): success.\n"
    assert [cli.json(out)["changed"], cli.json(f"{out} --reason pump")["changed"]] == [False, True]
    assert cells(cli.out("vipu-admin list agents"))[7][-1] == "Out of service"
    assert ["Service Reason", "pump"] in cells(cli.out("vipu-admin get agent ag07"))
    assert "Omit the reason" in cli.failed("vipu-admin update agent ag07 --in-service --reason pump")
    assert cli.json("vipu-admin update agent ag07 --in-service")["changed"]
    assert "Missing option" in cli("vipu-admin update agent ag07", status=2).stderr


def test_drains(cli: Cli) -> None:
    cli.out("vipu create partition p --allocation b --size 4 --relocatable")
    ipus = cli.json("vipu list ipu-attrs --agents ag05,ag06")
    (agent,) = {ipu["agent"] for ipu in ipus if ipu["attributes"]["partition id"] == "p"}
    planned = cli.out(f"vipu-admin drain agent {agent} --dry-run --force")
    assert planned.count("moves to") == 1
    nothing = "success. Dry run, nothing was changed: 1 of 1 partitions would move."
    assert planned.endswith(f"drain agent ({agent}): {nothing}\n")
    kept = cli(f"vipu-admin drain agent {agent} --reason fan", status=1)
    assert "stays: a job may use it. Its users can move it with a reset, or use --force" in kept.stdout
    failure = "failed: the agent is out of service, but 1 of 1 partitions stay on it: p."
    assert kept.stderr == f"drain agent ({agent}): {failure} Remove them before you switch it off.\n"
    failed = json.loads(cli(f"vipu-admin -o json drain agent {agent}", status=1).stdout)
    assert (failed["result"], failed["error_code"], failed["changed"]) == ("failed", "OPU701", False)
    assert [(item["id"], item["moves"]) for item in failed["partitions"]] == [("p", False)]
    moved = cli.json(f"vipu-admin drain agent {agent} --force")
    assert [(item["id"], item["moves"], item["users"]) for item in moved["partitions"]] == [("p", True, [])]
    assert cli.json(f"vipu-admin drain agent {agent} --force")["changed"] is False
    cli.out(f"vipu-admin update agent {agent} --in-service")
