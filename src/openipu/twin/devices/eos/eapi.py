# SPDX-License-Identifier: GPL-3.0-or-later
"""Arista's command API (eAPI): JSON-RPC 2.0 with the single method `runCmds`. No I/O.

Source of the codes and their messages: "eAPI overview" in the EOS manual.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openipu.twin.devices.eos.cli import Cli
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.switch import Switch

_MESSAGES = {
    1000: "could not run command",
    1001: "internal error",
    1002: "invalid command",
    1003: "unconverted command",
    1004: "incompatible command",
    1005: "permission to run command denied",
}
_PARSE, _INVALID, _NO_METHOD, _PARAMS = -32700, -32600, -32601, -32602
_PARAMETERS = {
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
Response = dict[str, Any]


class RpcError(Exception):
    """Raised for an invalid request; `code` is that of JSON-RPC."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Request:
    """Call of `runCmds`: commands, each with the input at its prompt, and the form of the response."""

    commands: Sequence[tuple[str, str]]
    as_json: bool = True
    complete: bool = False
    timestamps: bool = False
    stop: bool = True


def handle(switch: Switch, user: str, body: bytes) -> Response:
    """Run a request and return the response.

    Raises:
        ConnectionDropped: when a fault breaks the connection.
    """
    number: Any = None
    try:
        try:
            message = json.loads(body)
        except ValueError:
            raise RpcError(_PARSE, "Unable to parse JSON") from None
        number = message.get("id") if isinstance(message, dict) else None
        response = _run(switch, user, parse_request(message))
    except RpcError as error:
        response = {"error": {"code": error.code, "message": str(error)}}
    return {"jsonrpc": "2.0", "id": number, **response}


def parse_request(message: Any) -> Request:
    """Return the request in a JSON-RPC message.

    Raises:
        RpcError: when it is invalid.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "method" not in message:
        raise RpcError(_INVALID, "Invalid request: not JSON-RPC 2.0")
    if message["method"] != "runCmds":
        raise RpcError(_NO_METHOD, f"Method not found: '{message['method']}'")
    params = message.get("params", {})
    if isinstance(params, list):
        params = dict(zip(("version", "cmds", "format"), params, strict=False))
    if not isinstance(params, Mapping):
        raise RpcError(_PARAMS, "Invalid params: neither an object nor a list")
    for name in params:
        if name not in _PARAMETERS:
            raise RpcError(_PARAMS, f"runCmds() got an unexpected keyword argument '{name}'")
    if params.get("version", "latest") not in {1, "latest"}:
        raise RpcError(_PARAMS, f"Invalid params: version {params['version']!r} is neither 1 nor 'latest'")
    form = params.get("format", "json")
    if form not in {"json", "text"}:
        raise RpcError(_PARAMS, f"Invalid params: format {form!r} is neither 'json' nor 'text'")
    commands = params.get("cmds")
    if not isinstance(commands, list):
        raise RpcError(_PARAMS, "Invalid params: 'cmds' is not a list of commands")
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
    raise RpcError(_PARAMS, f"Invalid params: {json.dumps(command)} is not a command")


def _run(switch: Switch, user: str, request: Request) -> Response:
    cli = Cli(switch, user, request.complete)
    results: list[Response] = []
    error: Response | None = None
    for place, (command, entered) in enumerate(request.commands, 1):
        start = time.time()
        try:
            response = cli.run(command, entered, request.as_json)
        except CliError as rejected:
            response = {"errors": [rejected.text]}
            if error is None:
                words = _MESSAGES.get(rejected.code, _MESSAGES[1000])
                message = f"CLI command {place} of {len(request.commands)} '{command}' failed: {words}"
                error = {"code": rejected.code, "message": message}
        if request.timestamps:
            response = {**response, "_meta": {"execStartTime": start, "execDuration": time.time() - start}}
        results.append(response)
        if error is not None and request.stop:
            break
    cli.leave_configuration()
    return {"result": results} if error is None else {"error": {**error, "data": results}}
