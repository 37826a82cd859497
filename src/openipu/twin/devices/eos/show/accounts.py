# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about users and banners."""

from __future__ import annotations

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.config.users import parse_user
from openipu.twin.devices.eos.show.context import ShowContext

COMMANDS = Commands[ShowContext]()


@COMMANDS.add("show users accounts")
def _accounts(context: ShowContext, _: tuple[str, ...]) -> Output:
    lines, tree = [], {}
    for line in context.switch.running.root.all("username"):
        if line.split()[2] == "ssh-key":
            continue
        user = parse_user(line)
        key = context.switch.running.root.value("username", user.name, "ssh-key") or ""
        lines += [
            f"user: {user.name}",
            f"       role: {user.role}",
            f"       privilege level: {user.privilege}",
            f"       ssh public key: {key}",
        ]
        tree[user.name] = {
            "username": user.name,
            "role": user.role,
            "privLevel": user.privilege,
            "secret": user.hash,
            "sshAuthorizedKey": key,
        }
    return Output("\n".join(lines), {"users": tree})


def _banner(context: ShowContext, kind: str) -> str:
    line = context.switch.running.root.get("banner", kind)
    return "" if line is None else "\n".join(line.split("\n")[1:-1])


@COMMANDS.add("show banner login")
def _login_banner(context: ShowContext, _: tuple[str, ...]) -> Output:
    text = _banner(context, "login")
    return Output(text, {"loginBanner": text})


@COMMANDS.add("show banner motd")
def _motd(context: ShowContext, _: tuple[str, ...]) -> Output:
    text = _banner(context, "motd")
    return Output(text, {"motd": text})
