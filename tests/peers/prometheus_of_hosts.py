# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus with the files that the role `monitoring` makes for hosts of an inventory."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.peers.exporters import HOST, responds, running
from tests.peers.monitoring_files import write_files
from tests.peers.test_prometheus import Query, query_prometheus
from tests.ports import free_port


@contextmanager
def prometheus_of_hosts(
    folder: Path, hosts: Mapping[str, Mapping[str, Any]], host: str, job: str, **variables: Any
) -> Iterator[Query]:
    """Run Prometheus of ``host`` with the targets of one job. Alerts fire without waiting times.

    ``hosts``: variables of each controller host. ``variables`` override those of the role.
    """
    inventory, port = folder / "inventory.yml", free_port()
    inventory.write_text(yaml.safe_dump({"controllers": {"hosts": hosts}}))
    files = write_files(
        folder,
        inventory,
        host,
        vipu_api_host=HOST,
        monitoring_scrape_interval="1s",
        monitoring_prometheus_port=port,
        monitoring_parts=["prometheus"],
        **variables,
    )
    targets = json.loads((files / "targets.json").read_text())[job]
    groups = [{"targets": [target["address"]], "labels": target["labels"]} for target in targets]
    (files / f"targets/{job}.json").write_text(json.dumps(groups))
    rules = files / "rules/alerts.yml"
    rules.write_text(re.sub(r"for: \w+", "for: 0s", rules.read_text()))
    command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command.append(f"--web.listen-address={HOST}:{port}")
    with running(command, folder / "prometheus.log", responds(f"http://{HOST}:{port}/-/ready")):
        yield functools.partial(query_prometheus, port)
