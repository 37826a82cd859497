# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that belong to the operator: labels, volumes, containers, paths and environment variables."""

from __future__ import annotations

PREFIX = "graphcore.ai/"  # of labels and annotations

JOB_LABEL = f"{PREFIX}ipujob"
ROLE_LABEL = f"{PREFIX}role"
INSTANCE_LABEL = f"{PREFIX}instance"
WORKER_LABEL = f"{PREFIX}worker"
ATTEMPT_LABEL = f"{PREFIX}attempt"  # number of restarts before the pod was created
TEMPLATE_LABEL = f"{PREFIX}template"  # hash of the pod template
SHAPE_LABEL = f"{PREFIX}shape"  # size of the instance: IPUs, workers and replicas
SSH_PORT_LABEL = f"{PREFIX}ssh-port"
WORKER_ROLE, LAUNCHER_ROLE = "worker", "launcher"

CONFIG_VOLUME, TOOLS_VOLUME, SHM_VOLUME = "ipujob-config", "ipujob-tools", "ipujob-shm"
TOKEN_VOLUME = "ipujob-token"  # noqa: S105  a name
SSH_VOLUME = "ipujob-ssh"
VOLUMES = frozenset({CONFIG_VOLUME, TOOLS_VOLUME, SHM_VOLUME, TOKEN_VOLUME, SSH_VOLUME})

INIT_CONTAINER = "ipujob-init"
CONTAINERS = frozenset({INIT_CONTAINER})

CONFIG_PATH = "/etc/mpi"
TOOLS_PATH = "/opt/ipujob"  # kubectl or the files of ssh, which the init container of the launcher delivers
SSH_PATH = "/etc/ipujob-ssh"  # keys: those of the host in workers, those of the user in the init container
SHM_PATH = "/dev/shm"  # noqa: S108  the mount point of shared memory, no temporary file

TOKEN_PATH = "/run/ipujob"  # noqa: S105  token for the V-IPU proxy, in the init container only
PROXY_AUDIENCE = "gc-proxy"

IPU_RESOURCE = f"{PREFIX}ipu"

ADDRESS_VARIABLE = "IPUJOB_ADDRESS"  # of a worker with an SSH server
# Users may set the other variables of ``environment`` themselves.
VARIABLES = frozenset(
    {
        "IPUOF_VIPU_API_HOST",
        "IPUOF_VIPU_API_PORT",
        "IPUOF_VIPU_API_PARTITION_ID",
        "IPUOF_VIPU_API_GCD_ID",
        ADDRESS_VARIABLE,
    }
)
