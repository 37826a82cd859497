# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a controller serves, asked as everybody can: by gRPC's standard health service."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.vipu import tls
from openipu.vipu.services import Listen

_PAUSE = 0.2  # seconds
_CALL = 5.0  # seconds


class NotServingError(Exception):
    """A controller does not serve; one sentence."""


def wait(where: Listen, certs: Path | None, seconds: float) -> str:
    """The version of a controller, as soon as it serves; raises NotServingError after ``seconds``, and TlsError.

    ``certs``, a folder of ``tls.create``, means mutual TLS.
    """
    credentials = None
    if certs is not None:
        files = tls.client_files(certs)
        ca, certificate, key = (tls.read(Path(files[name])) for name in ("ca_path", "client_cert", "client_key"))
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
    deadline = time.monotonic() + seconds
    while True:
        version, reason = _ask(where, credentials)
        if version is not None:
            return version
        if time.monotonic() >= deadline:
            raise NotServingError(f"The controller on {where} does not serve after {seconds:g} s: {reason}.")
        time.sleep(_PAUSE)


def _ask(where: Listen, credentials: grpc.ChannelCredentials | None) -> tuple[str | None, str]:
    """Ask once, on a channel of its own: the version, or else why there is none."""
    target = str(where)
    channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
    with channel:
        try:
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_CALL)
            if health.status != health_pb2.HealthCheckResponse.SERVING:
                return None, f"its health is {health_pb2.HealthCheckResponse.ServingStatus.Name(health.status)}"
            reply = virmgrpc.stub(channel, "VersionService").GetVersion(virmgrpc.VersionRequest(), timeout=_CALL)
        except grpc.RpcError as error:
            return None, (error.details() or error.code().name).rstrip(".")
        return reply.version, ""
