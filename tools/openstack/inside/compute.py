# SPDX-License-Identifier: GPL-3.0-or-later
"""nova-compute with the fake hypervisor of a Poplar server: compute.py --config-file FILE…

It runs in the virtual environment of the cloud. Nova loads drivers only from its package nova.virt, so this
process adds the driver to it.
"""

from __future__ import annotations

import sys

from nova.cmd import compute  # first: it selects the threading model of the process

import poplar  # isort: skip

if __name__ == "__main__":
    sys.modules["nova.virt.poplar"] = poplar
    sys.argv[0] = "nova-compute"
    sys.exit(compute.main())
