# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API of an AWX: launch the templates of vPODs, and list their jobs."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import requests

from openipu.dashboard import orders
from openipu.dashboard.orders import OrderError
from openipu.dashboard.settings import Awx

ORDER, RELEASE = "Order", "Release"
_WORKFLOWS, _TEMPLATES = "workflow_job_templates", "job_templates"
_JOBS = {_WORKFLOWS: ("workflow_jobs", "workflow_job_template"), _TEMPLATES: ("jobs", "job_template")}
_PAGE = 200  # jobs of a page; AWX returns no larger ones
_TOKEN = re.compile(r"[!-~]+")


class Client:
    """Client of one AWX. Every method raises OrderError."""

    def __init__(self, settings: Awx) -> None:
        self._settings = settings
        self._session = requests.Session()
        self._session.trust_env = False  # no credentials of .netrc
        if settings.ca_path:
            self._session.verify = settings.ca_path
        self._ids: dict[str, int] = {}

    def survey(self) -> orders.Survey:
        """Return the choices of an order."""
        key = self._id(_WORKFLOWS, self._settings.order)
        return orders.survey(self._call("GET", f"{_WORKFLOWS}/{key}/survey_spec/"))

    def order(self, variables: dict[str, Any]) -> None:
        """Launch the workflow that creates a vPOD."""
        self._launch(_WORKFLOWS, self._settings.order, variables)

    def release(self, variables: dict[str, Any]) -> None:
        """Launch the job that destroys a vPOD, if its survey asks for the id of the project."""
        key = self._id(_TEMPLATES, self._settings.release)
        orders.verify_release(self._call("GET", f"{_TEMPLATES}/{key}/survey_spec/"))
        self._launch(_TEMPLATES, self._settings.release, variables)

    def jobs(self) -> list[tuple[str, dict[str, Any]]]:
        """Return all unfinished orders and releases of all projects and the last ones that ended, with their action."""
        found = []
        for action, kind, name in (
            (ORDER, _WORKFLOWS, self._settings.order),
            (RELEASE, _TEMPLATES, self._settings.release),
        ):
            path, field = _JOBS[kind]
            of_template = {field: self._id(kind, name), "page_size": _PAGE}
            # A job may end between the two requests. Its later status counts.
            unfinished = self._pages(path, {**of_template, "status__in": ",".join(orders.UNFINISHED), "order_by": "id"})
            last = self._call("GET", f"{path}/", params={**of_template, "order_by": "-id"})["results"]
            found += [(action, job) for job in {job["id"]: job for job in (*unfinished, *last)}.values()]
        return found

    def _pages(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the results of all pages."""
        found: list[dict[str, Any]] = []
        for page in count(1):
            answer = self._call("GET", f"{path}/", params={**query, "page": page})
            found += answer["results"]
            if not answer.get("next"):
                break
        return found

    def _launch(self, kind: str, name: str, variables: dict[str, Any]) -> None:
        answer = self._call("POST", f"{kind}/{self._id(kind, name)}/launch/", json={"extra_vars": variables})
        if ignored := (answer.get("ignored_fields") or {}).get("extra_vars"):
            raise OrderError(
                f"Cannot use '{name}' of AWX: its survey does not ask for {', '.join(ignored)}. The job was launched "
                "without these. Run the playbook awx.yml again."
            )

    def _id(self, kind: str, name: str) -> int:
        if name not in self._ids:
            found = self._call("GET", f"{kind}/", params={"name": name})["results"]
            if len(found) != 1:
                raise OrderError(
                    f"Cannot find '{name}' in AWX: {len(found)} templates have this name for the user of the token. "
                    "Grant the user the role Execute."
                )
            self._ids[name] = int(found[0]["id"])
        return self._ids[name]

    def _token(self) -> str:
        """Return the token. Raises OSError, and OrderError for other content, which messages must not contain."""
        content = Path(self._settings.token_file).read_bytes().decode("ascii", errors="replace").strip()
        if not _TOKEN.fullmatch(content):
            raise OrderError(f"Cannot use {self._settings.token_file}: it is not one token of AWX. Write it again.")
        return content

    def _call(self, method: str, path: str, **more: Any) -> Any:
        """Return the body of an answer."""
        url = f"{self._settings.url.rstrip('/')}/api/v2/{path}"
        try:
            headers = {"Authorization": f"Bearer {self._token()}"}
            answer = self._session.request(
                method, url, headers=headers, timeout=self._settings.timeout, allow_redirects=False, **more
            )
        except OSError as error:  # also of requests
            raise OrderError(f"Cannot reach AWX at {self._settings.url}: {error}. Check the settings.") from None
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not answer.ok:
            raise OrderError(f"Cannot {method} {path} of AWX: status {answer.status_code}, {_reason(body)}.")
        if not isinstance(body, dict):
            raise OrderError(f"Cannot use {url}: it did not respond as an AWX. Check the address.")
        return body


def _reason(body: Any) -> str:
    """Return the messages in an answer with an error."""
    if isinstance(body, dict):
        return "; ".join(_reason(value) for value in body.values()).rstrip(".") or "no reason"
    if isinstance(body, list):
        return " ".join(_reason(value) for value in body)
    return str(body or "no reason")
