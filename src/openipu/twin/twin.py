# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin on this machine: its two processes and the folder in which they live.

The folder holds ``twin.json`` (which POD this is, and the mark of a twin's folder), the rack's
configuration and control socket, what switches and PDUs keep, the controller's data, and a pid file
and a log of each process.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection, VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

from openipu.twin import racked
from openipu.twin.contract import twin
from openipu.twin.generate import Shape
from openipu.twin.logins import DEVICES
from openipu.twin.processes import Endpoint, ProcessError, Service, check_free, private_folder
from openipu.twin.script import Entry
from openipu.twin.wiring import Wrong
from openipu.vipu.initialise import initialise
from openipu.vipu.metrics.exporter import PORT as METRICS_PORT
from openipu.vipu.metrics.exporter import Listen
from openipu.vipu.store import StoreError

READY_SECONDS = 30.0
_SOCKET_PATH_LIMIT = 107  # bytes that the kernel takes for the path of a socket file

Say = Callable[[str], None]


class TwinError(Exception):
    """What is wrong, as one sentence."""


class _Refused(TwinError):
    """What was asked for makes no sense, so that nothing of the twin is of use; no log says more of it."""


@dataclass(frozen=True)
class Identity:
    """What ``twin.json`` tells of a twin that was started."""

    inventory: str
    controller_host: str
    controller_port: int


class Twin:
    """The twin of one state folder."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read or made yet."""
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 - it takes ".." out, and leaves links as they are
        self.socket = self.folder / "control.sock"
        self.data = self.folder / "controller"
        self.database = self.data / "vipu-server.db"
        self.devices = self.folder / DEVICES  # what switches and PDUs keep
        self.pod = self.folder / "pod"  # a POD that is made up
        self._identity = self.folder / "twin.json"
        self._rack = self.folder / "agents.json"

    # Services

    def _agents(self) -> Service:
        command = [sys.executable, "-m", "openipu.twin.rack", "--config", str(self._rack), "--socket", str(self.socket)]
        return self._service("The rack's agents", "agents", command)

    def _controller(self, endpoint: Endpoint | None = None) -> Service:
        command = [sys.executable, "-m", "openipu.vipu.server", "--database", str(self.database)]
        if endpoint:
            command += ["--host", endpoint.host, "--port", str(endpoint.port)]
            command += ["--metrics-host", endpoint.host, "--metrics-port", str(METRICS_PORT)]
        return self._service("The V-IPU controller", "controller", command)

    def _service(self, title: str, name: str, command: list[str]) -> Service:
        return Service(title, self.folder / f"{name}.pid", self.folder / f"{name}.log", command)

    # Up and down

    def up(self, wanted: Path | Shape, say: Say, faults: Sequence[Entry] = ()) -> None:
        """Start what does not run of the twin of a POD, and wait until it answers. Raises TwinError.

        The POD is that of an inventory, or made up. ``faults`` are made as soon as the machines are there,
        before the controller is; machines that run already are refused them.
        """
        if len(os.fsencode(self.socket)) > _SOCKET_PATH_LIMIT:
            raise TwinError(f"The path {self.socket} is too long for a socket: name a shorter one with --state-dir.")
        pod = _loopback_pod(wanted) if isinstance(wanted, Path) else None
        made = False
        try:
            made = private_folder(self.folder)
            with self._lock():
                if not made and not self._identity.exists() and any(self.folder.iterdir()):
                    raise TwinError(f"{self.folder} holds files that are not a twin's: name another with --state-dir.")
                inventory = wanted if isinstance(wanted, Path) else self._make_up(wanted)
                self._start(pod or _loopback_pod(inventory), inventory, say, faults)
        except (ProcessError, TwinError) as error:
            if made and isinstance(error, _Refused):
                self._remove(keep_data=False)
            elif made:
                shutil.rmtree(self.pod, ignore_errors=True)
                with contextlib.suppress(OSError):  # it has logs in it when something was started
                    self.folder.rmdir()
            raise TwinError(str(error)) from None

    def _make_up(self, shape: Shape) -> Path:
        """Write the files of a POD that is made up; the path of its inventory."""
        before = self.identity()
        inventory = self.pod / "pod.yml"
        if before and before.inventory != str(inventory) and self.running():
            raise TwinError(self._taken(before))
        try:
            return shape.write(self.pod, str(self.folder))
        except OSError as error:
            raise TwinError(f"Cannot write {error.filename}: {error.strerror}.") from None

    def _taken(self, identity: Identity) -> str:
        return (
            f"{self.folder} holds the running twin of {identity.inventory}: "
            "stop it with 'twin down', or name another folder with --state-dir."
        )

    def _start(self, pod: model.Pod, inventory: Path, say: Say, faults: Sequence[Entry]) -> None:
        identity = Identity(str(inventory.absolute()), pod.controller_host, pod.controller_port)
        before = self.identity()
        if before and before.inventory != identity.inventory and self.running():
            raise TwinError(self._taken(before))
        rack = json.dumps(racked.rack(pod), indent=1) + "\n"
        contents = racked.contents(pod)
        address = f"{pod.controller_host}:{pod.controller_port}"
        agents, controller = self._agents(), self._controller(Endpoint(pod.controller_host, pod.controller_port))
        if agents.running() and _text(self._rack) != rack:
            say("The POD's machines have changed: stopping its agents …")
            agents.stop()
        if controller.running() and before != identity:
            say("The controller has moved: stopping it …")
            controller.stop()
        wanted = [service for service in (agents, controller) if not service.running()]
        if faults and agents not in wanted:
            raise TwinError("The IPU-Machines run already: break them with 'twin fault', or begin with 'twin down'.")
        check_free(racked.endpoints(pod) if agents in wanted else ())
        ports = (pod.controller_port, METRICS_PORT) if controller in wanted else ()
        check_free(Endpoint(pod.controller_host, port) for port in ports)
        _write(self._identity, json.dumps(asdict(identity)) + "\n")
        _write(self._rack, rack)
        started: list[Service] = []
        try:
            if agents in wanted:
                say(f"Starting {contents} …")
                self._launch(agents, self._rack_answers, started)
            self._spoil(faults)
            if controller in wanted:
                self._initialise()
                say(f"Starting the V-IPU controller, {address} …")
                self._launch(controller, self._controller_answers, started)
        except BaseException:
            # Nothing stays half started; what ran before keeps running.
            for service in reversed(started):
                with contextlib.suppress(ProcessError):
                    service.stop()
            raise
        state = "is up" if wanted else "is up already"
        say(f"The twin {state}: {contents}, controller {address}.")

    def _spoil(self, faults: Sequence[Entry]) -> None:
        for fault in faults:
            try:
                self.control("MakeFaults", twin.MakeFaultsRequest(faults=[fault.line]))
            except TwinError as error:
                raise _Refused(f"{fault.place}: {error}") from None

    def _initialise(self) -> None:
        """Make the controller's database when there is none; one that is there is used as it is."""
        try:
            self.data.mkdir(mode=0o700, exist_ok=True)
            initialise(self.database)
        except (OSError, StoreError) as error:
            raise TwinError(f"Cannot make {self.database}: {error}") from None

    @staticmethod
    def _launch(service: Service, ready: Callable[[], bool], started: list[Service]) -> None:
        started.append(service)
        service.start()
        service.wait_ready(ready, READY_SECONDS)

    def down(self, keep_data: bool, say: Say) -> None:
        """Stop the twin and remove its folder, or all of it but the controller's data. Raises TwinError."""
        if not self._identity.exists():
            say(f"No twin in {self.folder}: nothing to stop.")
            return
        try:
            with self._lock():
                for service in (self._controller(), self._agents()):
                    if service.running():
                        say(f"{service.title}: stopping …")
                    service.stop()
                left = self._remove(keep_data)
        except ProcessError as error:
            raise TwinError(str(error)) from None
        if left:
            kept = ", ".join(sorted(left))
            say(f"The twin is stopped; {self.folder} still holds {kept}.")
        else:
            say("The twin is stopped and has left nothing behind.")

    def _remove(self, keep_data: bool) -> list[str]:
        """Remove the twin's own files; the names of what is left in the folder."""
        own = [self.socket, self._rack]
        own += [path for service in (self._agents(), self._controller()) for path in (service.pid_file, service.log)]
        for path in own:
            path.unlink(missing_ok=True)
        if not keep_data:
            for folder in (self.data, self.devices, self.pod):
                shutil.rmtree(folder, ignore_errors=True)
            self._identity.unlink(missing_ok=True)
        left = [path.name for path in self.folder.iterdir() if path != self._identity]
        if not left and not self._identity.exists():
            self.folder.rmdir()
        return left

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One command at a time changes a folder."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise TwinError(f"Another twin command is at work in {self.folder}: wait until it is done.") from None
        finally:
            os.close(descriptor)

    # What there is

    def identity(self) -> Identity | None:
        """Which POD the folder is of; None when no twin was started in it."""
        try:
            return Identity(**json.loads(self._identity.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def running(self) -> list[str]:
        """What runs of it, for sentences."""
        return [service.title for service in (self._agents(), self._controller()) if service.running()]

    def _running(self, service: Service) -> Identity:
        """Which POD the twin is of. Raises TwinError when this service of it does not run."""
        identity = self.identity()
        if identity is None or not self.running():
            raise TwinError(f"No twin runs in {self.folder}: start it with 'twin up'.")
        if not service.running():
            title = service.title[0].lower() + service.title[1:]
            raise TwinError(
                f"Half of the twin in {self.folder} is down, {title} (see {service.log}): "
                f"'twin up --inventory {identity.inventory} --state-dir {self.folder}' mends it."
            )
        return identity

    def client(self) -> Client:
        """A client of its controller. Raises TwinError when that does not run here."""
        identity = self._running(self._controller())
        return Client(Connection(identity.controller_host, identity.controller_port, timeout=10))

    def machines(self) -> list[Any]:
        """The machines as the rack itself sees them. Raises TwinError."""
        return list(self.control("ListMachines", twin.ListMachinesRequest()).machines)

    def addresses(self, kind: str) -> list[str]:
        """Where its ``switches`` or ``pdus`` answer, each as a name and an end-point."""
        devices = json.loads(_text(self._rack) or "{}").get("devices", {})
        return [f"{each['name']} {each['host']}:{each['port']}" for each in devices.get(kind, ())]

    def exporters(self) -> dict[str, Any]:
        """Where metrics are told: ``controller``, a URL, and ``agents``, one for each id."""
        identity = self.identity()
        rack = json.loads(_text(self._rack) or "{}")
        machines = [machine for cluster in rack.get("clusters", ()) for machine in cluster["machines"]]
        return {
            "controller": Listen(identity.controller_host).url if identity else "",
            "agents": {each["agent_id"]: Listen(each["host"], each["metrics_port"]).url for each in machines},
        }

    def wrong(self) -> list[Wrong]:
        """What is wrong with the rack. Raises TwinError."""
        return [
            Wrong(item.fault, item.where, item.sentence, item.found, item.expected, tuple(item.cable))
            for item in self.control("ListFaults", twin.ListFaultsRequest()).wrong
        ]

    def control(self, method: str, request: Any) -> Any:
        """Call the run-time control of the rack. Raises TwinError."""
        self._running(self._agents())
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            try:
                return getattr(twin.stub(channel, "TwinService"), method)(request, timeout=10)
            except grpc.RpcError as error:
                raise TwinError(error.details() or f"The rack answered {error.code().name}.") from None

    def _rack_answers(self) -> bool:
        try:
            return self.socket.exists() and all(machine.running for machine in self.machines())
        except TwinError:
            return False

    def _controller_answers(self) -> bool:
        try:
            with self.client() as client:
                client.call(client.version.GetVersion, virmgrpc.VersionRequest(), timeout=2)
        except (TwinError, VipuError):
            return False
        return True


def _loopback_pod(inventory: Path) -> model.Pod:
    """The POD of an inventory, which must live on loopback altogether."""
    try:
        pod = load(str(inventory))
    except PodError as error:
        raise TwinError(str(error)) from None
    if not pod.machines:
        raise TwinError(f"{pod.machines_file} has no machines: add at least one line.")
    for host in [pod.controller_host, *racked.hosts(pod)]:
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise TwinError(
                f"{inventory} has the address {host}: a twin lives on loopback (127.x.y.z), so this is a real POD; "
                "use inventory/twin, or make one with 'twin generate'."
            )
    return pod


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise TwinError(f"Cannot write {path}: {error.strerror}.") from None
