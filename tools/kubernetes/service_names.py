# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of Services for the name server of a node: one file per Service, which dnsmasq reads when it changes.

``python -m tools.kubernetes.service_names KUBECONFIG FOLDER`` follows the Services until it is ended.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from openipu.kubernetes.cluster.client import Object, Resource, open_client
from openipu.kubernetes.cluster.informer import Informer

DOMAIN = "cluster.local"
_SERVICES = Resource("v1", "services")


async def follow(kubeconfig: Path, folder: Path) -> None:
    """Write the names of all Services, and follow their changes."""

    def changed(service: Object) -> None:
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        file = folder / f"{namespace}.{name}"
        address = service["spec"].get("clusterIP", "None")
        if services.get((namespace, name)) is None or address == "None":
            file.unlink(missing_ok=True)
        else:
            file.write_text(f"{address} {name}.{namespace}.svc.{DOMAIN}\n")

    async with await open_client(str(kubeconfig)) as client:
        services = Informer(client, _SERVICES, changed)
        await services.run()


if __name__ == "__main__":
    asyncio.run(follow(Path(sys.argv[1]), Path(sys.argv[2])))
