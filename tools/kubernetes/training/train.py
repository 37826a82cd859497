# SPDX-License-Identifier: GPL-3.0-or-later
"""Substitute for a training program in the published examples: it prints its share of the IPUs, and ends on request.

It ends when the file /tmp/finish exists, with the exit code in it.
"""

import os
import pathlib
import time

FINISH = pathlib.Path("/tmp/finish")  # noqa: S108  in a container
VARIABLES = ("IPUOF_VIPU_API_PARTITION_ID", "IPUOF_VIPU_API_GCD_ID", "POPDIST_NUM_TOTAL_REPLICAS")

rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
values = " ".join(f"{name}={os.environ.get(name, '')}" for name in VARIABLES)
print(f"rank {rank} on {os.environ.get('HOSTNAME', '')}: {values}", flush=True)
while not FINISH.exists():
    time.sleep(0.1)
code = int(FINISH.read_text() or 0)
FINISH.unlink(missing_ok=True)
raise SystemExit(code)
