# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_cluster_test_info: read the results of the last runs of cluster tests."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task
from ..cluster_test.failures import flat
from ..options import VIPU, Run


def _info(run: Run) -> Object:
    last, *others = run.transport.test_runs()
    runs = sorted((each for each in (last, *others) if each["state"] != "none"), key=lambda each: each["cluster"] or "")
    return {"changed": False, "run": None if last["state"] == "none" else last, "runs": runs, "failures": flat(last)}


VIPU_CLUSTER_TEST_INFO = Task(VIPU, {}, _info)
