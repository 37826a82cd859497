# SPDX-License-Identifier: GPL-3.0-or-later
"""Arista's command API: JSON-RPC 2.0 with the one method `runCmds`, and its answers. No I/O.

Codes and their words are those of the "eAPI overview" in the manual of EOS.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openipu.twin.eos.cli import Cli
from openipu.twin.eos.grammar import CliError
from openipu.twin.eos.switch import Switch

_WORDS = {
    1000: "could not run command",
    1001: "internal error",
    1002: "invalid command",
    1003: "unconverted command",
    1004: "incompatible command",
    1005: "permission to run command denied",
}
_PARSE, _INVALID, _NO_METHOD, _PARAMS = -32700, -32600, -32601, -32602
_KNOWN = {
    "version",
    "cmds",
    "format",
    "timestamps",
    "autoComplete",
    "expandAliases",
    "includeErrorDetail",
    "stopOnError",
    "streaming",
}
Answer = dict[str, Any]


class RpcError(Exception):
    """A request that is none: JSON-RPC's code, and a sentence."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Request:
    """One call of `runCmds`: commands, each with what is entered at its prompt, and how they are answered."""

    commands: Sequence[tuple[str, str]]
    as_json: bool = True
    complete: bool = False
    timestamps: bool = False
    stop: bool = True


def handle(switch: Switch, user: str, body: bytes) -> Answer:
    """Carry a request out, and give the answer.

    Raises:
        Dropped: when the connection breaks in it.
    """
    number: Any = None
    try:
        try:
            message = json.loads(body)
        except ValueError:
            raise RpcError(_PARSE, "Unable to parse JSON") from None
        number = message.get("id") if isinstance(message, dict) else None
        answer = _run(switch, user, read(message))
    except RpcError as error:
        answer = {"error": {"code": error.code, "message": str(error)}}
    return {"jsonrpc": "2.0", "id": number, **answer}


def read(message: Any) -> Request:
    """A message as a request.

    Raises:
        RpcError: when it is none.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "method" not in message:
        raise RpcError(_INVALID, "Invalid request: it is no JSON-RPC 2.0")
    if message["method"] != "runCmds":
        raise RpcError(_NO_METHOD, f"Method not found: '{message['method']}'")
    params = message.get("params", {})
    if isinstance(params, list):
        params = dict(zip(("version", "cmds", "format"), params, strict=False))
    if not isinstance(params, Mapping):
        raise RpcError(_PARAMS, "Invalid params: they are neither an object nor a list")
    for name in params:
        if name not in _KNOWN:
            raise RpcError(_PARAMS, f"runCmds() got an unexpected keyword argument '{name}'")
    if params.get("version", "latest") not in {1, "latest"}:
        raise RpcError(_PARAMS, f"Invalid params: no version {params['version']!r}, but 1 and 'latest'")
    form = params.get("format", "json")
    if form not in {"json", "text"}:
        raise RpcError(_PARAMS, f"Invalid params: format {form!r} is neither 'json' nor 'text'")
    commands = params.get("cmds")
    if not isinstance(commands, list):
        raise RpcError(_PARAMS, "Invalid params: 'cmds' is no list of commands")
    return Request(
        [_command(command) for command in commands],
        form == "json",
        bool(params.get("autoComplete")),
        bool(params.get("timestamps")),
        params.get("stopOnError", True) is not False,
    )


def _command(command: Any) -> tuple[str, str]:
    if isinstance(command, str):
        return command, ""
    if isinstance(command, dict) and isinstance(command.get("cmd"), str) and isinstance(command.get("input", ""), str):
        return command["cmd"], command.get("input", "")
    raise RpcError(_PARAMS, f"Invalid params: {json.dumps(command)} is no command")


def _run(switch: Switch, user: str, request: Request) -> Answer:
    cli = Cli(switch, user, request.complete)
    done: list[Answer] = []
    error: Answer | None = None
    for place, (command, entered) in enumerate(request.commands, 1):
        start = time.time()
        try:
            answer = cli.run(command, entered, request.as_json)
        except CliError as refusal:
            answer = {"errors": [refusal.text]}
            if error is None:
                words = _WORDS.get(refusal.code, _WORDS[1000])
                message = f"CLI command {place} of {len(request.commands)} '{command}' failed: {words}"
                error = {"code": refusal.code, "message": message}
        if request.timestamps:
            answer = {**answer, "_meta": {"execStartTime": start, "execDuration": time.time() - start}}
        done.append(answer)
        if error is not None and request.stop:
            break
    return {"result": done} if error is None else {"error": {**error, "data": done}}
