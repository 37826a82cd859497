# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of a switch: modes, and the commands that change state outside of configuration statements."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from openipu.twin.devices.eos.commands import SILENT, Commands, Output
from openipu.twin.devices.eos.config.edit import Editor, parse_config
from openipu.twin.devices.eos.config.grammar import CliError, ParseState
from openipu.twin.devices.eos.config.sessions import Session
from openipu.twin.devices.eos.config.tree import Config
from openipu.twin.devices.eos.filters import Filter, split
from openipu.twin.devices.eos.show import (
    accounts,
    configuration,
    counters,
    eapi_service,
    environment,
    interfaces,
    ip,
    lacp,
    layer2,
    lldp,
    qos,
    services,
    spanning_tree,
    system,
)
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.switch import Switch

_SHOW = (
    accounts,
    configuration,
    counters,
    eapi_service,
    environment,
    interfaces,
    ip,
    lacp,
    layer2,
    lldp,
    qos,
    services,
    spanning_tree,
    system,
)
SHOW_COMMANDS = Commands[ShowContext]()
for _commands in (module.COMMANDS for module in _SHOW):
    SHOW_COMMANDS.include(_commands)
# Commands denied to the role network-operator (rule 10 of that role in EOS).
_DENIED_TO_OPERATORS = re.compile(r"configure|bash|python-shell|\||write|copy|no ")


class ConnectionDropped(Exception):
    """Raised to break the connection to the caller."""


class Cli:
    """Command line of one user; eAPI opens one for each request.

    Args:
        switch: switch that runs the commands.
        user: user name.
        complete: whether words may be abbreviated.
    """

    def __init__(self, switch: Switch, user: str, complete: bool = False) -> None:
        self.switch = switch
        self.user = user
        self.complete = complete
        self.editor: Editor | None = None
        self.session: Session | None = None
        # EOS starts in privileged mode only when logins are authorised by privilege.
        self.privileged = bool(switch.running.root.get("aaa", "authorization", "exec", "default"))

    @property
    def context(self) -> ShowContext:
        """Input of `show` commands."""
        return ShowContext(self.switch, self.session)

    def run(self, command: str, entered: str = "", as_json: bool = False) -> dict[str, Any]:
        """Run one command and return its eAPI result.

        Args:
            command: command with its filters.
            entered: input at the prompt of the command, for example a password.
            as_json: return the JSON form of the output.

        Raises:
            CliError: with the code of eAPI, when the command is rejected.
            ConnectionDropped: when a fault breaks the connection during the command.
        """
        filters: list[Filter] = []
        if self._is_show(command):
            command, filters = split(command, self.complete)
        if self.user in self.switch.credentials.operators and _DENIED_TO_OPERATORS.match(command):
            raise CliError(1005, "Authorization denied for command")
        output = self._run(command.split(), entered)
        names = {each.name for each in filters}
        if as_json or "json" in names:
            if output.tree is None or names - {"json"}:
                raise CliError(
                    1003,
                    "Command cannot be used over the API at this time. To see ASCII output, set format='text' in "
                    "your request",
                )
            return output.tree if as_json else {"output": json.dumps(output.tree, indent=4) + "\n"}
        if output.text is None:
            raise CliError(1000, "The twin prints this command in JSON only")
        text = output.text
        for each in filters:
            text = each.apply(text)
        return {"output": text + "\n" if text and not text.endswith("\n") else text}

    def _is_show(self, command: str) -> bool:
        first = command.split(maxsplit=1)[:1]
        return first == ["show"] or (self.complete and first in (["sh"], ["sho"]))

    def _run(self, words: Sequence[str], entered: str) -> Output:
        if not words or words[0].startswith("!"):
            return SILENT
        state = ParseState(self.switch.ports, words, self.complete)
        # Outside of configuration mode, `en` means `enable`, although the twin also accepts `end` there.
        abbreviated = self.complete and self.editor is None and words[0] in {"en", "ena", "enab", "enabl"}
        if len(words) == 1 and (words[0] == "enable" or abbreviated):
            return self._enable(entered)
        if self.editor is not None and (found := CONFIG_COMMANDS.find(state, privileged=True)):
            return found[0](self, found[1])
        if found := COMMANDS.find(state, self.privileged):
            return found[0](self, found[1])
        if shown := SHOW_COMMANDS.find(state, self.privileged):
            return shown[0](self.context, shown[1])
        # Commands and statements can both begin with `no` or `default`. Otherwise the first word decides.
        if self.editor is None or (state.furthest > 0 and words[0] not in {"no", "default"}):
            raise state.error()
        self.editor.line(words, entered, self.complete)
        return SILENT

    def _enable(self, entered: str) -> Output:
        if self.switch.credentials.enable and entered.strip() != self.switch.credentials.enable:
            raise CliError(1000, "Bad secret")
        self.privileged = True
        return SILENT

    def configure(self, session: Session | None) -> None:
        """Enter configuration mode, of a session or of the running configuration."""
        if session is None:
            self.switch.counters.settle()
        self.session = session
        self.editor = Editor(session.config if session else self.switch.running, self.switch.engine)

    def leave_configuration(self) -> None:
        """Leave configuration mode, if the command line is in it."""
        if self.editor is not None and self.session is None:
            self.switch.counters.settle()
        self.editor = self.session = None

    def commit(self, session: Session, timer: float | None = None) -> None:
        """Commit a session, and break the connection if the fault `drop_commit` is set."""
        drop, self.switch.faults.drop_commit = self.switch.faults.drop_commit, ""
        if drop == "before":
            raise ConnectionDropped
        self.switch.sessions.commit(session, self.user, timer)
        if drop:
            raise ConnectionDropped


COMMANDS = Commands[Cli]()
CONFIG_COMMANDS = Commands[Cli]()


@COMMANDS.add("disable", privileged=False)
def _disable(cli: Cli, _: tuple[str, ...]) -> Output:
    cli.privileged = False
    return SILENT


@COMMANDS.add("exit", "terminal length <0-32767>", "terminal width <10-32767>", "end", privileged=False)
def _ignore_command(cli: Cli, _: tuple[str, ...]) -> Output:
    return SILENT


@CONFIG_COMMANDS.add("exit")
def _exit(cli: Cli, _: tuple[str, ...]) -> Output:
    if cli.editor is not None and not cli.editor.leave():
        cli.leave_configuration()
    return SILENT


@CONFIG_COMMANDS.add("end")
def _end(cli: Cli, _: tuple[str, ...]) -> Output:
    cli.leave_configuration()
    return SILENT


@COMMANDS.add("configure [terminal]")
def _configure(cli: Cli, _: tuple[str, ...]) -> Output:
    cli.configure(None)
    return SILENT


@COMMANDS.add("configure session")
def _new_session(cli: Cli, _: tuple[str, ...]) -> Output:
    cli.configure(cli.switch.sessions.enter("", cli.user))
    return SILENT


@COMMANDS.add("configure session WORD")
def _session(cli: Cli, values: tuple[str, ...]) -> Output:
    cli.configure(cli.switch.sessions.enter(values[0], cli.user))
    return SILENT


@COMMANDS.add("configure session WORD commit [timer TIME]")
def _commit_named(cli: Cli, values: tuple[str, ...]) -> Output:
    cli.commit(cli.switch.sessions.get(values[0]), _seconds(values[1:]))
    cli.leave_configuration()
    return SILENT


@COMMANDS.add("configure session WORD abort")
def _abort_named(cli: Cli, values: tuple[str, ...]) -> Output:
    cli.switch.sessions.abort(cli.switch.sessions.get(values[0]))
    cli.leave_configuration()
    return SILENT


@COMMANDS.add("no configure session WORD")
def _delete_named(cli: Cli, values: tuple[str, ...]) -> Output:
    cli.switch.sessions.delete(cli.switch.sessions.get(values[0]))
    cli.leave_configuration()
    return SILENT


@CONFIG_COMMANDS.add("commit [timer TIME]")
def _commit(cli: Cli, values: tuple[str, ...]) -> Output:
    session = _in_session(cli, "commit")
    cli.commit(session, _seconds(values))
    cli.leave_configuration()
    return SILENT


@CONFIG_COMMANDS.add("abort")
def _abort(cli: Cli, _: tuple[str, ...]) -> Output:
    if cli.session is not None:
        cli.switch.sessions.abort(cli.session)
    cli.leave_configuration()
    return SILENT


@CONFIG_COMMANDS.add("rollback clean-config")
def _rollback(cli: Cli, _: tuple[str, ...]) -> Output:
    session = _in_session(cli, "rollback")
    session.config = cli.switch.factory_config()
    cli.configure(session)
    return SILENT


@CONFIG_COMMANDS.add("show session-config diffs")
def _session_diffs(cli: Cli, _: tuple[str, ...]) -> Output:
    return Output(cli.switch.sessions.diffs(_in_session(cli, "show")))


@CONFIG_COMMANDS.add("show session-config")
def _session_config(cli: Cli, _: tuple[str, ...]) -> Output:
    return configuration.session_config(cli.switch, _in_session(cli, "show"))


@COMMANDS.add("write [memory]", "copy running-config startup-config")
def _write(cli: Cli, _: tuple[str, ...]) -> Output:
    cli.switch.save(cli.user)
    return Output("Copy completed successfully.", {"messages": ["Copy completed successfully."]})


@COMMANDS.add("copy startup-config|running-config WORD")
def _copy(cli: Cli, values: tuple[str, ...]) -> Output:
    source, url = values
    config = cli.switch.startup if source == "startup-config" else cli.switch.running
    cli.switch.flash.write(url, _text(config))
    return Output("Copy completed successfully.", {"messages": ["Copy completed successfully."]})


@COMMANDS.add("configure replace WORD")
def _replace(cli: Cli, values: tuple[str, ...]) -> Output:
    _load(cli, cli.switch.flash.read(values[0]))
    return SILENT


@COMMANDS.add("configure checkpoint save [WORD]")
def _save_checkpoint(cli: Cli, values: tuple[str, ...]) -> Output:
    name = values[0] if values else ""
    cli.switch.flash.save_checkpoint(name, _text(cli.switch.running), cli.user, cli.switch.clock())
    return SILENT


@COMMANDS.add("configure checkpoint restore WORD")
def _restore_checkpoint(cli: Cli, values: tuple[str, ...]) -> Output:
    _load(cli, cli.switch.flash.checkpoint(values[0]))
    return SILENT


@COMMANDS.add("clear counters", "clear counters INTFS")
def _clear_counters(cli: Cli, values: tuple[str, ...]) -> Output:
    cli.switch.counters.clear(values[0].split(",") if values else cli.switch.ports.physical)
    return SILENT


@COMMANDS.add("dir all-filesystems", privileged=False)
def _directories(cli: Cli, _: tuple[str, ...]) -> Output:
    names = ("flash:", "file:", "session:", "system:")
    return Output("\n\n".join(f"Directory of {name}/" for name in names))


def _text(config: Config) -> str:
    return "\n".join([*config.lines(), "!", "end", ""])


def _load(cli: Cli, text: str) -> None:
    """Make the configuration of a text the running one."""
    try:
        config = parse_config(text, cli.switch.ports, cli.switch.engine)
    except ValueError as error:
        raise CliError(1000, str(error)) from None
    cli.switch.sessions.replace(config)


def _in_session(cli: Cli, verb: str) -> Session:
    if cli.session is None:
        raise CliError(1002, f"Invalid input (at token 0: '{verb}')")
    return cli.session


def _seconds(values: Sequence[str]) -> float | None:
    if not values:
        return None
    hours, minutes, seconds = (int(part) for part in values[0].split(":"))
    return float(3600 * hours + 60 * minutes + seconds)
