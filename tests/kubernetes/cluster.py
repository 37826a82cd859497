# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the control plane of the tests: with kubectl, and with requests, which take less time."""

from __future__ import annotations

import functools
import http.client
import json
import ssl
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from openipu.kubernetes.cluster.client import Resource
from tests.waiting import until

_SECONDS = 60.0
ROOT = Path(__file__).resolve().parents[2]
CRD = ROOT / "charts/ipu-operator/crds/graphcore.ai_ipujobs.yaml"
EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class Cluster:
    """A control plane, and the namespace of a test."""

    kubectl_program: Path
    kubeconfig: Path
    namespace: str = "default"

    def run(self, *arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return its result, also of a failure."""
        command = [self.kubectl_program, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=_SECONDS)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run kubectl and return its output."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, kind: str, name: str = "", *, selector: str = "", fields: str = "", everywhere: bool = False) -> Any:
        """Return an object, or a list of objects. ``everywhere``: those of all namespaces."""
        server = _server(self.kubeconfig)
        path = server.resource(kind).path("" if everywhere else self.namespace, name)
        query = {"labelSelector": selector, "fieldSelector": fields}
        return self.request("GET", f"{path}?{urlencode({name: value for name, value in query.items() if value})}")

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Make a request and return its answer."""
        status, answer = _server(self.kubeconfig).request(method, path, body)
        assert status < http.HTTPStatus.BAD_REQUEST, answer
        return answer

    def create_namespace(self) -> None:
        """Create the namespace, and wait until its pods can be created."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        # Pods need it. The controller manager creates it.
        until(lambda: any(each["metadata"]["name"] == "default" for each in self.get("serviceaccounts")["items"]))

    def create_account(self, name: str) -> None:
        """Create a service account."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.request("POST", path, {"metadata": {"name": name}})

    def create(self, *objects: dict[str, Any], dry_run: bool = False) -> str:
        """Create objects. With ``dry_run``, the API server checks them only."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        return self.kubectl("create", "--filename=-", *(["--dry-run=server"] if dry_run else []), stdin=listed)

    def apply(self, thing: dict[str, Any]) -> None:
        """Create or change an object."""
        self.kubectl("apply", "--filename=-", stdin=json.dumps(thing))

    def rejection(self, thing: dict[str, Any]) -> str:
        """Return the error of an object that the API server rejects."""
        done = self.run("create", "--filename=-", "--validate=false", stdin=json.dumps(thing))
        assert done.returncode != 0, f"created: {done.stdout}"
        return done.stderr


@dataclass
class _Server:
    """API server, with the credentials of a configuration."""

    host: str
    port: int
    token: str
    context: ssl.SSLContext
    _resources: dict[str, Resource] = field(default_factory=dict)  # by each of their names

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer of a request."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=_SECONDS, context=self.context)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def resource(self, kind: str) -> Resource:
        """Return the resource with a name that kubectl accepts, such as ``pod``, ``pods`` or ``po``."""
        if kind not in self._resources:  # it may be new
            self._discover()
        return self._resources[kind]

    def _discover(self) -> None:
        groups = [each["preferredVersion"]["groupVersion"] for each in self.request("GET", "/apis")[1]["groups"]]
        for group in reversed(["v1", *groups]):  # the first group with a name has it
            listed = self.request("GET", f"/{'apis' if '/' in group else 'api'}/{group}")[1]
            for each in listed.get("resources", []):
                if "/" in each["name"]:  # part of an object
                    continue
                found = Resource(group, each["name"], each["namespaced"])
                names = (each["name"], each["singularName"] or each["kind"].lower(), *each.get("shortNames", ()))
                self._resources.update(dict.fromkeys(names, found))


@functools.cache
def _server(kubeconfig: Path) -> _Server:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    address = urlsplit(cluster["server"])
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    return _Server(str(address.hostname), address.port or 443, config["users"][0]["user"]["token"], context)
