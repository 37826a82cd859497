# SPDX-License-Identifier: GPL-3.0-or-later
"""Program that imports Ansible once, and runs each requested command line of Ansible in a fork of itself.

A request is a line of JSON on standard input; the reply is a line with the exit status. See ansible_commands.py.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

PROGRAMS = {"ansible": "adhoc", "ansible-inventory": "inventory", "ansible-playbook": "playbook"}
# Imports of the programs at run time.
LATER = ("ansible.executor.playbook_executor", "ansible.plugins.strategy.linear", "grpc", "netaddr")


def main() -> None:
    """Serve requests until standard input ends."""
    programs = Path(sys.executable).parent
    sys.path[0] = str(programs)  # as in a program of this folder
    modules = {name: importlib.import_module(f"ansible.cli.{module}") for name, module in PROGRAMS.items()}
    for name in LATER:
        importlib.import_module(name)
    gc.freeze()  # a collection would copy the pages of these imports to each fork
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            sys.argv = [str(programs / request["program"]), *request["arguments"]]
            perform(modules[request["program"]], request)
        _child, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def perform(module: Any, request: dict[str, Any]) -> NoReturn:
    """Run a program with the environment, folder and output files of a request, and exit with its status."""
    atexit._clear()  # the server removes its own temporary files
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for descriptor, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY),
        (2, request["stderr"], os.O_WRONLY),
    ):
        opened = os.open(path, mode)
        os.dup2(opened, descriptor)
        os.close(opened)
    status = 0
    try:
        module.main()
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        if isinstance(stopped.code, str):
            print(stopped.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
