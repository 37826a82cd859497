# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to an OpenStack cloud: openstacksdk's configuration and session, and what its services refuse, as sentences.

Requests are made through the SDK's proxies, without its resource objects: whole collections are read and
written at once, and a dictionary is all that it takes.
"""

from __future__ import annotations

import contextlib
import typing as t
from concurrent.futures import ThreadPoolExecutor, wait

from ..reconcile import Object, SentenceError

try:
    import openstack
    from keystoneauth1 import exceptions as auth_errors
    from openstack import exceptions as sdk_errors

    HAS_OPENSTACK = True
except ImportError:
    HAS_OPENSTACK = False

_T = t.TypeVar("_T")
_R = t.TypeVar("_R")

_UNAVAILABLE = (502, 503, 504)


class CloudError(SentenceError):
    """A service refused a request, or did not answer.

    ``status`` is that of HTTP, None when there was no answer; ``kind`` is the service's own name of the error.
    ``fatal`` is what every other request would meet as well.
    """

    def __init__(self, sentence: str, status: int | None = None, kind: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind

    @property
    def fatal(self) -> bool:
        """Whether there is no point in going on."""
        return self.status is None or self.status == 401 or self.status in _UNAVAILABLE


class Cloud:
    """One cloud, as one user. Nothing is asked before the first request."""

    def __init__(self, options: dict[str, t.Any], concurrency: int) -> None:
        """``options`` are keyword arguments of ``openstack.connect``; ``concurrency`` bounds requests at a time."""
        self._options = options
        self._concurrency = concurrency
        self._connection: t.Any = None
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """Let go of connections and threads."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        if self._connection:
            with contextlib.suppress(Exception):
                self._connection.close()

    @property
    def connection(self) -> t.Any:
        """The SDK's own connection. Raises CloudError when nothing says where the cloud is."""
        if not HAS_OPENSTACK:
            raise CloudError("The Python library openstacksdk is needed: install openstacksdk.")
        if self._connection is None:
            with self._sentences("Keystone"):
                self._connection = openstack.connect(**self._options)
        return self._connection

    def authorize(self) -> str:
        """Log in, and tell the id of the project that this is for. Raises CloudError."""
        with self._sentences("Keystone"):
            project = self.connection.session.get_project_id()
        if not project:
            raise CloudError("%s names no project: give auth a project_name." % self.name.capitalize())
        return str(project)

    def who(self) -> tuple[str, str]:
        """The ids of the user and the project that ask. Raises CloudError."""
        project = self.authorize()
        with self._sentences("Keystone"):
            return str(self.connection.session.get_user_id()), project

    @property
    def name(self) -> str:
        """The cloud in sentences."""
        name = self.connection.config.name
        return "cloud '%s'" % name if name else "the cloud"

    def has(self, service: str) -> bool:
        """Whether the catalogue has a service of this type. Raises CloudError."""
        with self._sentences("Keystone"), contextlib.suppress(auth_errors.EndpointNotFound):
            return bool(self.connection.config.get_session_client(service).get_endpoint())
        return False

    def together(self, work: t.Callable[[_T], _R], items: t.Sequence[_T]) -> list[_R]:
        """The work for all items, some at a time; the first error is raised when all have ended."""
        if len(items) < 2:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._concurrency)
        futures = [self._pool.submit(work, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]

    def list(self, service: str, path: str, collection: str, **query: t.Any) -> t.List[Object]:  # noqa: UP006 - the method's own name
        """All of a collection, page by page."""
        found: t.List[Object] = []  # noqa: UP006
        body = self.request(service, "GET", path, params=query)
        while True:
            found += body[collection]
            following = [link["href"] for link in body.get("%s_links" % collection) or () if link["rel"] == "next"]
            if not following or not body[collection]:
                return found
            body = self.request(service, "GET", following[0])

    def request(self, service: str, method: str, path: str, **options: t.Any) -> t.Any:
        """One request; the body of the answer, None without. Raises CloudError."""
        options.setdefault("microversion", _MICROVERSIONS.get(service))
        with self._sentences(_CALLED.get(service, service)):
            proxy = getattr(self.connection, service)
            answer = proxy.request(path, method, raise_exc=False, **options)
        if answer.status_code >= 400:
            raise _refusal(_CALLED.get(service, service), answer)
        return answer.json() if answer.content else None

    @contextlib.contextmanager
    def _sentences(self, service: str) -> t.Iterator[None]:
        """What openstacksdk and keystoneauth raise, as a CloudError."""
        try:
            yield
        except CloudError:
            raise
        except (auth_errors.Unauthorized, auth_errors.NotFound) as error:  # a token that is gone is not found
            raise CloudError(
                "Keystone does not let this user in: check the credentials, or ask for a new token (%s)."
                % _said(error),
                401,
            ) from error
        except auth_errors.SSLError as error:
            raise CloudError(
                "The certificate of %s cannot be verified: give ca_cert the authority that signed it (%s)."
                % (service, _said(error))
            ) from error
        except (auth_errors.ConnectFailure, auth_errors.ConnectTimeout) as error:
            raise CloudError(
                "%s does not answer: check auth_url and that the service runs, and run again (%s)."
                % (service, _said(error))
            ) from error
        except (auth_errors.EndpointNotFound, sdk_errors.NotSupported) as error:
            raise CloudError(
                "The catalogue of the cloud has no %s: check region_name and interface (%s)." % (service, _said(error))
            ) from error
        except (sdk_errors.ConfigException, auth_errors.MissingRequiredOptions) as error:
            raise CloudError(
                "It is not known how to reach the cloud: name one of clouds.yaml with cloud, or give auth (%s)."
                % _said(error)
            ) from error
        except (auth_errors.ClientException, sdk_errors.SDKException) as error:
            status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
            raise CloudError("%s failed: %s." % (service, _said(error)), status) from error


_MICROVERSIONS = {"shared_file_system": "2.50"}  # unless a request says more: since when its types can be changed

_CALLED = {
    "network": "Neutron",
    "identity": "Keystone",
    "compute": "Nova",
    "image": "Glance",
    "block_storage": "Cinder",
    "shared_file_system": "Manila",
}


def _said(error: Exception) -> str:
    """What went wrong, without what that came from."""
    return " ".join(str(error).split()).partition(": (")[0].partition(": HTTP")[0].rstrip(".")


def _refusal(service: str, answer: t.Any) -> CloudError:
    """What a service said in the body of its answer, whichever of the usual forms that has."""
    kind, message = "", ""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        part = next((value for value in body.values() if isinstance(value, (dict, str))), {})
        if isinstance(part, dict):
            kind, message = str(part.get("type", "")), str(part.get("message", ""))
        else:
            message = part
    message = " ".join(message.split()).rstrip(".") or answer.reason or "status %d" % answer.status_code
    if answer.status_code in _UNAVAILABLE:
        return CloudError(
            "%s is not available (%s): run again when it is." % (service, message), answer.status_code, kind
        )
    return CloudError("%s says: %s." % (service, message), answer.status_code, kind)
