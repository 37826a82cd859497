# SPDX-License-Identifier: GPL-3.0-or-later
"""Health check of a controller, with the standard health service of gRPC."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.process.grpc_errors import clause
from openipu.shared.vipu.contract import virmgrpc
from openipu.shared.vipu.failover import LEADER_METADATA
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.tls import load

_PAUSE = 0.2  # seconds
_CALL = 5.0  # seconds
_REFUSED = "Connection refused"  # by the operating system: no program listens


class NotServingError(Exception):
    """Raised when a controller does not serve."""

    error_code = "OPU616"


def wait(address: ListenAddress, certs: Path | None, seconds: float, *, standby: bool = False) -> str:
    """Return a description of a controller, as soon as it serves.

    ``certs``: folder of ``tls.issue.create`` for mutual TLS, None for no TLS. ``standby``: accept a controller that
    follows another one. Raises NotServingError after ``seconds``, and TlsError.
    """
    credentials = None
    if certs is not None:
        files = load.client_files(certs)
        ca, certificate, key = (load.read(Path(files[name])) for name in ("ca_path", "client_cert", "client_key"))
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
    deadline = time.monotonic() + seconds
    while True:
        found, reason, leader = _check(address, credentials)
        if leader and standby:
            return f"follows {leader}, on {address}"
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            if _REFUSED in reason:
                remedy = "Start it, see its log if it has ended, or correct --host and --port"
            elif leader:
                remedy = "Use the leader, or give --standby to accept a controller that follows"
            elif certs is None:
                remedy = "See its log, or give --secure if the controller runs with it"
            else:
                remedy = "See its log, or omit --secure if the controller runs without it"
            waited = f" after {seconds:g} s" if seconds else ""
            raise NotServingError(
                f"Cannot use the controller on {address}: it does not serve{waited}: {reason}. {remedy}."
            )
        time.sleep(_PAUSE)


def _check(address: ListenAddress, credentials: grpc.ChannelCredentials | None) -> tuple[str | None, str, str]:
    """Check once, on a new channel. Return the description of the controller, or None, the reason and its leader."""
    target = str(address)
    channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
    with channel:
        reason = ""
        try:
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_CALL)
            if health.status == health_pb2.HealthCheckResponse.SERVING:
                return f"{_version(channel)}serves on {address}", "", ""
            reason = f"its health is {health_pb2.HealthCheckResponse.ServingStatus.Name(health.status)}"
            _get_version(channel)  # a follower rejects this call; a controller that answers it has failed
        except grpc.RpcError as error:
            leader = str(dict(error.trailing_metadata() or ()).get(LEADER_METADATA, ""))
            if leader:
                return None, f"{reason}{', because ' if reason else ''}it follows {leader}", leader
            return None, reason or clause(error.details() or error.code().name).rstrip("."), ""
        return None, reason, ""


def _version(channel: grpc.Channel) -> str:
    """Return the version of a controller that serves, with a space; empty when it rejects the call, as in a flood."""
    try:
        return f"{_get_version(channel)} "
    except grpc.RpcError:
        return ""


def _get_version(channel: grpc.Channel) -> str:
    """Return the version of a controller. Raises RpcError."""
    reply = virmgrpc.stub(channel, "VersionService").GetVersion(virmgrpc.VersionRequest(), timeout=_CALL)
    return str(reply.version)
