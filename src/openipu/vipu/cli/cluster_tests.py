# SPDX-License-Identifier: GPL-3.0-or-later
"""The command for cluster tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from openipu.shared.vipu.cluster_test.table import FLAGS
from openipu.vipu.cli import cluster_test_output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import PROGRESS_SECONDS, Progress, Session, VipuCommandError

_WAIT = PROGRESS_SECONDS * 1000  # milliseconds that one call waits for the next result
_CALL_SECONDS = 40.0  # for such a call
_HELP = {
    "Sync-Link": "Sync-Link cables.",
    "Cabling": "IPU-Link and GW-Link cables, by their serial ids.",
    "IPU-Link": "Training of the IPU-Links.  [after --cabling]",
    "Traffic": "Traffic over the IPU-Links.  [after --sync, --ipulink]",
    "GW-Link": "Training of the GW-Links.  [after --cabling]",
    "Version": "Equal software versions on all IPU-Machines.",
    "PFC-settings": "Priority flow control on the RNICs. Not run by default.",
}


def _parameter(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _test_options(function: Callable[..., None]) -> Callable[..., None]:
    for test, flag in reversed(FLAGS.items()):
        function = click.option(flag, _parameter(flag), is_flag=True, help=_HELP[test])(function)
    return function


@command("test", "cluster")
@click.argument("id", type=Id("cluster"), required=False)
@_test_options
@click.option("--start", is_flag=True, help="Start the tests and exit.")
@click.option("--status", is_flag=True, help="Show the results of the last test.")
@click.option("--stop", is_flag=True, help="Stop the test that is in progress.")
def test_cluster(session: Session, /, id: str | None, start: bool, status: bool, stop: bool, **flags: bool) -> None:
    """Test the cables, links and settings of a cluster.

    Without options, all tests except --pfc-settings run. A test is skipped when a test that it depends on
    failed, or when it would disturb existing partitions. A single chosen test always runs.
    """
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.names import CLUSTER_TEST

    tests = [CLUSTER_TEST.number(test) for test, flag in FLAGS.items() if flags[_parameter(flag)]]
    if start + status + stop > 1:
        raise click.UsageError("Choose one of --start, --status and --stop.")
    if (status or stop) and tests:
        raise click.UsageError("--status and --stop refer to the last test: omit the options that choose tests.")
    if status:
        session.set_subject("status")
        last = session.call("admin", "GetClusterTest", admin.GetClusterTestRequest()).run
        if id and last.state and last.cluster.id != id:
            raise VipuCommandError(f"No results available. The last test was of cluster {last.cluster.id}")
        _show_last(session, last, status=True)
        return
    if stop:
        _stop(session, id)
        return
    if not id:
        raise click.UsageError("Name the cluster to test.")
    request = admin.StartClusterTestRequest(cluster_id=id, tests=tests)
    run = session.call("admin", "StartClusterTest", request).run
    if start:
        session.set_subject("start")
        if session.json:
            session.succeed(run_id=run.run_id)
        return
    try:
        run = _follow(session, run)
    except KeyboardInterrupt:
        raise VipuCommandError("The test continues: use --status for its results, --stop to stop it") from None
    _show_last(session, run)


def _follow(session: Session, run: Any) -> Any:
    """Wait for the end of a run and return it."""
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.names import CLUSTER_TEST

    progress = Progress(session)
    while run.state == admin.ClusterTestRun.RUNNING:
        request = admin.GetClusterTestRequest(
            run_id=run.run_id, known_results=len(run.results), wait_milliseconds=_WAIT
        )
        run = session.call("admin", "GetClusterTest", request, timeout=_CALL_SECONDS).run
        if run.state == admin.ClusterTestRun.RUNNING:
            finished = f"{len(run.results)} test{'' if len(run.results) == 1 else 's'} finished"
            running = f", {CLUSTER_TEST.text(run.running)} is running" if run.running else ""
            progress.note(f"the test of cluster {run.cluster.id!r} is in progress: {finished}{running}")
    return run


def _stop(session: Session, id: str | None) -> None:
    from openipu.shared.vipu.contract import admin

    session.set_subject("stop")
    last = session.call("admin", "GetClusterTest", admin.GetClusterTestRequest()).run
    if last.state != admin.ClusterTestRun.RUNNING:
        raise VipuCommandError("No test is in progress. Nothing was stopped")
    if id and last.cluster.id != id:
        raise VipuCommandError(f"The test in progress is of cluster {last.cluster.id}. Name this cluster to stop it")
    request = admin.StopClusterTestRequest(run_id=last.run_id)
    session.call("admin", "StopClusterTest", request)
    if session.json:
        session.succeed()


def _show_last(session: Session, run: Any, *, status: bool = False) -> None:
    """Show the results, or the reason why there are none. ``status``: the command did not start the run."""
    from openipu.shared.vipu import objects

    item = objects.test_run(run)
    unfinished = {
        "none": "No results available. No cluster was tested since the controller was started",
        "running": f"No results available. Test in cluster {item['cluster']} is in progress",
        "stopped": f"No results available. Last test in cluster {item['cluster']} was stopped",
        "aborted": f"No results available. {item['error']}",
    }
    if item["state"] in unfinished:
        if session.json:
            session.show(item, "")
        session.fail_after_output(unfinished[item["state"]])
    form = cluster_test_output.status_layout(item) if status else cluster_test_output.layout(item)
    session.show(item, cluster_test_output.results(item, form))
    if not item["ok"]:
        session.fail_after_output("Some tests failed", None if session.json else form.failed_subject)
