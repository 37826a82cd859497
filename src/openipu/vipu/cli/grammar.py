# SPDX-License-Identifier: GPL-3.0-or-later
"""Grammar ``PROGRAM [global flags] VERB NOUN [ID] [flags]`` on click, and its parameter types."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from openipu.process.arguments import Command
from openipu.process.failures import Program
from openipu.vipu.cli import settings
from openipu.vipu.cli.config_file import ConfigError
from openipu.vipu.cli.session import Session, VipuCommandError
from openipu.vipu.cli.settings import Settings

LIST_SECONDS = 2.0  # timeout of lists for completions and hints
_MAX_NAMED = 20  # maximum number of ids in a hint
_MAX_COMPARED = 5000  # maximum number of ids that are searched for a similar one
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
VERBS = {
    "create": "Create an object.",
    "get": "Show one object in full.",
    "list": "Show all objects, one per line.",
    "remove": "Remove an object.",
    "update": "Change an object.",
    "drain": "Move partitions off an IPU-Machine.",
    "reset": "Reset a partition.",
    "release": "Release IPUs in quarantine.",
    "test": "Test a cluster.",
    "discover": "Discover agents.",
    "take-over": "Take over an agent.",
    "watch": "Show changes as they happen.",
}

# Verbs of other command lines, and of older releases of Graphcore's.
_SYNONYMS = {"delete": "remove", "destroy": "remove", "rm": "remove", "show": "get", "describe": "get", "ls": "list"}

_P = ParamSpec("_P")


def command(verb: str, noun: str) -> Callable[[Callable[Concatenate[Session, _P], None]], Leaf]:
    """Return a decorator that makes a command of a function, whose first argument is the session."""

    def decorate(function: Callable[Concatenate[Session, _P], None]) -> Leaf:
        return click.command(noun, cls=Leaf, verb=verb, context_settings=CONTEXT)(click.pass_obj(function))

    return decorate


class Leaf(Command):
    """Command of one verb and noun. It opens the session and prints errors as one line."""

    def __init__(self, *args: Any, verb: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verb = verb
        self.params += settings.leaf_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with a session."""
        params = {name: value for name, value in ctx.params.items() if name not in settings.NAMES}
        session = Session(Settings(ctx), self.verb, self.name or "", params.get("id"))
        ctx.params = params
        run(session, ctx, lambda: click.Command.invoke(self, ctx))


def run(session: Session, ctx: click.Context, function: Callable[[], Any]) -> None:
    """Run a function with this session as context object. Exit with status 1 when it fails."""
    from openipu.shared.vipu.client import VipuError

    ctx.obj = session
    with session:
        try:
            function()
        except VipuError as error:
            wanted = error.code == "NOT_FOUND" and not session.json and _is_terminal()
            hint = _known_ids(session, ctx) if wanted else ""
            session.fail(error.message, error.error_code, error.code, hint)
        except (ConfigError, VipuCommandError) as error:
            session.fail(str(error), error.error_code)
        else:
            return
    ctx.exit(1)


def _is_terminal() -> bool:
    """Return whether a person reads the errors. Programs such as the modules compare the line of the controller."""
    return sys.stderr.isatty()


def _known_ids(session: Session, ctx: click.Context) -> str:
    """Return the remedy for the first id in a command that does not exist: a similar id, or all of them.

    Empty if all exist. The first list that is empty or fails ends the search: a further one would take as long again.
    """
    from openipu.shared.pod.mistakes import similar

    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if not value or not isinstance(parameter.type, Id) or not parameter.type.existing:
            continue
        known = parameter.type.known(session)
        if not known:
            return ""
        missing = [id for id in ((value,) if isinstance(value, str) else value) if id not in known]
        if missing:
            near = similar(missing[0], known) if len(known) <= _MAX_COMPARED else None
            more = f" and {len(known) - _MAX_NAMED} more" if len(known) > _MAX_NAMED else ""
            return f"Did you mean {near!r}?" if near else f"Choose from {', '.join(known[:_MAX_NAMED])}{more}."
    return ""


class Group(Program):
    """Command group whose error for an unknown command names the other program that has it, or a similar command."""

    elsewhere: tuple[str, frozenset[str]] = ("", frozenset())  # the other program and its nouns and verbs

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command, with a hint in the error."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            program, words = self.elsewhere
            if args[0].removesuffix("s") in words and (args[0] in VERBS) == (ctx.parent is None):
                verb = f"{ctx.info_name} " if ctx.parent else ""
                raise click.UsageError(
                    f"No such command {args[0]!r} here: it is {program} {verb}{args[0]}.", ctx
                ) from None
            similar = self._similar(ctx, args[0])
            if similar:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {similar!r}?", ctx) from None
            raise

    def _similar(self, ctx: click.Context, word: str) -> str | None:
        known = self.list_commands(ctx)
        if _SYNONYMS.get(word) in known:
            return _SYNONYMS[word]
        return next(iter(difflib.get_close_matches(word, known, 1)), None)


_Group = TypeVar("_Group", bound=Group)


class Verb(Group):
    """Group of the nouns of a verb. Singular and plural are equal."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a noun in singular or plural."""
        singular = cmd_name.removesuffix("s")
        return next((leaf for noun, leaf in self.commands.items() if noun.removesuffix("s") == singular), None)


def program_group(cls: type[_Group], name: str, help: str, params: Iterable[click.Parameter] = ()) -> _Group:
    """Return a program without commands. ``params``: its flags besides the global ones."""

    @click.pass_context
    def root(ctx: click.Context, /, server_version: bool, **_: Any) -> None:
        if server_version:
            session = Session(Settings(ctx), "get", "server-version")
            run(session, ctx, lambda: _server_version(session))
            ctx.exit()
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)

    group = cls(
        name,
        callback=root,
        help=help,
        invoke_without_command=True,
        context_settings=CONTEXT,
        params=[
            *params,
            *settings.root_options(),
            click.Option(["--server-version"], is_flag=True, help="Show the version of the controller and exit."),
        ],
    )
    return click.version_option(package_name="openipu", prog_name=name, message="%(prog)s %(version)s")(group)


def program(
    name: str, help: str, leaves: Iterable[Leaf], elsewhere: tuple[str, frozenset[str]] = Group.elsewhere
) -> Group:
    """Return the command of a program. ``elsewhere``: another program and its words."""

    group = program_group(Group, name, help)
    group.elsewhere = elsewhere
    for leaf in leaves:
        verb = group.commands.get(leaf.verb)
        if not isinstance(verb, Verb):
            verb = Verb(leaf.verb, help=VERBS[leaf.verb], context_settings=CONTEXT)
            verb.elsewhere = elsewhere
            group.add_command(verb)
        verb.add_command(leaf)
    return group


def _server_version(session: Session) -> None:
    from openipu.shared.vipu.contract import virmgrpc

    version = session.call("version", "GetVersion", virmgrpc.VersionRequest()).version
    host = session.client.connection.address
    session.show({"version": version, "host": host}, f"version: {version}\nhost: {host}")


class Id(click.ParamType[Any]):
    """Parameter type of ids. It validates like the controller, because ids become parts of file names."""

    name = "id"

    def __init__(self, kind: str, existing: bool = True) -> None:
        """``kind``: kind of the object. ``existing``: whether it is in the controller, for completions and hints."""
        self._kind, self.existing = kind, existing

    def known(self, session: Session) -> list[str]:
        """Return the ids in the controller, none when it does not list them in time."""
        from openipu.shared.vipu.client import VipuError
        from openipu.vipu.cli.listing import ids

        try:
            return ids(session, self._kind, LIST_SECONDS)
        except (VipuError, ConfigError):
            return []

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id. Reject invalid ids."""
        from openipu.vipu.domain.errors import RuleViolation
        from openipu.vipu.domain.model import Kind
        from openipu.vipu.domain.validation import check_id

        try:
            check_id(Kind(self._kind), value)
        except RuleViolation as violation:
            self.fail(f"{value!r}: {violation.reason}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the matching ids in the controller, none when it does not respond."""
        if not self.existing:
            return []
        with Session(Settings(ctx), "list", f"{self._kind}s", timeout=LIST_SECONDS) as session:
            return [CompletionItem(id) for id in self.known(session) if id.startswith(incomplete)]


class Count(click.IntRange):
    """Parameter type of positive integers."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(min=1)


class Ids(Id):
    """Parameter type of comma-separated ids, whose order is kept."""

    name = "id,id,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the ids as a tuple."""
        if isinstance(value, tuple):
            return value
        return tuple(Id.convert(self, id.strip(), param, ctx) for id in value.split(","))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the last id."""
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(before + comma + item.value) for item in super().shell_complete(ctx, param, last)]


class EnumName(click.ParamType[Any]):
    """Parameter type of the names of an enum of the API, in upper or lower case."""

    name = "name"

    def __init__(self, names: Any) -> None:
        """``names``: a ``names.Names``."""
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names as metavariable."""
        return f"[{'|'.join(self._names.choices)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name in display form."""
        try:
            return str(self._names.text(self._names.number(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with ``incomplete``."""
        return [CompletionItem(name) for name in self._names.choices if name.startswith(incomplete.lower())]
