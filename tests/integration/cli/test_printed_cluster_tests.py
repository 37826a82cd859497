# SPDX-License-Identifier: GPL-3.0-or-later
"""Every block of section 6.4 of Graphcore's V-IPU administrator guide, from the commands and a rack twin with faults.

The outputs are equal byte for byte, except for durations, which are measured. ``docs/reference/fidelity.md`` lists
the blocks of the guide that contradict others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.names import TOPOLOGY
from openipu.vipu.lifecycle.interface import LifecycleOptions
from tests.integration.agents.agents_support import RackProcess
from tests.integration.cli.cli_support import Cli
from tests.integration.vipu_servers import InProcess
from tests.waiting import until

DURATION = re.compile(r"(?<=\| )\d+\.\d\ds {0,4}(?= \|)")
# The guide prints four components with an agent, and six without their names.
FOUR_VERSIONS = "Agent=1.6.0 Runtime=1.18.0 HDF=1.4.1 GWSW=2.0.5"


class Pod:
    """A rack twin, its controller with the cluster cl0, and the commands."""

    def __init__(self, folder: Path, agents: list[str], ilds: int = 1) -> None:
        folder.mkdir()
        with contextlib.ExitStack() as stack:
            machines = [{"agent_id": id, "host": f"127.82.0.{n}", "port": 0} for n, id in enumerate(agents, 1)]
            self.rack = RackProcess(folder, 0, topology="mesh", ilds=ilds, machines=machines)
            stack.callback(self.rack.close)
            # The heartbeat is long, so that a slow machine is not Down.
            self.server = InProcess(folder / "vipu.db", lifecycle=LifecycleOptions(heartbeat=20.0))
            stack.callback(self.server.stop)
            specs = [admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port) for agent in self.rack.agents]
            cluster = admin.ClusterSpec(
                id="cl0", agent_ids=agents, num_ilds=ilds, ipu_link_topology=TOPOLOGY.number("mesh")
            )
            request = admin.ApplyRequest(agents=specs, clusters=[cluster])
            assert self.server.admin.Apply(request, timeout=10).applied
            self.cli = Cli(folder, self.server.address)
            until(
                lambda: {each["state"] for each in self.cli.json("vipu-admin list agents")} == {"Up"}, 30, "agents Up"
            )
            self.close = stack.pop_all().close

    def output(self, line: str, status: int = 0) -> str:
        """Return standard output and then standard error of a command."""
        done = self.cli(line, status=status)
        return done.stdout + done.stderr

    def run_state(self) -> int:
        """Return the state of the last test."""
        state: int = self.server.admin.GetClusterTest(admin.GetClusterTestRequest(), timeout=10).run.state
        return state


def numbered(prefix: str, count: int, digits: int = 1) -> list[str]:
    return [f"{prefix}{number:0{digits}d}" for number in range(1, count + 1)]


PODS: dict[str, tuple[list[str], int]] = {
    "eight": (numbered("ag", 8), 1),
    "eight-padded": (numbered("ag", 8, 2), 1),
    "four": (numbered("ag", 4), 1),
    "four-padded": (numbered("a", 4, 2), 1),
    "two-domains": (["ag1.1", "ag1.2", "ag2.1", "ag2.2"], 2),
}


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Pod]]:
    """Yield a function that returns a POD without faults."""
    folder = tmp_path_factory.mktemp("pods")
    pods: dict[str, Pod] = {}

    def get(name: str) -> Pod:
        if name not in pods:
            pods[name] = Pod(folder / name, *PODS[name])
        pods[name].rack.fault("heal")
        return pods[name]

    yield get
    for each in pods.values():
        each.close()


def timeless(text: str) -> str:
    """Return the text with the same duration in each row of a table."""
    return DURATION.sub("0.00s   ", text)


STATUS = """\
Showing test results for cluster cl0
  Test Type    | Duration | Passed  | Summary
  Sync-Link    | 0.84s    | 14/14   | Sync Link test passed
  Cabling      | 12.02s   | 28/28   | All cables connected as expected
  IPU-Link     | 7.39s    | 156/156 | All Links Passed
  Traffic      | 156.71s  | 3/3     | Traffic test passed
  GW-Link      | 0.00s    | 0/0     | GW Link test skipped
  Version      | 0.01s    | 6/6     | All component versions are consistent
"""

PASSED = {
    ("eight", "--sync"): """\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Sync-Link   | 0.93s    | 14/14  | Sync Link test passed
""",
    ("four", "--cabling"): """\
Showing test results for cluster cl0
 Test Type   | Duration | Passed | Summary
 Cabling     | 19.54s   | 12/12  | All cables connected as expected
""",
    ("eight-padded", "--pfc-settings"): """\
Showing test results for cluster cl0
 Test Type    | Duration | Passed | Summary
 PFC-settings | 0.65s    | 8/8    | All PFC settings as expected
""",
}


@pytest.mark.parametrize(("name", "flag"), PASSED)
def test_a_test_that_passes(pod: Callable[[str], Pod], name: str, flag: str) -> None:
    assert timeless(pod(name).output(f"vipu-admin test cluster cl0 {flag}")) == timeless(PASSED[name, flag])


def test_four_components_in_one_version(pod: Callable[[str], Pod]) -> None:
    eight = pod("eight")
    eight.rack.fault(*(f"versions {agent} {FOUR_VERSIONS}" for agent in PODS["eight"][0]))
    assert timeless(eight.output("vipu-admin test cluster cl0 --versions")) == timeless("""\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Version     | 0.00s    | 4/4    | All component versions are consistent
""")


FAILED: dict[str, tuple[str, list[str], str, str]] = {
    "sync": (
        "eight",
        ["unplug ag1:sync6", "unplug ag1:sync7"],
        "--sync",
        """\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Sync-Link   | 0.90s    | 12/14  | Failed Sync Links:
              |          |        | ag1:6 <--> 2:ag2
              |          |        | ag1:7 <--> 3:ag2
test (cluster): failed: Some tests failed.
""",
    ),
    "traffic": (  # the guide prints 838 as the sum of 327 and 521
        "four",
        ["errors ag3:1 327", "errors ag2:4 521"],
        "--traffic",
        f"""\
  Test        | Duration | Passed | Summary
  Traffic     | 210.17s  | 0/1    | Traffic test failed
              |          |        | Errors encountered in traffic test 1
              |          |        | corrected link errors: {327 + 521}
              |          |        | - ag3:1 <--> ag2:5 (327)
              |          |        | - ag2:4 <--> ag1:8 (521)
test cluster (cl0): failed: Some tests failed.
""",
    ),
    "versions": (
        "eight",
        [
            *(f"versions {agent} {FOUR_VERSIONS}" for agent in PODS["eight"][0]),
            "version ag8 Agent 1.5.1",
        ],
        "--versions",
        """\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Version     | 0.01s    | 3/4    | Components with mismatched versions found:
              |          |        | ag1-Agent: 1.6.0
              |          |        | ag2-Agent: 1.6.0
              |          |        | ag3-Agent: 1.6.0
              |          |        | ag4-Agent: 1.6.0
              |          |        | ag5-Agent: 1.6.0
              |          |        | ag6-Agent: 1.6.0
              |          |        | ag7-Agent: 1.6.0
              |          |        | ag8-Agent: 1.5.1
test (cluster): failed: Some tests failed.
""",
    ),
    "cabling": (
        "four",
        ["unplug ag1:5", "unplug ag1:6", "unplug ag1:7", "unplug ag1:8"],
        "--cabling",
        """\
Showing test results for cluster cl0
 Test Type   | Duration | Passed | Summary
 Cabling     | 21.77s   | 8/12   | ag1:5 [IPU-Link] <--> ag2:1 [IPU-Link] (failed)
             |          |        | ag1:6 [IPU-Link] <--> ag2:2 [IPU-Link] (failed)
             |          |        | ag1:7 [IPU-Link] <--> ag2:3 [IPU-Link] (failed)
             |          |        | ag1:8 [IPU-Link] <--> ag2:4 [IPU-Link] (failed)
""",
    ),
    "cabling of two domains": (
        "two-domains",
        ["unplug ag1.1:gw1"],
        "--cabling",
        """\
Showing test results for cluster cl0
 Test Type   | Duration | Passed | Summary
 Cabling     | 19.87s   | 11/12  | ag1.1:1 [GW-Link] <--> ag2.1:2 [GW-Link] (failed)
""",
    ),
    "PFC": (
        "eight-padded",
        ["pfc ag05 eth1 0,2", "pfc ag06 eth1 0,2", "pfc ag07 if-0 none", "pfc ag08 if-1 9,10,11"],
        "--pfc-settings",
        """\
Showing test results for cluster cl0
 Test Type    | Duration | Passed | Summary
 PFC-settings | 0.72s    | 4/8    | PFC settings not as expected:
              |          |        | ag05: {eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]}
              |          |        | ag06: {eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]}
              |          |        | ag07: {if-0: pfc classes: got [], expected [0 1 2 3 4 5 6 7]}
              |          |        | ag08: {if-1: pfc classes: got [9, 10, 11], expected [0 1 2 3 4 5 6 7]}
""",
    ),
    "dependencies": (
        "four-padded",
        ["move a03:3 a04:7"],
        "",
        """\
Test Type   | Duration | Passed | Summary
 Sync-Link   | 0.33s    | 6/6    | Sync Link test passed
 Cabling     | 3.15s    | 11/12  | Cables not connected as expected:
             |          |        | a02 (IPU-Cluster Port 7) <--> a03 (IPU-Cluster Port 3) (connected to wrong port)
 IPU-Link    | 0.00s    | 0/0    | Test skipped
             |          |        | Test did not run because of an earlier dependency test failure (Cabling)
 Traffic     | 0.00s    | 0/0    | Test skipped
             |          |        | Test did not run because of an earlier dependency test failure (Cabling)
 GW-Link     | 0.00s    | 0/0    | Test skipped
             |          |        | Test did not run because of an earlier dependency test failure (Cabling)
 Version     | 0.00s    | 6/6    | All component versions are consistent
""",
    ),
}


@pytest.mark.parametrize("block", FAILED)
def test_a_test_that_fails(pod: Callable[[str], Pod], block: str) -> None:
    name, faults, flag, expected = FAILED[block]
    faulty = pod(name)
    faulty.rack.fault(*faults)
    assert timeless(faulty.output(f"vipu-admin test cluster cl0 {flag}", status=1)) == timeless(expected)


def test_a_test_in_the_background(pod: Callable[[str], Pod]) -> None:
    eight = pod("eight")
    eight.rack.fault("hang ag8")
    assert eight.output("vipu-admin test cluster cl0 --start") == ""
    assert eight.output("vipu-admin test cluster --status", status=1) == (
        "test cluster (status): failed: No results available. Test in cluster cl0 is in progress.\n"
    )
    assert eight.output("vipu-admin test cluster --stop") == ""
    assert eight.output("vipu-admin test cluster --status", status=1) == (
        "test cluster (status): failed: No results available. Last test in cluster cl0 was stopped.\n"
    )
    eight.rack.fault("heal")
    assert eight.output("vipu-admin test cluster cl0 --start") == ""
    until(lambda: eight.run_state() == admin.ClusterTestRun.FINISHED, 30, "the end of the test")
    assert timeless(eight.output("vipu-admin test cluster --status")) == timeless(STATUS)


def test_status_names_the_cluster_of_a_failed_test(pod: Callable[[str], Pod]) -> None:
    four = pod("four")
    four.rack.fault("errors ag3:1 327")
    four.output("vipu-admin test cluster cl0 --traffic", status=1)
    lines: Any = four.output("vipu-admin test cluster --status", status=1).splitlines()
    assert lines[0] == "Showing test results for cluster cl0"
    assert lines[-1] == "test cluster (status): failed: Some tests failed."
