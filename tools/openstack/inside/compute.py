# SPDX-License-Identifier: GPL-3.0-or-later
"""nova-compute with the fake hypervisor of a Poplar server: compute.py --config-file FILE…

Runs with the cloud's own Python. Nova loads drivers from its package nova.virt only, so ours is put there
for this process.
"""

from __future__ import annotations

import sys

from nova.cmd import compute  # first: it decides how the process runs its threads

import poplar  # isort: skip

if __name__ == "__main__":
    sys.modules["nova.virt.poplar"] = poplar
    sys.argv[0] = "nova-compute"
    sys.exit(compute.main())
