#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a release of the chart responds. It runs in pods, with the standard library only."""

from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_TIMEOUT_SECONDS = 10.0
_PAUSE_SECONDS = 1.0


def main() -> None:
    """Check until everything responds. Exit with status 1 and the last problem after the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proxy", default="", help="URL of the V-IPU proxy")
    parser.add_argument("--webhooks", default="", help="name of the webhook configurations")
    parser.add_argument("--seconds", type=float, default=240, help="time limit")
    parser.add_argument("--account", type=Path, default=_ACCOUNT, help="folder with the token for the API server")
    parser.add_argument("--address", default="", help="address of all webhooks, for machines without cluster DNS")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    while True:
        try:
            if options.proxy:
                check_proxy(options.proxy)
            if options.webhooks:
                check_webhooks(options.webhooks, options.account, options.address)
        except (OSError, ValueError) as error:
            problem = str(error)
        else:
            print("The release responds.")
            return
        if time.monotonic() > deadline:
            sys.exit(f"The release does not respond: {problem}")
        print(f"Waiting: {problem}", flush=True)
        time.sleep(_PAUSE_SECONDS)


def check_proxy(url: str) -> None:
    """Raise OSError or ValueError unless the proxy responds."""
    try:
        found = json.loads(_read(urllib.request.Request(f"{url}/stats")))  # noqa: S310  a URL of the chart
    except (OSError, ValueError) as error:
        raise OSError(f"V-IPU proxy {url}: {error}") from None
    print(f"V-IPU proxy {url}: {json.dumps(found['total'])}")


def check_webhooks(name: str, account: Path, address: str = "") -> None:
    """Raise OSError or ValueError unless the API server can call all webhooks: it verifies the same certificates."""
    for service, authority in {each for kind in _CONFIGURATIONS for each in _clients(kind, name, account)}:
        host, _, port = service.rpartition(":")
        try:
            context = ssl.create_default_context(cadata=authority)
            with (
                socket.create_connection((address or host, int(port)), _TIMEOUT_SECONDS) as connection,
                context.wrap_socket(connection, server_hostname=host),
            ):
                print(f"Webhooks {service}: the certificate is valid.")
        except OSError as error:
            raise OSError(f"webhooks {service}: {error}") from None


def _clients(kind: str, name: str, account: Path) -> Iterator[tuple[str, str]]:
    """Yield host:port and CA certificate of the webhooks of a configuration."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    token = (account / "token").read_text(encoding="utf-8").strip()
    request = urllib.request.Request(f"https://{server}/apis/admissionregistration.k8s.io/v1/{kind}/{name}")
    request.add_header("Authorization", f"Bearer {token}")
    try:
        found: Any = json.loads(_read(request, ssl.create_default_context(cafile=str(account / "ca.crt"))))
    except (OSError, ValueError) as error:
        raise OSError(f"{kind} {name}: {error}") from None
    for each in found["webhooks"]:
        client = each["clientConfig"]
        if not client.get("caBundle"):
            raise ValueError(f"webhook {each['name']} has no CA certificate yet")
        service = client["service"]
        yield (
            f"{service['name']}.{service['namespace']}.svc:{service['port']}",
            base64.b64decode(client["caBundle"]).decode("ascii"),
        )


def _read(request: urllib.request.Request, context: ssl.SSLContext | None = None) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        found: bytes = answer.read()
        return found


if __name__ == "__main__":
    main()
