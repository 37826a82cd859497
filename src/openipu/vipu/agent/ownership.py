# SPDX-License-Identifier: GPL-3.0-or-later
"""Owner of an agent: the deployment that may change it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from openipu.shared.atomic_files import sync_folder, write_private
from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.identity import Controller

_FILE = "owner.json"


class OwnershipError(Exception):
    """Raised when the owner cannot be read or written."""

    error_code = "OPU630"


def rejection(owner: Controller | None, caller: Controller | None) -> str:
    """Return why a caller may not change an agent, as a clause; empty when it may."""
    if caller is None:
        return "the call names no deployment"
    if owner is None:
        return "it has no owner. Register it with a controller"
    if caller.deployment != owner.deployment:
        return (
            f"it belongs to deployment {owner.deployment}, not to {caller.deployment}. "
            "Use 'vipu-admin take-over agent' to change that"
        )
    if caller.epoch < owner.epoch:
        return (
            f"a later controller of deployment {owner.deployment} uses it (epoch {owner.epoch}, "
            f"not {caller.epoch}). Stop one of them. If there is only one, set its clock and restart it"
        )
    if _is_other_agent(owner, caller):
        return (
            f"the machine at its endpoint is registered as agent {owner.agent!r}. Correct the endpoint of agent "
            f"{caller.agent!r}. If it is right, 'vipu-admin take-over agent {caller.agent} --other-agent' releases the "
            "partitions of the other agent"
        )
    return ""


def _is_other_agent(owner: Controller, caller: Controller) -> bool:
    """Return whether the deployment of both uses the machine as another agent now; earlier controllers name none."""
    return "" not in (owner.agent, caller.agent) and owner.agent != caller.agent


def caller(context: Any) -> Controller | None:
    """Return the controller that calls; None for other callers."""
    return identity.caller(context.invocation_metadata() or ())


async def reject(reason: str | None, context: Any) -> None:
    """Abort a call for this reason, if there is one."""
    if reason:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{identity.REJECTION}{reason}.")


class Ownership:
    """Owner of one agent. With a folder it survives restarts of the agent."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the owner. Raises OwnershipError."""
        self._file = folder and folder / _FILE
        self._callbacks: list[Callable[[], None]] = []
        self.owner = self._read()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of the owner."""
        self._callbacks.append(callback)

    def rejection(self, caller: Controller | None) -> str:
        """Return why a caller may not change this agent, as a clause; empty when it may."""
        return rejection(self.owner, caller)

    def is_other_agent(self, caller: Controller) -> bool:
        """Return whether the owner has registered this agent with another id than the caller."""
        owner = self.owner
        return owner is not None and owner.deployment == caller.deployment and _is_other_agent(owner, caller)

    def claim(self, caller: Controller, is_idle: bool = False) -> str:
        """Make the caller the owner of an agent without owner. Return why it is not the owner, empty when it is.

        An agent that is idle, which means that no partition holds its IPUs, can become another agent of its owner.
        """
        owner = self.owner or caller
        reason = rejection(owner._replace(agent="") if is_idle else owner, caller)
        if not reason:
            self.take_over(caller)
        return reason

    def take_over(self, caller: Controller) -> None:
        """Make the caller the owner. Raises OwnershipError, and then changes nothing."""
        self._set(caller)

    def give_up(self) -> None:
        """Remove the owner. Raises OwnershipError, and then changes nothing."""
        self._set(None)

    def _set(self, owner: Controller | None) -> None:
        if owner == self.owner:
            return
        self._write(owner)
        self.owner = owner
        for callback in self._callbacks:
            callback()

    def _read(self) -> Controller | None:
        if self._file is None:
            return None
        try:
            values = json.loads(self._file.read_text())
            return identity.controller(values["deployment"], values["epoch"], values.get("agent", ""))
        except FileNotFoundError:
            return None
        except (OSError, ArithmeticError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise OwnershipError(
                f"Cannot read the owner of the agent from {str(self._file)!r}: {error}. "
                "Remove the file to let the next controller own the agent."
            ) from None

    def _write(self, owner: Controller | None) -> None:
        if self._file is None:
            return
        try:
            if owner is None:
                self._file.unlink(missing_ok=True)
            else:
                write_private(self._file, json.dumps(owner._asdict()))
            sync_folder(self._file.parent)  # a power cut must not bring back the former owner
        except OSError as error:
            raise OwnershipError(
                f"Cannot write the owner of the agent to {str(self._file)!r}: {error.strerror}. "
                "The owner was not changed. Check the folder of --state-dir."
            ) from None
