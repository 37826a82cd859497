# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks for several PODs at once, against the twins of two PODs."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from openipu.shared.pod.load import load
from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import virmgrpc
from openipu.shared.vipu.ports import CONTROLLER_PORT
from tests import ROOT
from tests.integration.bringup import two_pods
from tests.integration.bringup.own_twin import changed
from tests.integration.bringup.two_pods import TwoPods
from tests.waiting import until


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoPods]:
    """Return two PODs with running twins."""
    made = two_pods.write(tmp_path_factory.mktemp("pods"))
    try:
        made.up()
        yield made
    finally:
        made.down()


def refused(address: str) -> bool:
    """Return whether no controller listens at an address."""
    with socket.socket() as connection:
        return connection.connect_ex((address, CONTROLLER_PORT)) != 0


@pytest.fixture
def half(pods: TwoPods) -> Iterator[TwoPods]:
    """Return the same PODs, of which the controller of south is down."""
    south = pods.twins["south"]
    os.kill(south.pid("controller"), signal.SIGKILL)
    until(lambda: refused(south.controller))
    yield pods
    south.twin("up")
    with Client(Connection(south.controller)) as client:
        request = virmgrpc.ListPartitionsRequest()
        until(
            lambda: (
                [each.ready_state for each in client.call(client.user.ListPartitions, request).partitions]
                == [virmgrpc.PS_ACTIVE]
            )
        )


def shown(output: str) -> dict[str, list[str]]:
    """Return the printed lines by host. The summary of all PODs is printed last, by the first host."""
    found: dict[str, list[str]] = {}
    for host, lines in re.findall(r"^ok: \[(\S+)\] => \n    msg:\n((?:    .*\n)+)", output, re.MULTILINE):
        text = re.sub(r"\n {8}", " ", lines).splitlines()  # continued lines
        found.setdefault(host, []).extend(line.removeprefix("    - ").strip("'") for line in text)
    return found


def test_one_report_shows_all_controllers(pods: TwoPods) -> None:
    done = pods.playbook("controller_report.yml")
    lines = shown(done.stdout)
    for name, each in pods.twins.items():
        own = lines[f"{name}-server1"]
        assert own[0].startswith(f"controller {each.controller}:8090, version ")
        assert own[1] == "4 of 4 agents up"
        assert "partition p1-1 is ACTIVE, 8 IPUs of a1, routing DNC" in own
    assert lines["north-server1"][-3:] == [
        "north: 4 of 4 agents up, partitions: 1 (8 IPUs)",
        "south: 4 of 4 agents up, partitions: 1 (8 IPUs)",
        "total of 2 of 2 PODs: 8 of 8 agents up, partitions: 2 (16 IPUs)",
    ]
    assert changed(done) == 0
    limited = shown(pods.playbook("controller_report.yml", "--limit", "pod_south").stdout)
    assert limited == {"south-server1": lines["south-server1"]}


def test_a_controller_that_is_down_hides_no_other(half: TwoPods) -> None:
    done = half.playbook("controller_report.yml", check=False)
    assert done.returncode == 2
    lines = shown(done.stdout)
    assert set(lines) == {"north-server1"}
    *_, north, south, total = lines["north-server1"]
    assert north == "north: 4 of 4 agents up, partitions: 1 (8 IPUs)"
    address = half.twins["south"].controller
    failure = f"the V-IPU controller at {address}:8090 does not respond (connection refused)."
    assert south.startswith(f"south: Cannot get the version: {failure}")
    assert total == "total of 1 of 2 PODs: 4 of 4 agents up, partitions: 1 (8 IPUs)"


def test_the_playbook_of_the_page_shows_the_reason_and_the_others(half: TwoPods) -> None:
    text = (ROOT / "docs/how-to/several-pods.md").read_text()
    (block,) = re.findall(r"```yaml\n(- name: Read the controllers of all PODs\n.+?)```", text, re.DOTALL)
    playbook = half.inventory.parent / "errors.yml"
    playbook.write_text(block)
    assert yaml.safe_load(block)
    done = half.playbook(str(playbook))
    (shown_text,) = re.findall(r"^ok: \[north-server1\] => \n    msg:\n((?: +.*\n)+)", done.stdout, re.MULTILINE)
    found = yaml.safe_load(shown_text)
    assert (found["errors"], list(found["failures"])) == ([], ["south"])
    assert "does not respond (connection refused)" in found["failures"]["south"]


def test_one_page_shows_all_racks(pods: TwoPods) -> None:
    page = pods.inventory / "rack-report.html"
    checked = pods.playbook("rack_report.yml", "--check")
    assert (changed(checked), page.exists()) == (1, False)
    first = pods.playbook("rack_report.yml")
    assert f"Rack report: {page}" in first.stdout
    assert changed(first) == 1
    text = page.read_text()
    assert "<h1>2 PODs</h1>" in text
    for number, (name, each) in enumerate(pods.twins.items(), 1):
        assert f'<h2 id="pod-{number}">{name}</h2>' in text
        assert all(f"<td>{machine.addresses['gw']}</td>" in text for machine in load(str(each.inventory)).machines)
    assert text.count('class="machine"') == 2 * two_pods.MACHINES
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    # The host in the second source is no path.
    assert changed(pods.playbook("rack_report.yml", "--diff", "-i", "metrics1,")) == 0
    pods.playbook("rack_report.yml", "--limit", "pod_south")
    assert "<h1>south</h1>" in (pods.inventory / "south/rack-report-south.html").read_text()


def test_pods_without_a_common_folder_have_the_page_beside_the_first(pods: TwoPods) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        more = Path(other) / "more.yml"
        more.write_text(yaml.safe_dump({"global": {"hosts": {"metrics1": {}}}}))
        assert os.path.commonpath([more, pods.inventory]) == "/"
        done = pods.playbook("rack_report.yml", "-i", str(more))
    page = pods.inventory / "north/rack-report.html"
    assert f"Rack report: {page}" in done.stdout
    assert "<h1>2 PODs</h1>" in page.read_text()


def test_the_published_page_of_all_pods_has_the_name_of_none(pods: TwoPods, tmp_path: Path) -> None:
    local = f"ansible_connection=local ansible_python_interpreter={sys.executable} ansible_become=false"
    options = ("-e", f"{local} rack_report_folder={tmp_path}")
    failed = pods.playbook("rack_report_failure.yml", *options, check=False)
    assert failed.returncode == 2
    assert f"north-server1:{tmp_path}/all-pods.html" in failed.stdout, failed.stdout
    assert "<h1>2 PODs</h1>" in (tmp_path / "all-pods.html").read_text()
    pods.playbook("rack_report_publish.yml", *options, "--limit", "pod_south")
    assert "<h1>south</h1>" in (tmp_path / "south.html").read_text()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_page_names_the_controller_that_is_down(half: TwoPods) -> None:
    page = half.inventory / "half.html"
    done = half.playbook("rack_report.yml", "-e", f"pod_report_dest={page}", check=False)
    assert done.returncode == 2
    text = page.read_text()
    failure = f"the V-IPU controller at {half.twins['south'].controller}:8090 does not respond (connection refused)."
    assert text.count(failure) == 1
    assert "Failed: south" in text
    assert text.count('class="machine"') == 2 * two_pods.MACHINES, "drawn from pod.yml"


def test_saved_results_are_of_one_pod(pods: TwoPods) -> None:
    done = pods.playbook("rack_report.yml", "-e", "pod_report_test=results.json", check=False)
    assert done.returncode == 2
    message = "Cannot use pod_report_test for several PODs. Limit the run to one POD: --limit pod_north."
    assert message in " ".join(done.stdout.split())
