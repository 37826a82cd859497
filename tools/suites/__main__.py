# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tools.suites``: run test suites and show which are proved."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
from tabulate import tabulate

from .declarations import SUITES, select_by_name
from .fingerprint import fingerprint
from .record import load
from .runner import Outcome, State, install, run

ROOT = Path(__file__).resolve().parents[2]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run the test suites of openipu.pod."""


@main.command("run")
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@click.option("--other", is_flag=True, help="Skip the suites that .ci/run always runs itself.")
@click.option("--without-emulated", is_flag=True, help="Do not run suites that emulate a machine.")
@click.option("--changed", is_flag=True, help="Skip suites that passed with the same inputs.")
@click.option("--budget", type=click.FloatRange(min=1), metavar="MINUTES", help="Start no suite that does not fit.")
@click.option("--install", "packages", is_flag=True, help="Install missing Debian packages first (root).")
def run_suites(
    names: tuple[str, ...], other: bool, without_emulated: bool, changed: bool, budget: float | None, packages: bool
) -> None:
    """Run suites (default: all) and print a table of results.

    Exit status 1 when a suite fails or, without --budget, when a suite is not verified.
    """
    try:
        suites = [suite for suite in select_by_name(names) if not (other and suite.always)]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    install_error = install(suites) if packages else ""
    seconds = budget and budget * 60
    outcomes = run(
        suites,
        ROOT,
        changed=changed,
        budget=seconds,
        show=_show,
        install_error=install_error,
        emulated=not without_emulated,
    )
    click.echo("\n" + table(outcomes))
    unverified = [outcome.suite for outcome in outcomes if outcome.state is State.UNVERIFIED]
    if unverified:
        click.echo(f"\nNOT VERIFIED: {len(unverified)} of {len(outcomes)} suites: {', '.join(unverified)}")
    bad = {State.FAILED} if budget else {State.FAILED, State.UNVERIFIED}
    sys.exit(any(outcome.state in bad for outcome in outcomes))


@main.command()
def status() -> None:
    """Show for each suite whether it passed with the present inputs, and when it passed last."""
    record = load(ROOT)
    rows = []
    for suite in SUITES:
        known = record.get(suite.name)
        proved = bool(known) and known is not None and known.fingerprint == fingerprint(suite, ROOT)
        rows.append((suite.name, "yes" if proved else "no", known.date if known else "never", suite.summary))
    click.echo(tabulate(rows, ("Suite", "Proved", "Last passed", "Summary")))


def table(outcomes: list[Outcome]) -> str:
    """Return the results as a table."""
    rows = [(each.suite, each.state, each.seconds, each.passed, each.skipped, each.reason) for each in outcomes]
    return tabulate(rows, ("Suite", "Result", "Seconds", "Passed", "Skipped", "Remark"))


def _show(outcome: Outcome) -> None:
    remark = f" ({outcome.reason})" if outcome.reason else ""
    click.echo(f"== {outcome.suite}: {outcome.state} after {outcome.seconds} s{remark}", file=sys.stderr)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the processes of the suite, as for SIGINT
    main()
