# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of every V-IPU module."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragment of the V-IPU modules."""

    DOCUMENTATION = r"""
options:
  api_host:
    description:
      - Name or address of the V-IPU controller.
      - For several controllers of one deployment, a comma-separated list of C(HOST) or C(HOST:PORT). The calls go to
        the one that leads. With O(transport=cli), the first one is used.
      - Taken from the environment variable E(VIPU_CLI_API_HOST) when not given.
    type: str
    default: localhost
  api_port:
    description:
      - TCP port of the controller.
      - Taken from the environment variable E(VIPU_CLI_API_PORT) when not given.
    type: int
    default: 8090
  api_user_id:
    description:
      - User name. Omit for anonymous access.
      - Taken from the environment variable E(VIPU_CLI_API_USER_ID) when not given.
    type: str
  api_access_key:
    description:
      - The access key of O(api_user_id).
      - Taken from the environment variable E(VIPU_CLI_API_ACCESS_KEY) when not given.
    type: str
  ca_path:
    description:
      - File with the CA certificates to verify the certificate of the controller. Enables TLS. Omit this and O(client_cert) to connect without TLS.
      - Taken from the environment variable E(VIPU_CLI_CA_PATH) when not given.
    type: path
  client_cert:
    description:
      - File with the client certificate. Enables TLS. Requires O(client_key).
      - Taken from the environment variable E(VIPU_CLI_CLIENT_CERT) when not given.
    type: path
  client_key:
    description:
      - File with the private key of O(client_cert).
      - Taken from the environment variable E(VIPU_CLI_CLIENT_KEY) when not given.
    type: path
  metadata_user_id_key:
    description:
      - Metadata key of gRPC for O(api_user_id), as configured in the controller. The key of Graphcore's controller is not documented.
      - Taken from the environment variable E(VIPU_CLI_METADATA_USER_ID_KEY) when not given.
    type: str
    default: vipu-user-id
  metadata_access_key_key:
    description:
      - Metadata key of gRPC for O(api_access_key), as configured in the controller. The key of Graphcore's controller is not documented.
      - Taken from the environment variable E(VIPU_CLI_METADATA_ACCESS_KEY_KEY) when not given.
    type: str
    default: vipu-access-key
  insecure_network:
    description:
      - Whether to send the access key without TLS to addresses other than loopback. Others on the network can read it then.
      - Taken from the environment variable E(VIPU_CLI_INSECURE_NETWORK) when not given.
    type: bool
    default: false
  timeout:
    description: Timeout of one call, in seconds.
    type: float
    default: 30.0
  transport:
    description:
      - Interface to the controller.
      - V(grpc) uses the API of the controller. A controller that offers only the public user API supports only partitions.
      - V(cli) runs the command lines C(vipu-admin) and C(vipu) on the host of the task and parses their output. Use it for agents, clusters,
        allocations and users of Graphcore's controller.
      - V(cli) has no transactions. Commands run one by one, removals first. The task ends at the first failure, and reports changed, failed and
        untried objects. Changes without a command, such as those of existing objects, are rejected before the first
        command runs. Commands run in a temporary home folder, so configuration files that they write do not remain.
      - V(cli) compares only printed values. Values that the list of partitions omits, such as sync type, GCD replicas and reconfigurability, are read
        from C(vipu get partition). When they are missing there too, a warning names the partition and the options.
    type: str
    choices: [grpc, cli]
    default: grpc
  vipu_admin_path:
    description: The C(vipu-admin) command for O(transport=cli).
    type: str
    default: vipu-admin
  vipu_path:
    description: The C(vipu) command for O(transport=cli).
    type: str
    default: vipu
requirements:
  - grpcio >= 1.80 and protobuf >= 6.31 for O(transport=grpc)
notes:
  - With a local connection, the task runs inside the Ansible process, which is faster. Set the variable C(openipu_fast_path=false) to disable this.
"""
