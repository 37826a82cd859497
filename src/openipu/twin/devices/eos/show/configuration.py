# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about configurations and sessions."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.config.sessions import MAX_COMPLETED, Session
from openipu.twin.devices.eos.config.tree import Config, diff, section
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.switch import Switch

COMMANDS = Commands[ShowContext]()
# Secrets that `sanitized` replaces: what remains before a secret, and the secret.
_SECRETS = re.compile(
    r"^(\s*(?:enable (?:password|secret)(?: \w+)?|username \S+.* secret(?: \w+)?|snmp-server community|"
    r"snmp-server user .* auth \w+|ntp authentication-key \d+ \w+(?: \w+)?)) (?!\*)\S+(.*)$"
)
_PRIVACY_KEY = re.compile(r"( priv \w+) \S+")


def _printed(switch: Switch, command: str, config: Config, full: bool = False, notes: Sequence[str] = ()) -> Output:
    head = [f"! Command: {command}", *notes, f"! device: {switch.hostname} ({switch.model}, EOS-{switch.version})", "!"]
    head += ["! boot system flash:/EOS.swi", "!"]
    text = "\n".join([*head, *config.lines(full), "!", "end"])
    return Output(text, {"header": head, "comments": [], "cmds": config.root.tree()})


@COMMANDS.add("show running-config")
def _running(context: ShowContext, _: tuple[str, ...]) -> Output:
    return _printed(context.switch, "show running-config", context.switch.running)


@COMMANDS.add("show running-config all")
def _running_all(context: ShowContext, _: tuple[str, ...]) -> Output:
    return Output(_printed(context.switch, "show running-config all", context.switch.running, full=True).text)


@COMMANDS.add("show running-config sanitized")
def _running_sanitized(context: ShowContext, _: tuple[str, ...]) -> Output:
    return Output(
        sanitized(_printed(context.switch, "show running-config sanitized", context.switch.running).text or "")
    )


@COMMANDS.add("show running-config all sanitized")
def _running_all_sanitized(context: ShowContext, _: tuple[str, ...]) -> Output:
    command = "show running-config all sanitized"
    return Output(sanitized(_printed(context.switch, command, context.switch.running, full=True).text or ""))


def sanitized(text: str) -> str:
    """Return a configuration with `<removed>` in place of each secret."""
    lines = (_SECRETS.sub(r"\1 <removed>\2", line) for line in text.splitlines())
    return "\n".join(_PRIVACY_KEY.sub(r"\1 <removed>", line) if "snmp-server user" in line else line for line in lines)


@COMMANDS.add("show running-config section LINE")
def _running_section(context: ShowContext, values: tuple[str, ...]) -> Output:
    return Output("\n".join(section(context.switch.running.lines(), values[0])))


@COMMANDS.add("show running-config all section LINE")
def _running_all_section(context: ShowContext, values: tuple[str, ...]) -> Output:
    return Output("\n".join(section(context.switch.running.lines(full=True), values[0])))


@COMMANDS.add("show running-config interfaces INTFS")
def _running_interfaces(context: ShowContext, values: tuple[str, ...]) -> Output:
    interfaces = context.switch.running.interfaces()
    blocks = [interfaces[name] for name in values[0].split(",") if name in interfaces]
    if not blocks:
        raise CliError(1002, "Interface does not exist")
    text = "\n".join(line for block in blocks for line in [block.head, *block.lines()])
    return Output(text, {"cmds": {block.head: {"comments": [], "cmds": block.tree()} for block in blocks}})


@COMMANDS.add("show running-config diffs")
def _running_diffs(context: ShowContext, _: tuple[str, ...]) -> Output:
    return Output(
        diff(context.switch.startup, context.switch.running, "flash:/startup-config", "system:/running-config")
    )


@COMMANDS.add("show startup-config")
def _startup(context: ShowContext, _: tuple[str, ...]) -> Output:
    saved = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(context.switch.startup_saved))
    note = f"! Startup-config last modified at  {saved} by {context.switch.startup_user}"
    return _printed(context.switch, "show startup-config", context.switch.startup, notes=[note])


def session_config(switch: Switch, session: Session) -> Output:
    """Return the candidate configuration of a session."""
    return Output(_printed(switch, f"show session-configuration named {session.name}", session.config).text)


@COMMANDS.add("show session-config named WORD")
def _named(context: ShowContext, values: tuple[str, ...]) -> Output:
    return session_config(context.switch, context.switch.sessions.get(values[0]))


@COMMANDS.add("show session-config named WORD sanitized")
def _named_sanitized(context: ShowContext, values: tuple[str, ...]) -> Output:
    return Output(sanitized(session_config(context.switch, context.switch.sessions.get(values[0])).text or ""))


@COMMANDS.add("show session-config named WORD diffs")
def _named_diffs(context: ShowContext, values: tuple[str, ...]) -> Output:
    return Output(context.switch.sessions.diffs(context.switch.sessions.get(values[0])))


@COMMANDS.add("show configuration sessions [detail]")
def _sessions(context: ShowContext, _: tuple[str, ...]) -> Output:
    sessions = context.switch.sessions
    rows = [[*_session_row(context, session)] for session in sessions.all()]
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


def _session_row(context: ShowContext, session: Session) -> list[str]:
    left = ""
    if session.state == "pendingCommitTimer":
        seconds = max(0, round(session.deadline - context.switch.clock()))
        left = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    done = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(session.completed)) if session.completed else ""
    mark = "*" if session is context.session else " "
    return [f"{mark} {session.name}", session.state, "", "", left, done, session.commit_user]
