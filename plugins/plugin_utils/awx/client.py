# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read-only client of the API of AWX, for comparisons that the modules of awx.awx do not make."""

from __future__ import annotations

import json
import typing as t
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlparse

from ansible.module_utils.urls import ConnectionError as TlsError
from ansible.module_utils.urls import Request, SSLValidationError
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError

Object = dict[str, t.Any]
# Options of the modules of awx.awx, and the environment variables that they read.
OPTIONS: dict[str, tuple[str, ...]] = {
    "controller_host": ("CONTROLLER_HOST", "TOWER_HOST"),
    "controller_username": ("CONTROLLER_USERNAME", "TOWER_USERNAME"),
    "controller_password": ("CONTROLLER_PASSWORD", "TOWER_PASSWORD"),
    "controller_oauthtoken": ("CONTROLLER_OAUTH_TOKEN", "TOWER_OAUTH_TOKEN"),
    "validate_certs": ("CONTROLLER_VERIFY_SSL", "TOWER_VERIFY_SSL"),
    "request_timeout": ("CONTROLLER_REQUEST_TIMEOUT",),
}
SECRET_OPTIONS = ("controller_password", "controller_oauthtoken")
_REMEDY = "Check the connection of the role (awx_content_connection) or the environment variables CONTROLLER_*"


def resolve(options: t.Mapping[str, t.Any], environment: t.Mapping[str, str]) -> Object:
    """Return the connection options: those given, then those of the environment. Raise TaskError."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TaskError(
            "Cannot connect to AWX: unknown connection option '{}'. Use {}.".format(unknown[0], ", ".join(OPTIONS))
        )
    found: Object = {}
    for name, variables in OPTIONS.items():
        value = options.get(name)
        if value in (None, ""):
            value = next((environment[variable] for variable in variables if environment.get(variable)), None)
        if value is not None:
            found[name] = value
    found.setdefault("validate_certs", True)
    found.setdefault("request_timeout", 30)
    if "controller_host" not in found:
        raise TaskError("Cannot connect to AWX: no address is set. Set controller_host, or CONTROLLER_HOST.")
    if not has_scheme(found["controller_host"]):
        found["controller_host"] = "https://{}".format(found["controller_host"])
    if "controller_oauthtoken" not in found and not {"controller_username", "controller_password"} <= set(found):
        raise TaskError(
            "Cannot connect to AWX: neither a token nor user name and password are set. Set controller_oauthtoken, "
            "or CONTROLLER_OAUTH_TOKEN."
        )
    return found


def has_scheme(host: str) -> bool:
    """Return whether an address starts with http:// or https://."""
    return urlparse(str(host)).scheme in ("http", "https")


class Client:
    """Reader of one AWX."""

    def __init__(self, connection: t.Mapping[str, t.Any], prefix: str = "/api/") -> None:
        self._base = str(connection["controller_host"]).rstrip("/")
        self._prefix = prefix
        token = connection.get("controller_oauthtoken")
        if isinstance(token, dict):
            token = token.get("token")
        self._request = Request(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            url_username=None if token else connection["controller_username"],
            url_password=None if token else connection["controller_password"],
            force_basic_auth=not token,
            validate_certs=_boolean(connection["validate_certs"]),
            timeout=float(connection["request_timeout"]),
        )

    def get(self, path: str) -> Object:
        """Return the answer for a path below the version of the API, or an absolute path. Raise TaskError."""
        url = self._base + path if path.startswith("/") else f"{self._base}{self._prefix}v2/{path}"
        try:
            response = self._request.open("GET", url)
            return t.cast("Object", json.loads(response.read()))
        except HTTPError as error:
            if error.code == 401:
                cause = "the credentials are not valid"
            elif error.code == 403:
                cause = "the user may not read it"
            else:
                cause = f"HTTP status {error.code}"
            raise TaskError(f"Cannot read {path} from AWX at {self._base}: {cause}. {_REMEDY}.") from None
        except (SSLValidationError, TlsError, URLError, OSError) as error:
            cause = str(error).rstrip(".")
            raise TaskError(f"Cannot reach AWX at {self._base}: {cause}. {_REMEDY}.") from None
        except ValueError:
            raise TaskError(f"Cannot read {path} from AWX at {self._base}: no JSON. {_REMEDY}.") from None

    def all(self, endpoint: str, **filters: t.Any) -> list[Object]:
        """Return all objects of a list that match the filters."""
        path: str | None = "{}/?{}".format(endpoint, urlencode({**filters, "page_size": 200}))
        found: list[Object] = []
        while path:
            answer = self.get(path)
            found += answer["results"]
            path = answer["next"]
        return found


def _boolean(value: t.Any) -> bool:
    return str(value).lower() not in ("false", "no", "0", "off", "n", "f")
