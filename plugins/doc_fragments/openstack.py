# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the modules for OpenStack."""

from __future__ import annotations


class ModuleDocFragment:
    """See the module."""

    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - The name of a cloud in C(clouds.yaml).
      - Without, and without O(auth), that of the environment variable E(OS_CLOUD), or what the other variables E(OS_*) say.
    type: str
  auth_type:
    description: How to log in, as keystoneauth calls it, like V(password), V(token) or V(v3applicationcredential).
    type: str
  auth:
    description: Credentials, as C(auth) of C(clouds.yaml) has them.
    type: dict
    suboptions:
      auth_url:
        description: Where Keystone answers.
        type: str
      username:
        description: Who asks.
        type: str
      user_id:
        description: Who asks, by id.
        type: str
      user_domain_name:
        description: The domain of the user.
        type: str
      user_domain_id:
        description: The domain of the user, by id.
        type: str
      project_name:
        description: For which project.
        type: str
      project_id:
        description: For which project, by id.
        type: str
      project_domain_name:
        description: The domain of the project.
        type: str
      project_domain_id:
        description: The domain of the project, by id.
        type: str
      domain_name:
        description: For which domain, instead of a project.
        type: str
      domain_id:
        description: For which domain, by id.
        type: str
      default_domain_id:
        description: The domain of user and project, unless told.
        type: str
      system_scope:
        description: V(all) asks for the system, instead of a project.
        type: str
      trust_id:
        description: The trust to use.
        type: str
      application_credential_id:
        description: The id of an application credential.
        type: str
      application_credential_name:
        description: The name of an application credential.
        type: str
      endpoint:
        description: The endpoint of O(auth_type=none) and O(auth_type=admin_token).
        type: str
      password:
        description: The password.
        type: str
      passcode:
        description: The one-time code.
        type: str
      token:
        description: A token, for O(auth_type=token).
        type: str
      application_credential_secret:
        description: The secret of an application credential.
        type: str
  region_name:
    description: The region.
    type: str
  interface:
    description: Which endpoints of the catalogue are used.
    type: str
    choices: [public, internal, admin]
    aliases: [endpoint_type]
  validate_certs:
    description: Whether the certificates of the services are verified.
    type: bool
    aliases: [verify]
  ca_cert:
    description: The authority that signed them.
    type: path
    aliases: [cacert]
  client_cert:
    description: The certificate of the client, when it needs one.
    type: path
    aliases: [cert]
  client_key:
    description: Its key.
    type: path
    aliases: [key]
  api_timeout:
    description: How many seconds an answer may take. Without, it is waited for.
    type: int
  concurrency:
    description: How many requests are under way at a time, at the most.
    type: int
    default: 4
requirements:
  - openstacksdk >= 4.0
notes:
  - The connection options are those of the collection C(openstack.cloud), and one C(clouds.yaml) serves both.
"""
