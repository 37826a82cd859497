# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the attributes of all modules."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragment of all modules."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and report the changes without making them.
    support: full
    details:
      - Check mode does not validate with the controller, because an earlier task may create required objects. Errors such as too few free IPUs
        appear only in the real run. The module M(openipu.pod.vipu_pod), which manages all objects in one task, does validate.
  diff_mode:
    description: Returns the changes in diff mode, in check mode the predicted changes. It never contains secrets.
    support: full
  idempotent:
    description: When run twice in a row without other changes in between, the second run writes nothing.
    support: full
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
"""

    HOST = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and report the changes without making them.
    support: full
  diff_mode:
    description: Returns the changes in diff mode, in check mode the predicted changes.
    support: full
  idempotent:
    description: When run twice in a row without other changes in between, the second run writes nothing.
    support: full
  platform:
    description: Where the module can run.
    platforms: linux
    support: full
"""

    INFO = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) with the same result, because the module changes nothing.
    support: full
  diff_mode:
    description: There is no diff, because the module changes nothing.
    support: N/A
  idempotent:
    description: The module changes nothing.
    support: full
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
"""

    EOS_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for Arista switches.
    membership:
      - openipu.pod.eos
    support: full
"""

    OPENSTACK_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for OpenStack.
    membership:
      - openipu.pod.openstack
    support: full
"""

    PDU_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for power distribution units.
    membership:
      - openipu.pod.pdu
    support: full
"""

    VIPU_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all V-IPU modules.
    membership:
      - openipu.pod.vipu
    support: full
"""
