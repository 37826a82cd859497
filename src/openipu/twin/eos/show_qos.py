# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing priority flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openipu.twin.eos.commands import Commands, Output
from openipu.twin.eos.config import Block
from openipu.twin.eos.ports import kind_of, short
from openipu.twin.eos.show_interfaces import chosen

if TYPE_CHECKING:
    from openipu.twin.eos.cli import Cli

COMMANDS = Commands()
_WATCHDOG = ("priority-flow-control", "pause", "watchdog")
_ALL = "0 1 2 3 4 5 6 7"


def no_drop(port: Block) -> list[int]:
    """The priorities of a port whose frames are paused instead of dropped, whether flow control is on or not."""
    lines = port.all("priority-flow-control", "priority")
    return sorted(int(line.split()[2]) for line in lines if line.endswith(" no-drop"))


def _default(root: Block, what: str) -> float:
    return float(root.value(*_WATCHDOG, "default", what) or 0)


@COMMANDS.add(
    "show priority-flow-control [status]",
    "show interfaces priority-flow-control [status]",
    "show priority-flow-control interfaces INTFS",
    "show interfaces INTFS priority-flow-control [status]",
    privileged=False,
)
def _flow_control(cli: Cli, values: tuple[str, ...]) -> Output:
    """The names of the JSON form are those of EOS as far as they are known; its manual shows the text only."""
    root = cli.switch.running.root
    off = bool(root.get("priority-flow-control", "all", "off"))
    times = {what: _default(root, what) for what in ("timeout", "recovery-time", "polling-interval")}
    action = root.value(*_WATCHDOG, "action") or "errdisable"
    override = "true" if root.get(*_WATCHDOG, "override", "action", "drop") else "false"
    lines = [
        f"The hardware supports PFC on priorities {_ALL}",
        f"PFC receive processing is enabled on priorities {_ALL}",
        f"The PFC watchdog timeout is {times['timeout']} second(s){_own(times['timeout'])}",
        f"The PFC watchdog recovery-time is {times['recovery-time']} second(s) (auto){_own(times['recovery-time'])}",
        f"The PFC watchdog polling-interval is {times['polling-interval']} second(s){_own(times['polling-interval'])}",
        f"The PFC watchdog action is {action}",
        f"The PFC watchdog override action drop is {override}",
        f"Global PFC : {'Disabled' if off else 'Enabled'}",
        "",
        "E: PFC Enabled, D: PFC Disabled, A: PFC Active, W: PFC Watchdog Enabled",
        "Port             Status Priorities Action      Timeout  Recovery   Polling     Note",
        "                                                        Interval   Config/Oper",
        "-" * 82,
    ]
    tree = {}
    for one in chosen(cli.switch.forwarding, values):
        if kind_of(one.name) != "Ethernet":
            continue
        enabled = bool(one.block.get("priority-flow-control")) and not off
        priorities = no_drop(one.block)
        active = enabled and one.up and bool(priorities)
        guarded = enabled and times["timeout"] > 0
        status = f"{'E' if enabled else 'D'} {'A' if active else '-'} {'W' if guarded else '-'}"
        shown = " ".join(map(str, priorities)) if enabled and priorities else "-"
        lines.append(
            f"{short(one.name):<16} {status:<6} {shown:<10} {'-':<11} {'-':<8} {'-':<10} {'- / -':<11}".rstrip()
        )
        tree[one.name] = {
            "enabled": enabled,
            "active": active,
            "priorities": priorities if enabled else [],
            "watchdog": {"enabled": guarded, "action": action},
            "note": "",
        }
    return Output(
        "\n".join(lines),
        {
            "enabled": not off,
            "supportedPriorities": list(range(8)),
            "watchdog": {
                "timeout": times["timeout"],
                "recoveryTime": times["recovery-time"],
                "pollingInterval": times["polling-interval"],
                "action": action,
            },
            "interfaces": tree,
        },
    )


def _own(value: float) -> str:
    return "" if value else " (default)"
