# SPDX-License-Identifier: GPL-3.0-or-later
"""Guard of a rehearsal: rejects and records every connection of this process that leaves loopback.

Python imports this module at its start. The file in OPENIPU_REHEARSAL_GUARD gets one line for each rejection.
"""

import errno
import ipaddress
import os
import sys
from typing import Any

_FILE = os.environ.get("OPENIPU_REHEARSAL_GUARD", "")
_ADDRESS_OF = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_NAME_OF = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


def _address(host: str) -> Any:
    """Return a parsed address; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host in ("", "localhost") if address is None else address.is_loopback


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _ADDRESS_OF:
        address = arguments[_ADDRESS_OF[event]]
        if not isinstance(address, tuple):  # a socket file, or the peer of a connected socket
            return
        host = address[0]
    elif event in _NAME_OF:
        host = arguments[_NAME_OF[event]]
        if isinstance(host, bytes):
            host = host.decode(errors="replace")
        if host is None or _address(host) is not None:  # nothing is resolved
            return
    else:
        return
    if not isinstance(host, str) or _is_loopback(host):
        return
    with open(_FILE, "a") as file:  # noqa: PTH123  no further imports in every process
        file.write(f"{event} {host} {os.path.basename(sys.argv[0] if sys.argv else '')}\n")  # noqa: PTH119
    raise OSError(errno.ENETUNREACH, f"the rehearsal contacts loopback only, not {host}")


if _FILE:
    sys.addaudithook(_check)
