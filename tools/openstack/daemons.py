# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a cloud: started, waited for, and all ended, by their pid files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence

import psutil

from openipu.twin.processes import Endpoint, ProcessError, Service, check_free

from .part import Process, everywhere
from .site import Site

READY_SECONDS = 180.0  # on a busy machine; a process that ends is noticed at once
BENEATH = {"mariadb", "rabbitmq", "epmd"}  # what all others stand on
STOP_SECONDS = 3.0  # that a service has for ending itself, before it is killed
BENEATH_SECONDS = 30.0  # the same for those: prepared databases must be whole
KILL_SECONDS = 10.0  # that the system has for ending a process that was killed
PORT_SECONDS = 3.0  # until a port that is taken counts as somebody else's
POLL_SECONDS = 0.05


class Daemons:
    """Those of one site."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def start(self, processes: Sequence[Process]) -> None:
        """Start those that do not run, all at once, and wait until they answer. Raises ProcessError."""
        services = {process.name: self._service(process) for process in processes}
        missing = [process for process in processes if services[process.name].running() is None]
        # What a process that was killed has left still holds its port.
        _end([services[process.name] for process in missing], STOP_SECONDS)
        _wait_free([Endpoint(self.site.address, port) for process in missing for port in process.ports])
        for process in missing:
            services[process.name].start()
        for process in processes:
            services[process.name].wait_ready(process.ready or (lambda: True), READY_SECONDS)

    def running(self) -> list[str]:
        """The names of those that run."""
        return sorted(service.title for service in self._known() if service.running())

    def pid(self, name: str) -> int:
        """The number of one that runs."""
        process = self._service(Process(name, [])).running()
        if process is None:
            raise ProcessError(f"{name} does not run.")
        return int(process.pid)

    def stop(self, names: Collection[str] | None = None) -> None:
        """End those, or all, that were started, and what they started themselves. Raises ProcessError."""
        known = [service for service in self._known() if names is None or service.title in names]
        # Services first: they say goodbye over the queue and to the databases.
        _end([service for service in known if service.title not in BENEATH], STOP_SECONDS)
        _end([service for service in known if service.title in BENEATH], BENEATH_SECONDS)

    def _known(self) -> list[Service]:
        return [self._service(Process(path.stem, [])) for path in sorted(self.site.run.glob("*.json"))]

    def _service(self, process: Process) -> Service:
        return Service(
            title=process.name,
            pid_file=self.site.run / f"{process.name}.json",
            log=self.site.log / f"{process.name}.log",
            command=process.command,
            environment={**everywhere(), **process.environment},
        )


def _wait_free(endpoints: Sequence[Endpoint]) -> None:
    """A process that was killed may hold its port for a moment longer. Raises ProcessError when somebody keeps one."""
    deadline = time.monotonic() + PORT_SECONDS
    while True:
        try:
            return check_free(endpoints, remedy="stop it, and run the same command again")
        except ProcessError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)


def _end(services: Sequence[Service], seconds: float) -> None:
    """Ask them all to end, and make what is left after so many seconds end."""
    for service in services:
        leader = service.running()
        if leader is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                leader.terminate()
    for process in _left(services, seconds):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    left = _left(services, KILL_SECONDS)
    if left:
        raise ProcessError(f"Process {left[0].pid} ({left[0].name()}) cannot be ended.")
    for service in services:
        service.pid_file.unlink(missing_ok=True)


def _left(services: Sequence[Service], seconds: float) -> list[psutil.Process]:
    """Who is still there after so many seconds; nobody, as soon as they are gone."""
    deadline = time.monotonic() + seconds
    while left := [process for service in services for process in service.members()]:
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    return left
