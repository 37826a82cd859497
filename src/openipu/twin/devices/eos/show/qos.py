# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about priority flow control."""

from __future__ import annotations

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.config.tree import Block
from openipu.twin.devices.eos.ports import kind_of, short
from openipu.twin.devices.eos.show.context import ShowContext, selected

COMMANDS = Commands[ShowContext]()
_WATCHDOG = ("priority-flow-control", "pause", "watchdog")
_ALL = "0 1 2 3 4 5 6 7"


def no_drop(port: Block) -> list[int]:
    """Return the no-drop priorities of a port, regardless of whether flow control is on."""
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
def _flow_control(context: ShowContext, values: tuple[str, ...]) -> Output:
    # Some names of the JSON form are guesses: the EOS manual shows only the text form.
    root = context.switch.running.root
    off = bool(root.get("priority-flow-control", "all", "off"))
    times = {what: _default(root, what) for what in ("timeout", "recovery-time", "polling-interval")}
    action = root.value(*_WATCHDOG, "action") or "errdisable"
    override = "true" if root.get(*_WATCHDOG, "override", "action", "drop") else "false"
    lines = [
        f"The hardware supports PFC on priorities {_ALL}",
        f"PFC receive processing is enabled on priorities {_ALL}",
        f"The PFC watchdog timeout is {times['timeout']} second(s){_note(times['timeout'])}",
        f"The PFC watchdog recovery-time is {times['recovery-time']} second(s) (auto){_note(times['recovery-time'])}",
        f"The PFC watchdog polling-interval is {times['polling-interval']} second(s){_note(times['polling-interval'])}",
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
    for one in selected(context.switch.forwarding, values):
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


def _note(value: float) -> str:
    return "" if value else " (default)"
