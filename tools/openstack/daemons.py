# SPDX-License-Identifier: GPL-3.0-or-later
"""Background processes of a cloud: start, readiness and stop, by pid files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence

import psutil

from openipu.process.background import Endpoint, ProcessError, Service, check_free

from .component import Process, base_environment
from .site import Site

READY_SECONDS = 180.0  # sufficient on a busy machine; a process that ends is detected at once
INFRASTRUCTURE = {"mariadb", "rabbitmq", "epmd"}  # all other processes depend on these
STOP_SECONDS = 3.0  # from SIGTERM until SIGKILL
INFRASTRUCTURE_STOP_SECONDS = 30.0  # the same for infrastructure: prepared databases must be complete
KILL_SECONDS = 10.0  # from SIGKILL until the end of a process
PORT_SECONDS = 3.0  # until a port in use belongs to another program
POLL_SECONDS = 0.05


class Daemons:
    """Background processes of one site."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def start(self, processes: Sequence[Process]) -> None:
        """Start missing processes and wait until all are ready. Raises ProcessError.

        They start concurrently, except those that follow others.
        """
        services = {process.name: self._service(process) for process in processes}
        missing = [process for process in processes if services[process.name].running() is None]
        # Children of a killed process may still use its port.
        _stop([services[process.name] for process in missing], STOP_SECONDS)
        _wait_free([Endpoint(self.site.address, port) for process in missing for port in process.ports])
        for process in missing:
            if not process.follows:
                services[process.name].start()
        for process in processes:
            if process.follows and process in missing:
                services[process.name].start()
            services[process.name].wait_ready(process.ready or (lambda: True), READY_SECONDS)

    def running(self) -> list[str]:
        """Return the names of the running processes."""
        return sorted(service.title for service in self._recorded() if service.running())

    def pid(self, name: str) -> int:
        """Return the id of a running process. Raises ProcessError."""
        process = self._service(Process(name, [])).running()
        if process is None:
            raise ProcessError(f"Cannot find process '{name}': it is not running.")
        return int(process.pid)

    def stop(self, names: Collection[str] | None = None) -> None:
        """Stop the named processes, or all, and their children. Raises ProcessError."""
        chosen = [service for service in self._recorded() if names is None or service.title in names]
        # Services first: they close their connections to the queue and the databases.
        _stop([service for service in chosen if service.title not in INFRASTRUCTURE], STOP_SECONDS)
        _stop([service for service in chosen if service.title in INFRASTRUCTURE], INFRASTRUCTURE_STOP_SECONDS)

    def _recorded(self) -> list[Service]:
        """Return the services that have a pid file."""
        return [self._service(Process(path.stem, [])) for path in sorted(self.site.run.glob("*.json"))]

    def _service(self, process: Process) -> Service:
        return Service(
            title=process.name,
            pid_file=self.site.run / f"{process.name}.json",
            log=self.site.log / f"{process.name}.log",
            command=process.command,
            environment={**base_environment(), **process.environment},
        )


def _wait_free(endpoints: Sequence[Endpoint]) -> None:
    """Wait until killed processes have released their ports. Raises ProcessError when a port stays in use."""
    deadline = time.monotonic() + PORT_SECONDS
    while True:
        try:
            return check_free(endpoints, remedy="Stop it, and run the same command again.")
        except ProcessError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)


def _stop(services: Sequence[Service], seconds: float) -> None:
    """Send SIGTERM to the services, and SIGKILL to remaining processes after ``seconds``. Raises ProcessError."""
    for service in services:
        leader = service.running()
        if leader is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                leader.terminate()
    for process in _remaining(services, seconds):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    remaining = _remaining(services, KILL_SECONDS)
    if remaining:
        raise ProcessError(f"Cannot stop process {remaining[0].pid} ({remaining[0].name()}): it survives SIGKILL.")
    for service in services:
        service.pid_file.unlink(missing_ok=True)


def _remaining(services: Sequence[Service], seconds: float) -> list[psutil.Process]:
    """Wait until all processes have ended. Return those that still run after ``seconds``."""
    deadline = time.monotonic() + seconds
    while processes := [process for service in services for process in service.members()]:
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    return processes
