# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve one API of OpenStack: api.py ADDRESS:PORT ACCESS_LOG WSGI_MODULE [ARGUMENT…]

It runs in the virtual environment of the cloud. The WSGI modules parse sys.argv, so it must contain their
arguments before they are imported.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable

from gunicorn.app.base import BaseApplication

Start = Callable[..., object]
Service = Callable[[dict[str, object], Start], Iterable[bytes]]


class AccessLog:
    """WSGI service with an access log. Unlike gunicorn's, it has a request before the response is sent."""

    def __init__(self, service: Service, log: str) -> None:
        self._service = service
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, environ: dict[str, object], start_response: Start) -> Iterable[bytes]:
        """Serve a request and log it: address, time, request, status, size, seconds."""
        begun = time.monotonic()
        result = ["-", "-"]  # status and size

        def start(status: str, headers: list[tuple[str, str]], *more: object) -> object:
            sizes = [value for name, value in headers if name.lower() == "content-length"]
            result[:] = [status.split()[0], *(sizes or ["-"])]
            return start_response(status, headers, *more)

        body = self._service(environ, start)
        request = "{REQUEST_METHOD} {RAW_URI} {SERVER_PROTOCOL}".format(**environ)
        date = time.strftime("%d/%b/%Y:%H:%M:%S %z")
        line = f'{environ["REMOTE_ADDR"]} [{date}] "{request}" {result[0]} {result[1]} {time.monotonic() - begun:.6f}\n'
        os.write(self._log, line.encode())  # one call, so that lines of threads do not mix
        return body


class Api(BaseApplication):
    """Gunicorn application: one worker process with threads, and an access log."""

    def __init__(self, bind: str, access_log: str, module: str, arguments: list[str]) -> None:
        self.bind, self.access_log, self.module, self.arguments = bind, access_log, module, arguments
        super().__init__()

    def load_config(self) -> None:
        """Set the options of gunicorn, without the control socket, which all APIs of a user would share."""
        settings = {
            "bind": self.bind,
            "worker_class": "gthread",
            "workers": 1,
            "threads": 8,
            "timeout": 600,
            "graceful_timeout": 2,
            "keepalive": 75,
            "proc_name": self.module,
            "control_socket_disable": True,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        """Import the service in the worker process."""
        sys.argv = [self.module, *self.arguments]
        return AccessLog(importlib.import_module(self.module).application, self.access_log)


if __name__ == "__main__":
    bind, access_log, module, *arguments = sys.argv[1:]
    Api(bind, access_log, module, arguments).run()
