# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC tells by Redfish: systems, managers and versions, judged. Of the standard's basic profile only."""

from __future__ import annotations

import json
import ssl
import typing as t
import urllib.error
from dataclasses import dataclass

from ansible.module_utils.urls import open_url

from .reconcile import Object, SentenceError
from .runner import Run, Task, TaskError, Way

ROOT = "/redfish/v1/"
_MOST_BYTES = 1 << 20  # of one answer
_MOST_MEMBERS = 100  # of a collection


class _Missing(TaskError):
    """There is no such resource."""


@dataclass(frozen=True)
class Bmc:
    """A BMC, asked over HTTPS; one request at a time, as small BMCs like it."""

    host: str
    port: int
    username: str | None
    password: str | None
    ca_path: str | None
    validate_certs: bool
    timeout: float

    def close(self) -> None:
        """There is nothing to let go of: every request has a connection of its own."""

    @property
    def called(self) -> str:
        return self.host if self.port == 443 else "%s:%d" % (self.host, self.port)

    def get(self, path: str) -> Object:
        """A resource. Raises TaskError with a sentence."""
        # A link leads on inside of this BMC, or nowhere: the password goes to nobody else.
        if not path.startswith("/") or path.startswith("//"):
            raise TaskError(
                "The BMC at %s links to %r, which is no path on it: it was not followed." % (self.called, path)
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
                found = json.loads(reply.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            kind = _Missing if error.code == 404 else TaskError
            raise kind(self._refusal(error.code, path)) from None
        except (urllib.error.URLError, OSError, ssl.SSLError) as error:
            raise TaskError(self._silence(error)) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise TaskError("The BMC at %s answers %s with something that is not Redfish." % (self.called, path))
        return found

    def members(self, collection: Object | None) -> list[Object]:
        """The resources of a collection that another resource links to; none when there is no such collection."""
        path = (collection or {}).get("@odata.id")
        try:
            links = self.get(str(path)).get("Members") or [] if path else []
        except _Missing:
            return []
        return [self.get(str(link.get("@odata.id"))) for link in links[:_MOST_MEMBERS]]

    def _refusal(self, code: int, path: str) -> str:
        if code in (401, 403):
            who = "user '%s'" % self.username if self.username else "callers without a login"
            return "The BMC at %s does not let %s in: check username and password." % (self.called, who)
        if code == 404 and path == ROOT:
            return "At %s there is no Redfish: check host and port." % self.called
        return "The BMC at %s answers %s with HTTP status %d." % (self.called, path, code)

    def _silence(self, error: Exception) -> str:
        reason = getattr(error, "reason", None) or error
        text = str(getattr(reason, "strerror", None) or reason)
        if "certificate" in text.lower():
            return "The certificate of the BMC at %s cannot be trusted (%s): give its authority with ca_path." % (
                self.called,
                getattr(reason, "verify_message", None) or text,
            )
        return "The BMC at %s does not answer (%s): see that it has power and is in the network." % (
            self.called,
            text.lower(),
        )


def _status(item: Object) -> Object:
    status = item.get("Status") or {}
    return {"state": status.get("State"), "health": status.get("HealthRollup") or status.get("Health")}


def read(bmc: Bmc) -> Object:
    """``systems``, ``managers`` and ``firmware``, each a list of objects."""
    root = bmc.get(ROOT)
    update = bmc.get(str(root["UpdateService"]["@odata.id"])) if root.get("UpdateService") else {}
    return {
        "redfish_version": root.get("RedfishVersion"),
        "systems": [
            {
                "id": item.get("Id"),
                "name": item.get("Name"),
                "manufacturer": item.get("Manufacturer"),
                "model": item.get("Model"),
                "serial": item.get("SerialNumber"),
                "power": item.get("PowerState"),
                **_status(item),
            }
            for item in bmc.members(root.get("Systems"))
        ],
        "managers": [
            {"id": item.get("Id"), "model": item.get("Model"), "version": item.get("FirmwareVersion"), **_status(item)}
            for item in bmc.members(root.get("Managers"))
        ],
        "firmware": [
            {"id": item.get("Id"), "version": item.get("Version"), **_status(item)}
            for item in bmc.members(update.get("FirmwareInventory"))
        ],
    }


def problems(called: str, seen: Object) -> list[str]:
    """A sentence for everything that is not as it should be. What is not told is no problem. Pure."""
    found = [
        "System %s of the BMC at %s is powered %s." % (item["id"], called, str(item["power"]).lower())
        for item in seen["systems"]
        if item["power"] not in (None, "On")
    ]
    for kind, title in (("systems", "System"), ("managers", "Manager"), ("firmware", "Firmware")):
        found += [
            "%s %s of the BMC at %s has the health %s: look at its log." % (title, item["id"], called, item["health"])
            for item in seen[kind]
            if item["health"] not in (None, "OK")
        ]
    return found


def _info(run: Run[Bmc]) -> Object:
    seen = read(run.transport)
    wrong = problems(run.transport.called, seen)
    result = {"changed": False, **seen, "problems": wrong}
    if wrong and run.params["fail_on_problem"]:
        raise TaskError(" ".join(wrong), **result)
    return result


def _open(params: dict[str, t.Any]) -> Bmc:
    if params["username"] is not None and params["password"] is None:
        raise SentenceError("A username is of no use without its password.")
    names = ("host", "port", "username", "password", "ca_path", "validate_certs", "timeout")
    return Bmc(**{name: params[name] for name in names})


BMC: Way[Bmc] = Way(
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
    lambda _args: True,  # of the standard library only
)

REDFISH_INFO = Task(BMC, {"fail_on_problem": {"type": "bool", "default": True}}, _info)
