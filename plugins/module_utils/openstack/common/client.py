# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenStack client: configuration and session of openstacksdk, and errors of the services as messages.

Requests use the SDK's proxies without its resource objects: collections are read and written as plain
dictionaries.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import typing as t
from concurrent.futures import ThreadPoolExecutor, wait

from ...reconcile import Object, UserError
from . import token_cache
from .sdk import HAS_OPENSTACK

if HAS_OPENSTACK:
    import openstack
    from keystoneauth1 import exceptions as auth_errors
    from openstack import exceptions as sdk_errors

_T = t.TypeVar("_T")
_R = t.TypeVar("_R")

_UNAVAILABLE = (502, 503, 504)
OVER_QUOTA = "OverQuota"  # type of an error of Neutron, with status 409
_NOT_PERMITTED = "PolicyNotAuthorized"  # type of an error of Neutron, with status 403
# Parts of errors of Keystone, Nova and Ironic, whose errors have no type.
_POLICY_MESSAGES = ("not authorized", "policy doesn't allow", "access was denied")


class CloudError(UserError):
    """Raised when a service rejects a request or sends no response.

    ``status`` is the HTTP status, None without a response. ``kind`` is the type of the error as the service names it.
    """

    error_code = "OPU500"

    def __init__(self, message: str, status: int | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    @property
    def fatal(self) -> bool:
        """True when every other request would fail for the same reason."""
        return self.status is None or self.status == 401 or self.status in _UNAVAILABLE or self.kind == _NOT_PERMITTED


class RejectedError(CloudError):
    """Raised when a service rejects a request because of its content or of the state of an object."""

    @property
    def may_be_conflict(self) -> bool:
        """True when another client may have created or changed the same object first.

        The status is 409, or 400 for some objects, such as overlapping subnets. An exceeded quota is no conflict.
        """
        return self.status in (400, 409) and self.kind != OVER_QUOTA


def log_sdk(path: str, debug: bool) -> None:
    """Write the log of openstacksdk to a file that only its owner can read; ``debug`` includes all requests.

    An existing file gets the mode 0600, devices keep theirs. Raises CloudError when the file cannot be written.
    """
    if HAS_OPENSTACK:
        try:
            with open(os.open(path, os.O_CREAT | os.O_APPEND, 0o600)) as file:  # noqa: PTH123 - opens a descriptor
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    os.fchmod(file.fileno(), 0o600)
                openstack.enable_logging(debug=debug, http_debug=debug, path=path)
        except OSError as error:
            raise CloudError(
                "Cannot write the log '%s': %s. Set sdk_log_path to a file that you own." % (path, error.strerror)
            ) from error


class Cloud:
    """Connection to one cloud as one user, opened by the first request."""

    def __init__(self, options: dict[str, t.Any], concurrency: int) -> None:
        """Store the keyword arguments of ``openstack.connect`` and the maximum number of concurrent requests."""
        self._options = options
        self._concurrency = concurrency
        self._connection: t.Any = None
        self._stored_login: str | None = None
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """Close connections and threads."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        if self._connection:
            token_cache.close(self._connection, self._stored_login)

    @property
    def connection(self) -> t.Any:
        """Connection of the SDK. Raises CloudError when no option, file or variable configures the cloud."""
        if not HAS_OPENSTACK:
            raise CloudError(
                "Cannot connect to OpenStack: the Python library openstacksdk is missing. Install openstacksdk."
            )
        if self._connection is None:
            with self._convert_errors("Keystone"):
                try:
                    self._connection = token_cache.connect(self._options)
                except token_cache.KEYRING_ERRORS as error:
                    raise CloudError(
                        "Cannot read the token of the cloud in the keyring: %s. Unlock the keyring, or remove auth "
                        "from cache in clouds.yaml." % _cause(error)
                    ) from error
                except (AttributeError, ImportError, TypeError, ValueError) as error:
                    raise CloudError(
                        "Cannot use the settings of the cloud: %s. Correct clouds.yaml or the variables of the "
                        "environment." % _cause(error)
                    ) from error
                self._stored_login = token_cache.login_of(self._connection)
        return self._connection

    def authorize(self) -> str:
        """Log in and return the id of the project of the credentials. Raises CloudError."""
        with self._convert_errors("Keystone"):
            project = self.connection.session.get_project_id()
        if not project:
            raise CloudError(
                "Cannot use %s: the credentials are not for a project. Set project_name in auth." % self.name
            )
        return str(project)

    def identity(self) -> tuple[str, str]:
        """Log in and return the ids of the user and the project. Raises CloudError."""
        project = self.authorize()
        with self._convert_errors("Keystone"):
            return str(self.connection.session.get_user_id()), project

    @property
    def name(self) -> str:
        """Name of the cloud for messages."""
        name = self.connection.config.name
        return "cloud '%s'" % name if name else "the cloud"

    def has_service(self, service: str) -> bool:
        """Return whether the service catalog has a service of this type. Raises CloudError.

        The catalog comes with the login. That of a stored login may be older than the service.
        """
        if self._has_endpoint(service):
            return True
        if self._stored_login is None or token_cache.login_of(self.connection) != self._stored_login:
            return False
        self.connection.session.invalidate()
        return self._has_endpoint(service)

    def _has_endpoint(self, service: str) -> bool:
        with self._convert_errors("Keystone"), contextlib.suppress(auth_errors.EndpointNotFound):
            return bool(self.connection.config.get_session_client(service).get_endpoint())
        return False

    def max_microversion(self, service: str) -> tuple[int, int] | None:
        """Return the newest microversion of a service, None when it reports none. Raises CloudError."""
        with self._convert_errors(_PRODUCTS.get(service, service)):
            found = getattr(self.connection, service).get_endpoint_data()
        return found.max_microversion if found else None

    def map(self, work: t.Callable[[_T], _R], items: t.Sequence[_T]) -> list[_R]:
        """Call ``work`` for all items concurrently and return the results. Raises the first error after all ended."""
        if len(items) < 2:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._concurrency)
        futures = [self._pool.submit(work, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]

    def list(self, service: str, path: str, collection: str, **query: t.Any) -> t.List[Object]:  # noqa: UP006 - the method's own name
        """Return all objects of a collection, from all its pages."""
        found: t.List[Object] = []  # noqa: UP006
        body = self.request(service, "GET", path, params=query)
        while True:
            found += body[collection]
            following = [link["href"] for link in body.get("%s_links" % collection) or () if link["rel"] == "next"]
            if not following or not body[collection]:
                return found
            body = self.request(service, "GET", following[0])

    def request(self, service: str, method: str, path: str, **options: t.Any) -> t.Any:
        """Send one request and return the body of the response, None without a body. Raises CloudError."""
        options.setdefault("microversion", _MICROVERSIONS.get(service))
        with self._convert_errors(_PRODUCTS.get(service, service)):
            proxy = getattr(self.connection, service)
            response = proxy.request(path, method, raise_exc=False, **options)
        if response.status_code >= 400:
            raise _rejection(_PRODUCTS.get(service, service), response)
        return response.json() if response.content else None

    @contextlib.contextmanager
    def _convert_errors(self, service: str) -> t.Iterator[None]:
        """Convert errors of openstacksdk and keystoneauth to CloudError."""
        try:
            yield
        except CloudError:
            raise
        except (auth_errors.Unauthorized, auth_errors.NotFound) as error:  # Keystone reports an expired token as 404
            raise CloudError(
                "Cannot log in to Keystone: %s. Correct the credentials, or request a new token." % _cause(error), 401
            ) from error
        except auth_errors.SSLError as error:
            raise CloudError(
                "Cannot verify the certificate of %s: %s. Set ca_cert to the authority that signed it."
                % (service, _cause(error))
            ) from error
        except (auth_errors.ConnectFailure, auth_errors.ConnectTimeout) as error:
            raise CloudError(
                "Cannot connect to %s: %s. Check auth_url and that the service runs, and run the task again."
                % (service, _cause(error))
            ) from error
        # The SDK disables a service that has no endpoint in the region.
        except (auth_errors.EndpointNotFound, sdk_errors.NotSupported, sdk_errors.ServiceDisabledException) as error:
            raise CloudError(
                "Cannot find %s in the service catalog: %s. Check region_name and interface." % (service, _cause(error))
            ) from error
        except (sdk_errors.ConfigException, auth_errors.MissingRequiredOptions) as error:
            raise CloudError(
                "Cannot find the connection settings of the cloud: %s. Set cloud to a name in clouds.yaml, or set auth."
                % _cause(error)
            ) from error
        except (auth_errors.ClientException, sdk_errors.SDKException) as error:
            status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
            raise CloudError(
                "Cannot call %s: %s. Check the service, and run the task again." % (service, _cause(error)), status
            ) from error


# Default microversions. Since Manila 2.50, share types can be changed.
_MICROVERSIONS = {"shared_file_system": "2.50"}

_PRODUCTS = {
    "network": "Neutron",
    "identity": "Keystone",
    "compute": "Nova",
    "image": "Glance",
    "block_storage": "Cinder",
    "shared_file_system": "Manila",
    "baremetal": "Ironic",
}


def _cause(error: Exception) -> str:
    """Return the message of an error without nested errors."""
    return " ".join(str(error).split()).partition(": (")[0].partition(": HTTP")[0].rstrip(".")


def _rejection(service: str, response: t.Any) -> CloudError:
    """Return the error in the body of a response, in any of the usual formats."""
    kind, message = "", ""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        part = _decoded(next((value for value in body.values() if isinstance(value, (dict, str))), {}))
        if isinstance(part, dict):
            kind, message = str(part.get("type", "")), str(part.get("message") or part.get("faultstring", ""))
        else:
            message = part
    message = " ".join(message.split()).rstrip(".") or response.reason or "status %d" % response.status_code
    if response.status_code in _UNAVAILABLE:
        return CloudError(
            "%s is unavailable: %s. Run the task again later." % (service, message), response.status_code, kind
        )
    # Nova reports exceeded quotas with the same status.
    if kind == _NOT_PERMITTED or (
        response.status_code == 403 and any(part in message.lower() for part in _POLICY_MESSAGES)
    ):
        return CloudError(
            "Cannot use %s with these credentials: %s. Use those of an administrator of the cloud."
            % (service, message),
            response.status_code,
            _NOT_PERMITTED,
        )
    return RejectedError("%s returned an error: %s." % (service, message), response.status_code, kind)


def _decoded(part: Object | str) -> Object | str:
    """Return the error in a response of Ironic, whose body has JSON as a string. Return others unchanged."""
    if isinstance(part, str) and part.startswith("{"):
        with contextlib.suppress(ValueError):
            return t.cast("Object", json.loads(part))
    return part
