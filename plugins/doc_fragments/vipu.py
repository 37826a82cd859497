# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of every V-IPU module."""

from __future__ import annotations


class ModuleDocFragment:
    """See the module."""

    DOCUMENTATION = r"""
options:
  api_host:
    description:
      - Name or address of the V-IPU controller.
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
      - Who asks, for a controller that wants to know.
      - Taken from the environment variable E(VIPU_CLI_API_USER_ID) when not given.
    type: str
  api_access_key:
    description:
      - The access key of O(api_user_id).
      - Taken from the environment variable E(VIPU_CLI_API_ACCESS_KEY) when not given.
    type: str
  ca_path:
    description:
      - File with the certificates of the authorities that the controller's certificate is checked against. Turns on TLS.
      - Taken from the environment variable E(VIPU_CLI_CA_PATH) when not given.
    type: path
  client_cert:
    description:
      - File with the certificate that this client shows. Turns on TLS. Goes together with O(client_key).
      - Taken from the environment variable E(VIPU_CLI_CLIENT_CERT) when not given.
    type: path
  client_key:
    description:
      - File with the private key of O(client_cert).
      - Taken from the environment variable E(VIPU_CLI_CLIENT_KEY) when not given.
    type: path
  metadata_user_id_key:
    description:
      - The gRPC metadata key under which O(api_user_id) is sent, as the controller has it. Graphcore's is not public.
      - Taken from the environment variable E(VIPU_CLI_METADATA_USER_ID_KEY) when not given.
    type: str
    default: vipu-user-id
  metadata_access_key_key:
    description:
      - The gRPC metadata key under which O(api_access_key) is sent, as the controller has it. Graphcore's is not public.
      - Taken from the environment variable E(VIPU_CLI_METADATA_ACCESS_KEY_KEY) when not given.
    type: str
    default: vipu-access-key
  timeout:
    description: How many seconds one call may take.
    type: float
    default: 30.0
  transport:
    description:
      - How the controller is reached.
      - V(grpc) speaks its API. With a controller that offers only the public user API this serves partitions and nothing else.
      - V(cli) runs the command lines C(vipu-admin) and C(vipu) on the host of the task, and reads what they print. Use it for agents,
        clusters, allocations and users of Graphcore's own controller.
      - With V(cli) there is no transaction. Commands run one by one, removals first, and the first that fails ends the task, which then
        tells what was done, what failed and what was not tried. What no command can do, a change of an object for one, is refused before
        the first of them runs. They run in an empty home of their own, so the configuration files that they write for people are not left
        behind.
      - With V(cli) what the commands do not print is not compared. What a list of partitions leaves out, like the sync type, the GCD replicas
        and whether a partition is reconfigurable, is read from C(vipu get partition), and when that does not tell it either, a warning names
        the partition and the options.
      - With a local connection the task runs inside Ansible itself, which is faster. The variable C(openipu_fast_path=false) turns that off.
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
"""
