# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve one API of OpenStack: api.py ADDRESS:PORT ACCESS_LOG WSGI_MODULE [ARGUMENT…]

Runs with the cloud's own Python. The WSGI modules parse sys.argv themselves, so it must hold the
arguments meant for them by the time they are imported.
"""

from __future__ import annotations

import importlib
import sys

from gunicorn.app.base import BaseApplication


class Api(BaseApplication):
    """One process with a few threads behind gunicorn's arbiter, and an access log."""

    def __init__(self, bind: str, access_log: str, module: str, arguments: list[str]) -> None:
        self.bind, self.access_log, self.module, self.arguments = bind, access_log, module, arguments
        super().__init__()

    def load_config(self) -> None:
        """Tell gunicorn; the control socket would be shared by all of a user's APIs."""
        settings = {
            "bind": self.bind,
            "worker_class": "gthread",
            "workers": 1,
            "threads": 8,
            "timeout": 600,
            "graceful_timeout": 2,
            "keepalive": 75,
            "accesslog": self.access_log,
            "access_log_format": '%(h)s %(t)s "%(r)s" %(s)s %(b)s %(L)s',
            "proc_name": self.module,
            "control_socket_disable": True,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        """Import the service, in the process that serves it."""
        sys.argv = [self.module, *self.arguments]
        return importlib.import_module(self.module).application


if __name__ == "__main__":
    bind, access_log, module, *arguments = sys.argv[1:]
    Api(bind, access_log, module, arguments).run()
