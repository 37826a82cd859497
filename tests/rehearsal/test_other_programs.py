# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a rehearsal that are not Python code, such as gRPC: their connections to other hosts are impossible."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.rehearsal.conftest import Installation

# The address is in a file, because a rehearsal replaces the addresses in variables.
CALL = """
import grpc
with grpc.insecure_channel("192.0.2.1:50051") as channel:
    try:
        channel.unary_unary("/service/method")(b"", timeout=2)
    except grpc.RpcError as error:
        print(error.code().name)
"""


def with_grpc_call(pod: Path) -> None:
    """Make the run of a POD call a gRPC server outside of loopback."""
    (pod / "call.py").write_text(CALL)
    (pod / "group_vars").mkdir()
    lookup = f"lookup('pipe', '{sys.executable} {pod}/call.py')"
    (pod / "group_vars/all.yml").write_text(f"cabling_strict: \"{{{{ {lookup} == 'OK' }}}}\"\n")


def test_grpc_calls_are_counted_and_impossible(installation: Installation, small: Path) -> None:
    with_grpc_call(small)
    report, packets = installation.rehearse(small)
    assert packets == 0
    assert report["connections_of_other_programs"] > 0
    assert report["failures"] == []
    assert not report["succeeded"]


def test_without_namespaces_the_report_states_what_is_counted(installation: Installation, small: Path) -> None:
    report, packets = installation.rehearse(small, namespaces=False)
    assert report["succeeded"], report["failures"]
    assert packets == 0
    assert report["connections_outside_loopback"] == []
    assert report["connections_of_other_programs"] is None
