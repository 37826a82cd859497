# SPDX-License-Identifier: GPL-3.0-or-later
"""The grammar ``PROGRAM [global flags] VERB NOUN [ID] [flags]`` on click, and the types of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

import click
from click.shell_completion import CompletionItem

from openipu.vipu.cli import settings
from openipu.vipu.cli.config import ConfigError
from openipu.vipu.cli.session import Failed, Session
from openipu.vipu.cli.settings import Settings

COMPLETION_SECONDS = 2.0
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
VERBS = {
    "create": "Make something new.",
    "get": "Show one thing in full.",
    "list": "Show all there are, one line each.",
    "remove": "Remove something.",
    "reset": "Begin anew.",
    "test": "Find out what is wrong.",
    "discover": "Look for what is not known yet.",
}

_P = ParamSpec("_P")


def command(verb: str, noun: str) -> Callable[[Callable[Concatenate[Session, _P], None]], Leaf]:
    """Make a command of a function, whose first argument is the session."""

    def decorate(function: Callable[Concatenate[Session, _P], None]) -> Leaf:
        return click.command(noun, cls=Leaf, verb=verb, context_settings=CONTEXT)(click.pass_obj(function))

    return decorate


class Leaf(click.Command):
    """A verb with its noun: opens the session, and makes one line and exit status 1 of what goes wrong."""

    def __init__(self, *args: Any, verb: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verb = verb
        self.params += settings.leaf_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        own = {name: value for name, value in ctx.params.items() if name not in settings.NAMES}
        session = Session(Settings(ctx), self.verb, self.name or "", own.get("id"))
        ctx.params = own
        run(session, ctx, lambda: click.Command.invoke(self, ctx))


def run(session: Session, ctx: click.Context, function: Callable[[], Any]) -> None:
    """Run with this session as the object of the context; ends with status 1 when it fails."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError

    ctx.obj = session
    try:
        with session:
            function()
    except VipuError as error:
        session.fail(error.sentence, error.code)
    except (ConfigError, Failed) as error:
        session.fail(str(error))
    else:
        return
    ctx.exit(1)


class Group(click.Group):
    """Names the program that has a word which this one does not know."""

    elsewhere: tuple[str, frozenset[str]] = ("", frozenset())  # a program and its own nouns and verbs

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            program, words = self.elsewhere
            if args[0].removesuffix("s") in words:
                verb = f"{ctx.info_name} " if ctx.parent else ""
                raise click.UsageError(
                    f"No such command {args[0]!r} here: it is {program} {verb}{args[0]}.", ctx
                ) from None
            raise


class Verb(Group):
    """All nouns of a verb; singular and plural are one."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The noun, in either number."""
        wanted = cmd_name.removesuffix("s")
        return next((leaf for noun, leaf in self.commands.items() if noun.removesuffix("s") == wanted), None)


def program(
    name: str, help: str, leaves: Iterable[Leaf], elsewhere: tuple[str, frozenset[str]] = Group.elsewhere
) -> click.Group:
    """The command of a program; ``elsewhere`` are the words that another program knows."""

    @click.pass_context
    def root(ctx: click.Context, /, server_version: bool, **_: Any) -> None:
        if server_version:
            session = Session(Settings(ctx), "get", "server-version")
            run(session, ctx, lambda: _server_version(session))
            ctx.exit()
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)

    group = Group(
        name,
        callback=root,
        help=help,
        invoke_without_command=True,
        context_settings=CONTEXT,
        params=[
            *settings.root_options(),
            click.Option(["--server-version"], is_flag=True, help="Show the version of the controller, and exit."),
        ],
    )
    group.elsewhere = elsewhere
    group = click.version_option(package_name="openipu", prog_name=name, message="%(prog)s %(version)s")(group)
    for leaf in leaves:
        verb = group.commands.get(leaf.verb)
        if not isinstance(verb, Verb):
            verb = Verb(leaf.verb, help=VERBS[leaf.verb], context_settings=CONTEXT)
            verb.elsewhere = elsewhere
            group.add_command(verb)
        verb.add_command(leaf)
    return group


def _server_version(session: Session) -> None:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    version = session.call("version", "GetVersion", virmgrpc.VersionRequest()).version
    host = session.client.connection.address
    session.show({"version": version, "host": host}, f"version: {version}\nhost: {host}")


class Id(click.ParamType[Any]):
    """The id of an object, checked as the controller does before it goes anywhere, a file name least of all."""

    name = "id"

    def __init__(self, kind: str, existing: bool = True) -> None:
        """``existing`` ones are completed with what the controller has."""
        self._kind, self._existing = kind, existing

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what is no id."""
        from openipu.vipu.checks import Refused, check_id
        from openipu.vipu.model import Kind

        try:
            check_id(Kind(self._kind), value)
        except Refused as refused:
            self.fail(f"{value!r}: {refused.reason}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The ids that the controller tells; none when it does not answer."""
        if not self._existing:
            return []
        from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError

        from openipu.vipu.cli.listing import ids

        try:
            with Session(Settings(ctx), "list", f"{self._kind}s", timeout=COMPLETION_SECONDS) as session:
                found = ids(session, self._kind)
        except (VipuError, ConfigError):
            return []
        return [CompletionItem(id) for id in found if id.startswith(incomplete)]


class Count(click.IntRange):
    """A whole number from 1 on."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(min=1)


class Ids(Id):
    """Several ids with commas between, in an order that may matter."""

    name = "id,id,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The ids as a tuple."""
        if isinstance(value, tuple):
            return value
        return tuple(Id.convert(self, id.strip(), param, ctx) for id in value.split(","))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The last of them."""
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(before + comma + item.value) for item in super().shell_complete(ctx, param, last)]


class Named(click.ParamType[Any]):
    """One of the names of an enum of the API, in whatever case."""

    name = "name"

    def __init__(self, names: Any) -> None:
        """``names`` is a ``names.Names``."""
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names."""
        return f"[{'|'.join(self._names.choices)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name in the form that is shown."""
        try:
            return str(self._names.text(self._names.number(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        return [CompletionItem(name) for name in self._names.choices if name.startswith(incomplete.lower())]
