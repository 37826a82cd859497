# SPDX-License-Identifier: GPL-3.0-or-later
"""Call methods of NAPALM's driver for EOS in order; input and output are JSON. Runs in an environment with NAPALM.

Input: `{"host", "port", "user", "password", "authority", "calls": [[method, {argument: value}], …]}`.
Output: a list of `{"result": value}` or `{"error": text}`, one for each call.
"""

from __future__ import annotations

import json
import ssl
import sys
from typing import Any

from napalm import get_network_driver


def main() -> None:
    """Run the calls of standard input."""
    given = json.load(sys.stdin)
    context = ssl.create_default_context(cafile=given["authority"])
    options = {"transport": "https", "port": given["port"], "context": context}
    driver = get_network_driver("eos")(given["host"], given["user"], given["password"], optional_args=options)
    driver.open()
    try:
        print(json.dumps([call(driver, *each) for each in given["calls"]]))
    finally:
        driver.close()


def call(driver: Any, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call one method and return its result or error."""
    try:
        return {"result": getattr(driver, method)(**arguments)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
