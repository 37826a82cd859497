# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of jobs that start programs with SSH: server of the workers, client of the launcher.

Each job has two pairs of keys in a Secret: that of the launcher, and that of the workers as hosts. So host keys are
always checked, under one alias instead of addresses. Workers hold no key with which they could log in anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from openipu.kubernetes.domain import reserved

PORT = 2222  # of workers with a network of their own

IDENTITY, KNOWN_HOSTS = "identity", "known_hosts"  # of the launcher
HOST_KEY, AUTHORIZED_KEYS = "host_key", "authorized_keys"  # of the workers
SERVER_SCRIPT, SESSION_SCRIPT, SERVER_CONFIG = "sshd.sh", "session.sh", "sshd_config"
CLIENT_CONFIG = "ssh_config"

_HOST_ALIAS = "ipujob"

# sshd demands a host key that only its user can read, and gives sessions a new environment. Programs need that of the
# container, with the variables of Poplar, as with 'kubectl exec'.
_SERVER_SCRIPT = f"""#!/bin/sh
# Run the SSH server of a worker: {SERVER_SCRIPT} ADDRESS PORT
set -eu
PATH=$PATH:/usr/sbin
sshd=$(command -v sshd) || {{
    echo "The image has no SSH server. Install openssh-server, or use remoteShell KubeExec." >&2
    exit 127
}}
umask 077
folder=$(mktemp -d)
cp %(secret)s/{HOST_KEY} "$folder/{HOST_KEY}"
export PWD
unset {reserved.ADDRESS_VARIABLE}
export -p >"$folder/environment"
if [ "$(id -u)" = 0 ]; then mkdir -p -m 0755 /run/sshd; fi
exec "$sshd" -D -e -f %(config)s/{SERVER_CONFIG} -h "$folder/{HOST_KEY}" -o "ListenAddress=$1" -o "Port=$2" \\
    -o "ForceCommand=/bin/sh %(config)s/{SESSION_SCRIPT} $folder"
"""

_SESSION_SCRIPT = f"""#!/bin/sh
# Run the command of an SSH session with environment and folder of the worker: {SESSION_SCRIPT} FOLDER
set -eu
. "$1/environment"
cd "$PWD"
if [ -n "${{SSH_ORIGINAL_COMMAND:-}}" ]; then exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"; fi
exec "${{SHELL:-/bin/sh}}" -l
"""

# StrictModes: the folders of mounted Secrets are writable for all in the eyes of sshd, although they are read-only.
_SERVER_CONFIG = """AuthenticationMethods publickey
AuthorizedKeysFile %(secret)s/authorized_keys
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
DisableForwarding yes
PidFile none
PrintMotd no
ClientAliveInterval 15
ClientAliveCountMax 4
"""

_CLIENT_CONFIG = f"""Host *
  HostKeyAlias {_HOST_ALIAS}
  StrictHostKeyChecking yes
  UserKnownHostsFile %(folder)s/{KNOWN_HOSTS}
  GlobalKnownHostsFile /dev/null
  CheckHostIP no
  IdentityFile %(folder)s/{IDENTITY}
  IdentitiesOnly yes
  PreferredAuthentications publickey
  BatchMode yes
  ConnectTimeout 10
  ConnectionAttempts 3
  ServerAliveInterval 15
  ServerAliveCountMax 4
  LogLevel ERROR
"""


def server_files() -> dict[str, str]:
    """Return the files of workers, apart from their keys: name -> text."""
    paths = {"config": reserved.CONFIG_PATH, "secret": reserved.SSH_PATH}
    return {
        SERVER_SCRIPT: _SERVER_SCRIPT % paths,
        SESSION_SCRIPT: _SESSION_SCRIPT,
        SERVER_CONFIG: _SERVER_CONFIG % paths,
    }


def server_command(port: int) -> list[str]:
    """Return the command of a worker. Kubelet inserts its address."""
    return ["/bin/sh", f"{reserved.CONFIG_PATH}/{SERVER_SCRIPT}", f"$({reserved.ADDRESS_VARIABLE})", str(port)]


def known_hosts(public_host_key: str) -> str:
    """Return the file with the host key of the workers."""
    return f"{_HOST_ALIAS} {public_host_key}\n"


def client_config(workers: Mapping[str, tuple[str, int]], folder: str) -> str:
    """Return the configuration of the launcher. ``workers``: name -> address and port. ``folder``: that of its files.

    Names of pods are no host names in all networks, so the launcher uses addresses.
    """
    hosts = (f"Host {name}\n  HostName {address}\n  Port {port}\n" for name, (address, port) in workers.items())
    return "".join(hosts) + _CLIENT_CONFIG % {"folder": folder}
