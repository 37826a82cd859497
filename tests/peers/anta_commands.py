# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the commands of all tests of ANTA as JSON: `{test: [command or template, …]}`.

Runs in an environment with ANTA.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil

import anta.tests
from anta.models import AntaTemplate, AntaTest


def main() -> None:
    """Import all modules with tests and print their commands."""
    found = {}
    for module in pkgutil.walk_packages(anta.tests.__path__, "anta.tests."):
        for name, test in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(test, AntaTest) and test.__module__ == module.name:
                found[name] = [
                    each.template if isinstance(each, AntaTemplate) else each.command for each in test.commands
                ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
