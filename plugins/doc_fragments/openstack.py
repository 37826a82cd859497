# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the OpenStack modules."""

from __future__ import annotations


class ModuleDocFragment:
    """Connection options of the OpenStack modules."""

    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - Name of a cloud in C(clouds.yaml), or a dictionary with the settings of a cloud in the format of C(clouds.yaml).
      - Other options override the settings of a dictionary. Omit O(auth) if the dictionary has C(auth).
      - Omit this and O(auth) to use the environment variable E(OS_CLOUD), or else the other variables E(OS_*).
    type: raw
  auth_type:
    description: Authentication plugin of keystoneauth, such as V(password), V(token) or V(v3applicationcredential).
    type: str
  auth:
    description: Credentials, in the format of C(auth) in C(clouds.yaml).
    type: dict
    suboptions:
      auth_url:
        description: URL of Keystone.
        type: str
      username:
        description: User name.
        type: str
      user_id:
        description: ID of the user.
        type: str
      user_domain_name:
        description: Name of the domain of the user.
        type: str
      user_domain_id:
        description: ID of the domain of the user.
        type: str
      project_name:
        description: Name of the project.
        type: str
      project_id:
        description: ID of the project.
        type: str
      project_domain_name:
        description: Name of the domain of the project.
        type: str
      project_domain_id:
        description: ID of the domain of the project.
        type: str
      domain_name:
        description: Name of the domain to log in to, instead of a project.
        type: str
      domain_id:
        description: ID of the domain to log in to, instead of a project.
        type: str
      default_domain_id:
        description: Domain of user and project when their own options are omitted.
        type: str
      system_scope:
        description: V(all) to log in to the system, instead of a project.
        type: str
      trust_id:
        description: ID of the trust to use.
        type: str
      application_credential_id:
        description: ID of an application credential.
        type: str
      application_credential_name:
        description: Name of an application credential.
        type: str
      endpoint:
        description: Endpoint for O(auth_type=none) and O(auth_type=admin_token).
        type: str
      password:
        description: Password of the user.
        type: str
      passcode:
        description: One-time code.
        type: str
      token:
        description: Token, for O(auth_type=token).
        type: str
      application_credential_secret:
        description: Secret of an application credential.
        type: str
  region_name:
    description: Name of the region.
    type: str
  interface:
    description: Type of the endpoints to use from the service catalog.
    type: str
    choices: [public, internal, admin]
    aliases: [endpoint_type]
  validate_certs:
    description: Whether to verify the certificates of the services.
    type: bool
    aliases: [verify]
  ca_cert:
    description: File with the certificate of the authority that signed the certificates of the services.
    type: path
    aliases: [cacert]
  client_cert:
    description: File with the client certificate, if the services require one.
    type: path
    aliases: [cert]
  client_key:
    description: File with the key of O(client_cert).
    type: path
    aliases: [key]
  api_timeout:
    description: Timeout of each request in seconds. Omit for no timeout.
    type: int
  sdk_log_path:
    description:
      - File for the log of openstacksdk. Only its owner can read it. Omit for no log.
    type: path
  sdk_log_level:
    description:
      - Level of the log. V(DEBUG) includes all requests and responses, without tokens and passwords.
      - With V(DEBUG), the log contains the user data of new servers, which may have secrets.
    type: str
    choices: [INFO, DEBUG]
    default: INFO
  concurrency:
    description: Maximum number of concurrent requests.
    type: int
    default: 4
requirements:
  - openstacksdk >= 4.0
notes:
  - The connection options are those of the collection C(openstack.cloud), so both can use the same C(clouds.yaml).
  - Omitted connection options are taken from C(clouds.yaml), or from the environment variables E(OS_*).
  - When another task creates the same object at the same time, the service reports a conflict. The module then reads the objects again, and writes
    only the remaining differences.
"""
