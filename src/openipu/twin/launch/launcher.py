# SPDX-License-Identifier: GPL-3.0-or-later
"""Launcher of a rack twin: its two processes and its state folder.

The state folder contains:

* ``twin.json``, with the inventory of the POD; it marks the folder as a twin's.
* the configuration and the control socket of the rack process.
* the state of switches and PDUs.
* the data of the controller.
* a pid file and a log of each process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc

from openipu.process.background import Endpoint, ProcessError, Service, check_free, private_folder
from openipu.shared.pod import model
from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import virmgrpc
from openipu.twin.cables.wiring import Defect
from openipu.twin.devices.logins import DEVICES
from openipu.twin.launch import hints, ipuof_files, rack_config, relay
from openipu.twin.launch.errors import RejectedError, TwinError
from openipu.twin.launch.generate import PodWriter
from openipu.twin.launch.loopback import read_pod
from openipu.twin.rack.contract import twin
from openipu.twin.rack.fault_script import Entry
from openipu.vipu.metrics import address as metrics
from openipu.vipu.storage.interface import StoreError

_QUIET_SECONDS = 30.0  # without a further open file of a process that starts; each machine and device opens some
_CONTROL_SECONDS = 30.0  # for a call of the rack, which is slow on a busy computer
_SOCKET_PATH_LIMIT = 107  # bytes that the kernel takes for the path of a socket file

_REJECTIONS = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)

Report = Callable[[str], None]  # receives progress messages


@dataclass(frozen=True)
class Identity:
    """Content of ``twin.json``: the POD of a started twin, and whether its controller discovers agents."""

    inventory: str
    controller_host: str
    controller_port: int
    discovery: bool = False


class Twin:
    """The twin of one state folder."""

    def __init__(self, folder: Path) -> None:
        """Neither read nor create anything yet."""
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 - removes "..", and keeps links
        self.socket = self.folder / "control.sock"
        self.data = self.folder / "controller"
        self.database = self.data / "vipu-server.db"
        self.devices = self.folder / DEVICES  # state of switches and PDUs
        self.pod = self.folder / "pod"  # generated inventory
        self.options = rack_config.Options()
        self._identity = self.folder / "twin.json"
        self._rack = self.folder / "agents.json"

    # Services

    def _agents(self) -> Service:
        command = [sys.executable, "-m", "openipu.twin.rack.main"]
        command += ["--config", str(self._rack), "--socket", str(self.socket)]
        return self._service("the rack's agents", "agents", command)

    def _controller(self, endpoint: Endpoint | None = None) -> Service:
        command = [sys.executable, "-m", "openipu.vipu.server.main", "--database", str(self.database)]
        if endpoint:
            command += ["--host", endpoint.host, "--port", str(endpoint.port)]
            command += ["--metrics-host", endpoint.host, "--metrics-port", str(metrics.PORT)]
        if self.options.discovery:
            command += ["--autodiscovery-listen-interfaces", rack_config.LOOPBACK]
        return self._service("the V-IPU controller", "controller", command)

    def _service(self, title: str, name: str, command: list[str]) -> Service:
        # Options of another controller, such as VIPU_SERVER_STORE, may be set in the shell of the user.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VIPU_SERVER_")}
        return Service(title, self.folder / f"{name}.pid", self.folder / f"{name}.log", command, environment)

    # Up and down

    def up(self, source: Path | PodWriter, report: Report, faults: Sequence[Entry] = ()) -> None:
        """Start the processes of a twin that do not run, and wait until they respond. Raises TwinError.

        ``source`` is an inventory, or writes one into the state folder. ``faults`` are applied after the start of the
        machines and before the start of the controller; they are rejected if the machines run already.
        """
        if len(os.fsencode(self.socket)) > _SOCKET_PATH_LIMIT:
            raise TwinError(f"Cannot create the socket {self.socket}: its path is too long. Set a shorter --state-dir.")
        pod = read_pod(source) if isinstance(source, Path) else None
        created = False
        try:
            created = private_folder(self.folder)
            with self._lock():
                if not created and not self._identity.exists() and any(self.folder.iterdir()):
                    raise TwinError(
                        f"Cannot use the folder {self.folder}: it contains files that do not belong to a twin. "
                        "Set another folder with --state-dir."
                    )
                inventory = source if isinstance(source, Path) else self._generate(source)
                self._start(pod or read_pod(inventory), inventory, report, faults)
        except (ProcessError, TwinError) as error:
            if created and isinstance(error, RejectedError):
                self._remove(keep_data=False)
            elif created:
                shutil.rmtree(self.pod, ignore_errors=True)
                with contextlib.suppress(OSError):  # not empty when a started process left its log
                    self.folder.rmdir()
            if isinstance(error, TwinError):
                raise
            raise TwinError(str(error)) from None

    def _generate(self, writer: PodWriter) -> Path:
        """Write the inventory of a POD and return its path."""
        before = self.identity()
        inventory = self.pod / "pod.yml"
        if before and before.inventory != str(inventory) and self.running():
            raise TwinError(self._folder_in_use(before))
        try:
            return writer.write(self.pod, str(self.folder))
        except OSError as error:
            raise TwinError(f"Cannot write {error.filename}: {error.strerror}.") from None

    def _folder_in_use(self, identity: Identity) -> str:
        return (
            f"Cannot use the folder {self.folder}: it holds the running twin of {identity.inventory}. "
            f"Stop it with '{self.command('down')}', or set another folder with --state-dir."
        )

    def _start(self, pod: model.Pod, inventory: Path, report: Report, faults: Sequence[Entry]) -> None:
        identity = Identity(str(inventory.absolute()), pod.controller_host, pod.controller_port, self.options.discovery)
        before = self.identity()
        if before and before.inventory != identity.inventory and self.running():
            raise TwinError(self._folder_in_use(before))
        rack = json.dumps(rack_config.rack(pod, self.options), indent=1) + "\n"
        contents = rack_config.contents(pod)
        address = f"{pod.controller_host}:{pod.controller_port}"
        agents, controller = self._agents(), self._controller(Endpoint(pod.controller_host, pod.controller_port))
        if agents.running() and _text(self._rack) != rack:
            report("The machines of the POD have changed: stopping the agents …")
            agents.stop()
        if controller.running() and before != identity:
            report("The options of the controller have changed: stopping the controller …")
            controller.stop()
        missing = [service for service in (agents, controller) if not service.running()]
        if faults and agents not in missing:
            raise TwinError(
                f"Cannot apply --faults: the IPU-Machines already run. Use '{self.command('fault')}', or run "
                f"'{self.command('down')}' first."
            )
        check_free(rack_config.endpoints(pod) if agents in missing else ())
        ports = (pod.controller_port, metrics.PORT) if controller in missing else ()
        check_free(Endpoint(pod.controller_host, port) for port in ports)
        _write(self._identity, json.dumps(asdict(identity)) + "\n")
        _write(self._rack, rack)
        started: list[Service] = []
        try:
            if agents in missing:
                report(f"Starting {contents} …")
                self._launch(agents, self._rack_responds, started, report)
            self._apply_faults(faults)
            if controller in missing:
                self._initialise()
                report(f"Starting the V-IPU controller, {address} …")
                self._launch(controller, self._controller_responds, started, report)
        except BaseException:
            # Stop only the processes that this call started.
            for service in reversed(started):
                with contextlib.suppress(ProcessError):
                    service.stop()
            raise
        state = "is up" if missing else "is already up"
        report(f"The twin {state}: {contents}, controller {address}.")

    def fault(self, line: str) -> None:
        """Apply a fault to the running rack. Raises RejectedError for an invalid one, and TwinError."""
        self.control("MakeFaults", twin.MakeFaultsRequest(faults=[line]))

    def _apply_faults(self, faults: Sequence[Entry]) -> None:
        for fault in faults:
            try:
                self.fault(fault.line)
            except RejectedError as error:
                raise RejectedError(f"{fault.place}: {error}") from None
            except TwinError as error:
                raise TwinError(f"{fault.place}: {error}") from None

    def _initialise(self) -> None:
        """Create the database of the controller unless it exists."""
        from openipu.vipu.server.initialise import initialise  # it imports most of the controller

        try:
            self.data.mkdir(mode=0o700, exist_ok=True)
            initialise(self.database)
        except (OSError, StoreError) as error:
            raise TwinError(f"Cannot create the database {self.database}: {error}") from None

    @staticmethod
    def _launch(service: Service, ready: Callable[[], bool], started: list[Service], report: Report) -> None:
        started.append(service)
        service.start()
        service.wait_ready(ready, _QUIET_SECONDS, report, service.open_files)

    def down(self, keep_data: bool, report: Report) -> None:
        """Stop the twin and remove its state folder; ``keep_data`` keeps its data and identity. Raises TwinError."""
        if not self._identity.exists():
            report(f"No twin in {self.folder}: nothing to stop.")
            return
        try:
            with self._lock():
                for service in (relay.service(self.folder), self._controller(), self._agents()):
                    if service.running():
                        report(f"Stopping {service.title} …")
                    service.stop()
                if not keep_data:
                    ipuof_files.remove(self._rack, report)
                left = self._remove(keep_data)
        except ProcessError as error:
            raise TwinError(str(error)) from None
        if left:
            report(f"The twin is stopped; {self.folder} still holds {', '.join(sorted(left))}.")
        else:
            report("The twin is stopped; its state folder is removed.")

    def _remove(self, keep_data: bool) -> list[str]:
        """Remove the twin's own files; return the names of the remaining files in the folder."""
        own = [self.socket, self._rack]
        services = self._agents(), self._controller(), relay.service(self.folder)
        own += [path for service in services for path in (service.pid_file, service.log)]
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
        """Lock the folder against other twin commands. Raises TwinError if one holds the lock."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise TwinError(f"Cannot lock {self.folder}: another twin command uses it. Wait until it ends.") from None
        finally:
            os.close(descriptor)

    # State

    def identity(self) -> Identity | None:
        """Return the POD of the folder; None if no twin was started in it."""
        try:
            return Identity(**json.loads(self._identity.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def running(self) -> list[str]:
        """Return the titles of its running processes, for messages."""
        return [service.title for service in (self._agents(), self._controller()) if service.running()]

    def process(self) -> int | None:
        """Return one of its running processes; None if there is none."""
        found = [service.running() for service in (self._agents(), self._controller())]
        return next((process.pid for process in found if process), None)

    def endpoints(self) -> list[Endpoint]:
        """Return all endpoints of its processes; empty without a twin."""
        identity = self.identity()
        if identity is None:
            return []
        ports = (identity.controller_port, metrics.PORT)
        controller = [Endpoint(identity.controller_host, port) for port in ports]
        return [*controller, *rack_config.endpoints(read_pod(Path(identity.inventory)))]

    def _running(self, service: Service) -> Identity:
        """Return the POD of the twin. Raises TwinError unless this service of it runs."""
        identity = self.identity()
        if identity is None or not self.running():
            start = self.command("up", *_inventory(identity))
            raise TwinError(f"Cannot use the twin in {self.folder}: it does not run. Start it with '{start}'.")
        if not service.running():
            raise TwinError(
                f"Cannot use the twin in {self.folder}: {service.title} is down. See {service.log}. "
                f"Start it with '{self.command('up', *_inventory(identity))}'."
            )
        return identity

    def command(self, name: str, *words: str) -> str:
        """Return a command for this twin, for messages."""
        return hints.command(self.folder, name, *words)

    def client(self) -> Client:
        """Return a client of its controller. Raises TwinError unless the controller runs."""
        identity = self._running(self._controller())
        return Client(Connection(identity.controller_host, identity.controller_port, timeout=10))

    def configuration(self) -> rack_config.Config:
        """Return the configuration of the rack process; empty without a twin."""
        config: rack_config.Config = json.loads(_text(self._rack) or "{}")
        return config

    def machines(self) -> list[Any]:
        """Return the machines as the rack process reports them. Raises TwinError."""
        return list(self.control("ListMachines", twin.ListMachinesRequest()).machines)

    def addresses(self, kind: str) -> list[str]:
        """Return name and endpoint of each of its ``switches`` or ``pdus``."""
        devices = self.configuration().get("devices", {})
        return [f"{each['name']} {each['host']}:{each['port']}" for each in devices.get(kind, ())]

    def exporters(self) -> dict[str, Any]:
        """Return the URLs of the metrics: ``controller``, and ``agents`` by id."""
        identity, address = self.identity(), metrics.MetricsAddress
        rack = self.configuration()
        machines = [machine for cluster in rack.get("clusters", ()) for machine in cluster["machines"]]
        return {
            "controller": address(identity.controller_host).url if identity else "",
            "agents": {each["agent_id"]: address(each["host"], each["metrics_port"]).url for each in machines},
        }

    def defects(self) -> list[Defect]:
        """Return the defects of the rack. Raises TwinError."""
        return [
            Defect(item.fault, item.where, item.message, item.found, item.expected, tuple(item.cable))
            for item in self.control("ListDefects", twin.ListDefectsRequest()).defects
        ]

    def control(self, method: str, request: Any) -> Any:
        """Call the run-time control of the rack. Raises TwinError, and RejectedError for an invalid request."""
        self._running(self._agents())
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            try:
                return getattr(twin.stub(channel, "TwinService"), method)(request, timeout=_CONTROL_SECONDS)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    reason = f"the rack's agents did not respond within {_CONTROL_SECONDS:g} s"
                    message = f"Cannot use the twin in {self.folder}: {reason}. See {self._agents().log}."
                    raise TwinError(message) from None
                kind = RejectedError if error.code() in _REJECTIONS else TwinError
                raise kind(
                    error.details() or f"The rack process returned {error.code().name}. See {self._agents().log}."
                ) from None

    def _rack_responds(self) -> bool:
        try:
            return self.socket.exists() and all(machine.running for machine in self.machines())
        except TwinError:
            return False

    def _controller_responds(self) -> bool:
        try:
            with self.client() as client:
                client.call(client.version.GetVersion, virmgrpc.VersionRequest(), timeout=2)
        except (TwinError, VipuError):
            return False
        return True


def _inventory(identity: Identity | None) -> tuple[str, ...]:
    """Return the option that starts the same POD; none for a folder without a twin."""
    return ("--inventory", identity.inventory) if identity else ()


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
