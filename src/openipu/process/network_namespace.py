# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces of Linux that have loopback only, for commands that must not reach other hosts.

A process with several threads cannot change its namespace, so a command calls ``enter`` or ``join`` first. This file
is also a program: the first process of a new namespace. It uses the standard library only.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

_CLONE_NEWNET, _CLONE_NEWUSER = 0x40000000, 0x10000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8
_READY = b"ready\n"
_START_SECONDS = 10.0


def enter() -> bool:
    """Move this process into a new network namespace with loopback only. Return whether the host allows that."""
    if not _single_threaded():
        return False
    program = [sys.executable, "-I", "-S", __file__]
    # The new namespace remains as long as this process is in it.
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as first:  # noqa: S603
        assert first.stdout is not None
        return first.stdout.readline() == _READY and join(first.pid)


def join(pid: int) -> bool:
    """Move this process into the network namespace of another one. Return whether it is there."""
    try:
        if _is_same("net", pid):
            return True
        if not _single_threaded():
            return False
        with open(f"/proc/{pid}/ns/user") as user, open(f"/proc/{pid}/ns/net") as net:  # noqa: PTH123
            if not _is_same("user", pid):
                _call("setns", user.fileno(), _CLONE_NEWUSER)
            _call("setns", net.fileno(), _CLONE_NEWNET)
    except OSError:
        return False
    return True


def has_loopback_only() -> bool:
    """Return whether no other network interface is up."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            flags = [_flags(control, name) for _number, name in socket.if_nameindex()]
    except OSError:
        return False
    return not any(each & _IFF_UP and not each & _IFF_LOOPBACK for each in flags)


def unroutable() -> int:
    """Return the number of packets and connections of the namespace that the kernel rejected for want of a route."""
    names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Ip:"))
    found = int(values[names.index("OutNoRoutes")])
    if (ipv6 := Path("/proc/net/snmp6")).exists():
        found += sum(int(line.split()[1]) for line in ipv6.read_text().splitlines() if line.startswith("Ip6OutNoR"))
    return found


def _single_threaded() -> bool:
    return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  this file has few imports


def _is_same(kind: str, pid: int) -> bool:
    return os.path.samefile(f"/proc/self/ns/{kind}", f"/proc/{pid}/ns/{kind}")  # noqa: PTH121


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _flags(control: socket.socket, name: str) -> int:
    """Return the flags of a network interface."""
    answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
    return int(struct.unpack("16sH14x", answer)[1])


def _create() -> None:
    """Move this process into a new network namespace, if necessary with a user namespace. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", _CLONE_NEWNET)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags = _flags(control, "lo") | _IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


def _main() -> None:
    """Create a namespace, report it, and keep it until standard input ends."""
    _create()
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    _main()
