# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing configurations and sessions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from openipu.twin.eos.commands import Commands, Output, table
from openipu.twin.eos.config import Config, diff, section
from openipu.twin.eos.grammar import CliError
from openipu.twin.eos.sessions import MAX_COMPLETED, Session

if TYPE_CHECKING:
    from openipu.twin.eos.cli import Cli

COMMANDS = Commands()


def _printed(cli: Cli, command: str, config: Config, full: bool = False, notes: Sequence[str] = ()) -> Output:
    switch = cli.switch
    head = [f"! Command: {command}", *notes, f"! device: {switch.hostname} ({switch.model}, EOS-{switch.version})", "!"]
    head += ["! boot system flash:/EOS.swi", "!"]
    text = "\n".join([*head, *config.lines(full), "!", "end"])
    return Output(text, {"header": head, "comments": [], "cmds": config.root.tree()})


@COMMANDS.add("show running-config")
def _running(cli: Cli, _: tuple[str, ...]) -> Output:
    return _printed(cli, "show running-config", cli.switch.running)


@COMMANDS.add("show running-config all")
def _running_all(cli: Cli, _: tuple[str, ...]) -> Output:
    return Output(_printed(cli, "show running-config all", cli.switch.running, full=True).text)


@COMMANDS.add("show running-config section LINE")
def _running_section(cli: Cli, values: tuple[str, ...]) -> Output:
    return Output("\n".join(section(cli.switch.running.lines(), values[0])))


@COMMANDS.add("show running-config all section LINE")
def _running_all_section(cli: Cli, values: tuple[str, ...]) -> Output:
    return Output("\n".join(section(cli.switch.running.lines(full=True), values[0])))


@COMMANDS.add("show running-config interfaces INTFS")
def _running_interfaces(cli: Cli, values: tuple[str, ...]) -> Output:
    there = cli.switch.running.interfaces()
    blocks = [there[name] for name in values[0].split(",") if name in there]
    if not blocks:
        raise CliError(1002, "Interface does not exist")
    text = "\n".join(line for block in blocks for line in [block.head, *block.lines()])
    return Output(text, {"cmds": {block.head: {"comments": [], "cmds": block.tree()} for block in blocks}})


@COMMANDS.add("show running-config diffs")
def _running_diffs(cli: Cli, _: tuple[str, ...]) -> Output:
    return Output(diff(cli.switch.startup, cli.switch.running, "flash:/startup-config", "system:/running-config"))


@COMMANDS.add("show startup-config")
def _startup(cli: Cli, _: tuple[str, ...]) -> Output:
    saved = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(cli.switch.startup_saved))
    note = f"! Startup-config last modified at  {saved} by {cli.switch.startup_user}"
    return _printed(cli, "show startup-config", cli.switch.startup, notes=[note])


def of_session(cli: Cli, session: Session) -> Output:
    """What a session would make the configuration."""
    return Output(_printed(cli, f"show session-configuration named {session.name}", session.config).text)


@COMMANDS.add("show session-config named WORD")
def _named(cli: Cli, values: tuple[str, ...]) -> Output:
    return of_session(cli, cli.switch.sessions.named(values[0]))


@COMMANDS.add("show session-config named WORD diffs")
def _named_diffs(cli: Cli, values: tuple[str, ...]) -> Output:
    return Output(cli.switch.sessions.diffs(cli.switch.sessions.named(values[0])))


@COMMANDS.add("show configuration sessions [detail]")
def _sessions(cli: Cli, _: tuple[str, ...]) -> Output:
    sessions = cli.switch.sessions
    rows = [[*_row(cli, session)] for session in sessions.rows()]
    widths = (22, 18, 10, 8, 16, 19, 12)
    heads = ("  Name", "State", "User", "Terminal", "Commit Time Left", "Completed Time", "Committed By")
    text = "\n".join(
        [
            f"Maximum number of completed sessions: {MAX_COMPLETED}",
            f"Maximum number of pending sessions: {sessions.max_pending}",
            "",
            table(heads, [["-" * width for width in widths], *rows], widths),
        ]
    )
    return Output(text, sessions.tree())


def _row(cli: Cli, session: Session) -> list[str]:
    left = ""
    if session.state == "pendingCommitTimer":
        seconds = max(0, round(session.deadline - cli.switch.clock()))
        left = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    done = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(session.completed)) if session.completed else ""
    mark = "*" if session is cli.session else " "
    return [f"{mark} {session.name}", session.state, "", "", left, done, session.commit_user]
