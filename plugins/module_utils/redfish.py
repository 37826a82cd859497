# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module redfish_info: read systems, managers and versions from a BMC, and report problems.

It uses only the basic profile of Redfish.
"""

from __future__ import annotations

import http.client
import json
import ssl
import typing as t
import urllib.error
from dataclasses import dataclass

from ansible.module_utils.urls import open_url

from .reconcile import Object, UserError
from .runner import Connector, Run, Task, TaskError

ROOT = "/redfish/v1/"
_MAX_BYTES = 1 << 20  # of one response
_MAX_MEMBERS = 100  # of a collection
_MAX_TEXT = 200  # characters of one value

# Values of the result and the properties of Redfish that they come from.
_SYSTEM = {
    "id": "Id",
    "name": "Name",
    "manufacturer": "Manufacturer",
    "model": "Model",
    "serial": "SerialNumber",
    "power": "PowerState",
}
_MANAGER = {"id": "Id", "model": "Model", "version": "FirmwareVersion"}
_FIRMWARE = {"id": "Id", "version": "Version"}


class _NotFoundError(TaskError):
    """Raised when the BMC does not have a resource."""


@dataclass(frozen=True)
class Bmc:
    """HTTPS client of a BMC; ``timeout`` is in seconds. One request at a time, to limit the load on the BMC."""

    host: str
    port: int
    username: str | None
    password: str | None
    ca_path: str | None
    validate_certs: bool
    timeout: float

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    @property
    def address(self) -> str:
        """Host for messages, with the port unless it is 443."""
        return self.host if self.port == 443 else "%s:%d" % (self.host, self.port)

    def get(self, path: str) -> Object:
        """Return a resource. Raises TaskError."""
        # Only links within this BMC are followed, so that no other server receives the password.
        if not path.startswith("/") or path.startswith("//"):
            raise TaskError(
                "Cannot follow a link of the BMC at %s: %r is not a path. Check its firmware." % (self.address, path)
            )
        host = "[%s]" % self.host if ":" in self.host else self.host
        try:
            with open_url(
                "https://%s:%d%s" % (host, self.port, path),
                headers={"Accept": "application/json"},
                url_username=self.username,
                url_password=self.password,
                force_basic_auth=self.username is not None,
                validate_certs=self.validate_certs,
                ca_path=self.ca_path,
                timeout=self.timeout,
                follow_redirects="none",
                use_netrc=False,
            ) as reply:
                found = json.loads(reply.read(_MAX_BYTES))
        except urllib.error.HTTPError as error:
            kind = _NotFoundError if error.code == 404 else TaskError
            raise kind(self._rejection_message(error.code, path)) from None
        except (urllib.error.URLError, OSError, ssl.SSLError) as error:
            raise TaskError(self._connection_message(error)) from None
        except http.client.HTTPException as error:
            raise TaskError(
                "Cannot read %s from the BMC at %s: the response is not HTTP (%s). Check host and port."
                % (path, self.address, type(error).__name__)
            ) from None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise TaskError(
                "Cannot read %s from the BMC at %s: the response is not Redfish. Check host and port."
                % (path, self.address)
            )
        return found

    def members(self, collection: t.Any) -> list[Object]:
        """Return the members of a linked collection; empty when it does not exist."""
        path = _object(collection).get("@odata.id")
        try:
            links = self.get(str(path)).get("Members") if path else []
        except _NotFoundError:
            return []
        links = links if isinstance(links, list) else []
        return [self.get(str(_object(link).get("@odata.id"))) for link in links[:_MAX_MEMBERS]]

    def _rejection_message(self, code: int, path: str) -> str:
        if code in (401, 403):
            user = "as '%s'" % self.username if self.username else "without credentials"
            return "Cannot log in to the BMC at %s %s: access denied. Check username and password." % (
                self.address,
                user,
            )
        if code == 404 and path == ROOT:
            return "Cannot find a Redfish service at %s. Check host and port." % self.address
        return "Cannot read %s from the BMC at %s: HTTP status %d. See its log." % (path, self.address, code)

    def _connection_message(self, error: Exception) -> str:
        reason = getattr(error, "reason", None) or error
        text = str(getattr(reason, "strerror", None) or reason)
        if "certificate" in text.lower():
            return (
                "Cannot verify the certificate of the BMC at %s: %s. Set ca_path to a file with its CA certificate."
                % (
                    self.address,
                    getattr(reason, "verify_message", None) or text,
                )
            )
        return "Cannot connect to the BMC at %s: %s. Check its power and network, host and port." % (
            self.address,
            text.lower(),
        )


def _object(value: t.Any) -> Object:
    """Return a JSON object, empty for every other value."""
    return value if isinstance(value, dict) else {}


def _texts(item: Object, **names: str) -> Object:
    """Return properties of a resource as printable texts of limited length. Missing and other values are None."""
    return {key: _text(item.get(name)) for key, name in names.items()}


def _text(value: t.Any) -> str | None:
    if not isinstance(value, str):
        return None
    return "".join(character if character.isprintable() else "?" for character in value[:_MAX_TEXT])


def _status(item: Object) -> Object:
    found = _texts(_object(item.get("Status")), state="State", rollup="HealthRollup", health="Health")
    return {"state": found["state"], "health": found["rollup"] or found["health"]}


def read(bmc: Bmc) -> Object:
    """Return the version of Redfish and the lists ``systems``, ``managers`` and ``firmware``. Raises TaskError."""
    root = bmc.get(ROOT)
    service = _object(root.get("UpdateService")).get("@odata.id")
    update = bmc.get(str(service)) if service else {}
    return {
        "redfish_version": _text(root.get("RedfishVersion")),
        "systems": [{**_texts(item, **_SYSTEM), **_status(item)} for item in bmc.members(root.get("Systems"))],
        "managers": [{**_texts(item, **_MANAGER), **_status(item)} for item in bmc.members(root.get("Managers"))],
        "firmware": [
            {**_texts(item, **_FIRMWARE), **_status(item)} for item in bmc.members(update.get("FirmwareInventory"))
        ],
    }


def problems(address: str, readings: Object) -> list[str]:
    """Return a message for each item that is powered off or not healthy. Missing values are ignored."""
    found = [
        "System %s of the BMC at %s is powered %s." % (item["id"], address, item["power"].lower())
        for item in readings["systems"]
        if item["power"] not in (None, "On")
    ]
    for kind, title in (("systems", "System"), ("managers", "Manager"), ("firmware", "Firmware")):
        found += [
            "%s %s of the BMC at %s has health %s. See its log." % (title, item["id"], address, item["health"])
            for item in readings[kind]
            if item["health"] not in (None, "OK")
        ]
    return found


def _redfish_info(run: Run[Bmc]) -> Object:
    readings = read(run.transport)
    found = problems(run.transport.address, readings)
    result = {"changed": False, **readings, "problems": found}
    if found and run.params["fail_on_problem"]:
        raise TaskError(" ".join(found), **result)
    return result


def _open(params: dict[str, t.Any]) -> Bmc:
    if params["username"] is not None and params["password"] is None:
        raise UserError("Cannot log in to the BMC: username is set without password. Set both, or none.")
    names = ("host", "port", "username", "password", "ca_path", "validate_certs", "timeout")
    return Bmc(**{name: params[name] for name in names})


BMC: Connector[Bmc] = Connector(
    {
        "host": {"type": "str", "required": True},
        "port": {"type": "int", "default": 443},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "ca_path": {"type": "path"},
        "validate_certs": {"type": "bool", "default": True},
        "timeout": {"type": "float", "default": 30.0},
    },
    _open,
    lambda _args: True,  # the standard library suffices
)

REDFISH_INFO = Task(BMC, {"fail_on_problem": {"type": "bool", "default": False}}, _redfish_info)
