# SPDX-License-Identifier: GPL-3.0-or-later
"""The command for cluster tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from ansible_collections.openipu.pod.plugins.module_utils.vipu.test_table import FLAGS

from openipu.vipu.cli import output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import Failed, Session

WAIT = 20_000  # milliseconds that one call waits for news
_HELP = {
    "Sync-Link": "Sync-Link cables.",
    "Cabling": "IPU-Link and GW-Link cables, by their serial ids.",
    "IPU-Link": "Training of the IPU-Links.  [after --cabling]",
    "Traffic": "Traffic over the IPU-Links.  [after --sync, --ipulink]",
    "GW-Link": "Training of the GW-Links.  [after --cabling]",
    "Version": "The same versions everywhere.",
    "PFC-settings": "Priority flow control on the RNICs; only when asked for.",
}


def _parameter(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _choice_of_tests(function: Callable[..., None]) -> Callable[..., None]:
    for test, flag in reversed(FLAGS.items()):
        function = click.option(flag, _parameter(flag), is_flag=True, help=_HELP[test])(function)
    return function


@command("test", "cluster")
@click.argument("id", type=Id("cluster"), required=False)
@_choice_of_tests
@click.option("--start", is_flag=True, help="Start the tests, and do not wait for them.")
@click.option("--status", is_flag=True, help="Show the results of the last test.")
@click.option("--stop", is_flag=True, help="Stop the test that is in progress.")
def test_cluster(session: Session, /, id: str | None, start: bool, status: bool, stop: bool, **flags: bool) -> None:
    """Test the cables, links and settings of a cluster.

    All tests but --pfc-settings run unless some are chosen. One that depends on another is skipped
    when that fails, and those that would disturb partitions are skipped while there are any; a test
    that is chosen alone runs in any case.
    """
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.names import CLUSTER_TEST

    tests = [CLUSTER_TEST.number(test) for test, flag in FLAGS.items() if flags[_parameter(flag)]]
    if start + status + stop > 1:
        raise click.UsageError("Choose one of --start, --status and --stop.")
    if (status or stop) and tests:
        raise click.UsageError("--status and --stop are of the last test, whatever it tests: leave the others out.")
    if status:
        session.about("status")
        last = session.call("admin", "GetClusterTest", admin.GetClusterTestRequest()).run
        if id and last.state and last.cluster.id != id:
            raise Failed(f"No results available. The last test was of cluster {last.cluster.id}")
        _show_last(session, last)
        return
    if stop:
        _stop(session, id)
        return
    if not id:
        raise click.UsageError("Name the cluster to test.")
    request = admin.StartClusterTestRequest(cluster_id=id, tests=tests)
    run = session.call("admin", "StartClusterTest", request).run
    if start:
        session.about("start")
        session.succeed(run_id=run.run_id)
        return
    try:
        while run.state == admin.ClusterTestRun.RUNNING:
            news = admin.GetClusterTestRequest(
                run_id=run.run_id, known_results=len(run.results), wait_milliseconds=WAIT
            )
            run = session.call("admin", "GetClusterTest", news, timeout=2 * WAIT / 1000).run
    except KeyboardInterrupt:
        raise Failed("The test goes on: look at it with --status, end it with --stop") from None
    _show_last(session, run)


def _stop(session: Session, id: str | None) -> None:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

    session.about("stop")
    last = session.call("admin", "GetClusterTest", admin.GetClusterTestRequest()).run
    if last.state != admin.ClusterTestRun.RUNNING:
        raise Failed("No test is in progress")
    if id and last.cluster.id != id:
        raise Failed(f"The test in progress is of cluster {last.cluster.id}")
    request = admin.StopClusterTestRequest(run_id=last.run_id)
    session.call("admin", "StopClusterTest", request)
    session.succeed()


def _show_last(session: Session, run: Any) -> None:
    """The results, or why there are none."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects

    item = objects.test_run(run)
    unfinished = {
        "none": "No results available. No cluster was tested since the controller was started",
        "running": f"No results available. Test in cluster {item['cluster']} is in progress",
        "stopped": f"No results available. Last test in cluster {item['cluster']} was stopped",
        "aborted": f"No results available. {item['error']}",
    }
    finished = item["state"] not in unfinished
    if session.json or finished:
        session.show(item, results(item))
    if not item["ok"]:
        reason = unfinished.get(item["state"], "Some tests failed")
        session.complain(reason)


def results(item: dict[str, Any]) -> str:
    """The table of a run, as Graphcore prints it: without rules."""
    rows: list[tuple[output.Cell, ...]] = [("Test Type", "Duration", "Passed", "Summary")]
    rows += [
        (result["test"], f"{result['duration']:.2f}s", f"{result['passed']}/{result['total']}", result["summary"])
        for result in item["results"]
    ]
    lines = output.block(rows).splitlines()[1:-1]
    return "\n".join([f"Showing test results for cluster {item['cluster']}", *(f"  {line}" for line in lines)])
