# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of what all modules have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """See the module."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and say what would change, without changing anything.
    support: full
    details:
      - The controller is read and not asked for its consent, since what a task needs may be made by a task before it. What it would refuse,
        for want of free IPUs for one, shows up only for real. The module M(openipu.pod.vipu_pod), which has all in one task, does ask.
  diff_mode:
    description: Says what changes, or in check mode would change, when in diff mode. Secrets never stand in it.
    support: full
  idempotent:
    description: When run twice in a row without something else changing in between, the second run changes nothing and writes nothing.
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
    description: Can run in C(check_mode) and say what would change, without changing anything.
    support: full
  diff_mode:
    description: Says what changes, or in check mode would change, when in diff mode.
    support: full
  idempotent:
    description: When run twice in a row without something else changing in between, the second run changes nothing and writes nothing.
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
    description: Can run in C(check_mode) and give the same result, since it changes nothing.
    support: full
  diff_mode:
    description: There is nothing to show, since it changes nothing.
    support: N/A
  idempotent:
    description: It changes nothing.
    support: full
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
"""

    EOS = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for Arista switches.
    membership:
      - openipu.pod.eos
    support: full
"""

    OPENSTACK = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for OpenStack.
    membership:
      - openipu.pod.openstack
    support: full
"""

    PDU = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all modules for power distribution units.
    membership:
      - openipu.pod.pdu
    support: full
"""

    VIPU = r"""
options: {}
attributes:
  action_group:
    description: Options in C(module_defaults) for this group apply to all V-IPU modules.
    membership:
      - openipu.pod.vipu
    support: full
"""
