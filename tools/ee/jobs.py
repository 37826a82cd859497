# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs in the execution environment, as AWX runs them.

AWX makes a private data directory of a job template and sends it with ansible-runner to a container. The container runs
the job and returns its events. It contains the project, the inventory and the credentials only, and exposed folders.
"""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from openipu.process.background import ProcessError

from .credentials import FILES, Injection, inject
from .image import NAME, USER, Image
from .podman import Podman
from .survey import ExtraVariables, LaunchError, extra_variables
from .tools import runner_environment

RUNNER = "/runner"  # private data directory in the container
_IDENT = "job"
_PROJECT = f"{RUNNER}/project"
_PRIVATE_FILE = stat.S_IRUSR | stat.S_IWUSR
_ENVIRONMENT = {
    "ANSIBLE_NOCOLOR": "true",
    "ANSIBLE_HOST_KEY_CHECKING": "False",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
    "ANSIBLE_RETRY_FILES_ENABLED": "False",
    "AWX_PRIVATE_DATA_DIR": RUNNER,
}


@dataclass(frozen=True)
class Launch:
    """Input of a user who launches a template. Omitted values are those of the template."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    job_type: str = ""
    limit: str = ""
    user: str = "admin"  # name of the AWX user
    inherited: Mapping[str, Any] = field(default_factory=dict)  # variables of a workflow, which no survey filters


@dataclass(frozen=True)
class Job:
    """Result of a job. ``folder`` has what ansible-runner returned."""

    folder: Path
    ignored: Mapping[str, Any]  # variables of the launch that the template does not accept

    @property
    def status(self) -> str:
        """Return the status, such as 'successful'."""
        return (self._artifacts / "status").read_text()

    @property
    def stdout(self) -> str:
        """Return the output of the job."""
        return (self._artifacts / "stdout").read_text()

    @property
    def changed_tasks(self) -> set[str]:
        """Names of the tasks that changed something."""
        events = (event["event_data"] for event in self._events if event["event"] == "runner_on_ok")
        return {data["task"] for data in events if data["res"].get("changed")}

    @property
    def changed(self) -> int:
        """Number of changed tasks over all hosts."""
        return sum(self._stats["changed"].values())

    @property
    def artifacts(self) -> dict[str, Any]:
        """Values that the playbook set with set_stats."""
        found: dict[str, Any] = self._stats["artifact_data"]
        return found

    @property
    def _artifacts(self) -> Path:
        return self.folder / "artifacts" / _IDENT

    @property
    def _events(self) -> Iterator[dict[str, Any]]:
        for path in (self._artifacts / "job_events").glob("*.json"):
            yield json.loads(path.read_text())

    @property
    def _stats(self) -> dict[str, Any]:
        for event in self._events:
            if event["event"] == "playbook_on_stats":
                found: dict[str, Any] = event["event_data"]
                return found
        raise ProcessError(f"Cannot read the result of the job: it ended without statistics.\n{self.stdout}")


@dataclass(frozen=True)
class Controller:
    """The parts of AWX that run jobs: projects are folders, and every job has a new container.

    ``types``: credential types. ``folder``: for the files of jobs; they contain secrets.
    ``user``: user of the containers. ``exposed``: folders that all jobs can use, with their paths in the containers, as
    in the setting "Paths to expose to isolated jobs". ``enter``: function that returns the command line which runs a
    command in other namespaces, whose network the jobs use.
    """

    image: Image
    project: Path
    folder: Path
    types: Sequence[Mapping[str, Any]] = ()
    user: str = USER
    exposed: Mapping[Path, str] = field(default_factory=dict)
    enter: Callable[[Sequence[str]], list[str]] = list

    def update_inventory(self, source: str, **environment: str) -> dict[str, Any]:
        """Return the inventory of a path in the project, as an inventory source imports it. Raises ProcessError."""
        data = self._private_data(Injection(environment=environment))
        output = f"{RUNNER}/artifacts/{_IDENT}/output.json"
        # A raw command line replaces the playbook.
        command = ["ansible-inventory", f"--inventory={_PROJECT}/{source}", "--list", "--export", f"--output={output}"]
        _write(data / "args", shlex.join(command))
        job = self._run(data, "raw")
        if job.status != "successful":
            raise ProcessError(f"Cannot update the inventory '{source}': {job.stdout}")
        found: dict[str, Any] = json.loads((job.folder / "artifacts" / _IDENT / "output.json").read_text())
        return found

    def run_template(
        self,
        template: Mapping[str, Any],
        inventory: Mapping[str, Any],
        credentials: Sequence[Mapping[str, Any]] = (),
        launch: Launch | None = None,
    ) -> Job:
        """Run a job template, and return the result, also of a failed job.

        Args:
            template: an item of ``controller_templates``.
            inventory: result of ``update_inventory``.
            credentials: those of the template, with inputs.
            launch: answers and prompts. Omit to use the values of the template.

        Raises:
            CredentialError: when AWX would reject the credentials.
            LaunchError: when AWX would reject the launch.
            ProcessError: when the job cannot be run.
        """
        launch = launch or Launch()
        self._check(template, credentials)
        variables = extra_variables(template, launch.answers, launch.inherited)
        injection = inject(self.types, credentials)
        data = self._private_data(injection, arguments(template, launch), template.get("timeout", 0))
        _write_inventory(data, inventory)
        _write(data / "env" / "extravars", extra_vars_file(variables, launch.user))
        return self._run(data, template["playbook"], variables.ignored)

    def _check(self, template: Mapping[str, Any], credentials: Sequence[Mapping[str, Any]]) -> None:
        if not (self.project / template["playbook"]).is_file():
            raise LaunchError(f"Cannot save '{template['name']}': Playbook not found for project.")
        expected, given = sorted(template.get("credentials") or []), sorted(each["name"] for each in credentials)
        if expected != given:
            raise LaunchError(f"Cannot launch '{template['name']}': its credentials are {expected}, not {given}.")

    def _private_data(self, injection: Injection, options: Sequence[str] = (), timeout: int = 0) -> Path:
        """Return a new private data directory with the project and the credentials."""
        data = Path(tempfile.mkdtemp(prefix="job-", dir=self.folder))
        shutil.copytree(self.project, data / "project", symlinks=True)
        environment = data / "env"
        environment.mkdir(mode=0o700)
        (data / "inventory").mkdir(mode=0o700)
        options = [*options, *injection.arguments]
        for name, content in injection.files.items():
            _write(environment / name, content)
        for number, variables in enumerate(injection.extra_variables):
            _write(environment / f"variables{number}", _unsafe_yaml(variables))
            options += ["-e", f"@{FILES}/variables{number}"]
        _write(environment / "envvars", json.dumps({**_ENVIRONMENT, **injection.environment}))
        _write(environment / "settings", json.dumps({"job_timeout": timeout}))
        _write(environment / "passwords", json.dumps(injection.passwords))
        _write(environment / "cmdline", shlex.join(options))
        if injection.ssh_key:
            _write(environment / "ssh_key", injection.ssh_key)
        return data

    def _run(self, data: Path, playbook: str, ignored: Mapping[str, Any] | None = None) -> Job:
        """Send a private data directory to a container and receive the results. Raises ProcessError."""
        result = data.with_name(data.name.replace("job-", "result-"))
        scratch = data.with_name(data.name.replace("job-", "podman-"))
        request, response = scratch / "request", scratch / "response"
        result.mkdir(mode=0o700)
        scratch.mkdir(mode=0o700)
        runner = [sys.executable, "-m", "ansible_runner"]
        transmit = [*runner, "transmit", str(data), f"--playbook={playbook}", f"--ident={_IDENT}"]
        if error := _pipe(transmit, None, request):
            raise ProcessError(f"Cannot send a job: {error}")
        podman = Podman(scratch, self.image.store)
        worker = ["podman", "run", "--rm", "--interactive", "--network=host", f"--user={self.user}"]
        worker += [f"--volume={folder}:{path}" for folder, path in self.exposed.items()]
        worker += [NAME, "ansible-runner", "worker", f"--private-data-dir={RUNNER}"]
        # It fails with the job.
        error = _pipe(self.enter(podman.command_line(*worker)), request, response, podman.environment)
        process = [*runner, "process", str(result), f"--ident={_IDENT}"]
        error = _pipe(process, response, scratch / "log") or error
        shutil.rmtree(data)
        shutil.rmtree(scratch)
        # It has the environment with secrets. AWX keeps a copy without them.
        (result / "artifacts" / _IDENT / "command").unlink(missing_ok=True)
        if not (result / "artifacts" / _IDENT / "status").exists():
            raise ProcessError(f"Cannot receive the results of a job: {error or 'ansible-runner returned none'}")
        return Job(result, ignored or {})


def arguments(template: Mapping[str, Any], launch: Launch) -> list[str]:
    """Return the options of ansible-playbook. Raises LaunchError for prompts that the template does not have."""
    for prompt in ("job_type", "limit"):
        if getattr(launch, prompt) and not template.get(f"ask_{prompt}_on_launch"):
            raise LaunchError(f"Cannot launch '{template['name']}': it does not ask for {prompt}.")
    options = ["--check"] if (launch.job_type or template.get("job_type", "run")) == "check" else []
    options += ["--diff"] if template.get("diff_mode") else []
    options += ["--become"] if template.get("become_enabled") else []
    values = (
        ("--limit", launch.limit or template.get("limit")),
        ("--forks", template.get("forks")),
        ("--tags", template.get("job_tags")),
        ("--skip-tags", template.get("skip_tags")),
    )
    options += [f"{option}={value}" for option, value in values if value]
    return [*options, *(["-" + "v" * template["verbosity"]] if template.get("verbosity") else [])]


def _pipe(
    command: Sequence[str], source: Path | None, target: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program with files as input and output. Return its last line of errors if it fails."""
    with (source or Path("/dev/null")).open("rb") as reader, target.open("wb") as writer:
        done = subprocess.run(  # noqa: S603  command of this tool
            command,
            stdin=reader,
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment or runner_environment(),
            check=False,
        )
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return (lines or ["no output"])[-1] if done.returncode else ""


def _write(path: Path, content: str, mode: int = _PRIVATE_FILE) -> None:
    path.touch(mode=mode)
    path.write_text(content)


def _write_inventory(data: Path, inventory: Mapping[str, Any]) -> None:
    """Write the inventory script, as AWX makes it of its database."""
    content = f"#!/usr/bin/env python3\nprint({json.dumps(inventory)!r})\n"
    _write(data / "inventory" / "hosts", content, stat.S_IRWXU)


class _Dumper(yaml.SafeDumper):
    """Writes strings of the class _Unsafe with the tag !unsafe: Ansible does not render them."""


class _Unsafe(str):
    __slots__ = ()


_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))
_Dumper.add_representer(_Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def extra_vars_file(variables: ExtraVariables, user: str = "admin") -> str:
    """Return the file with the extra variables of a job that an AWX user launches."""
    own = _unsafe({f"{prefix}_user_name": user for prefix in ("awx", "tower")})
    return yaml.dump({**own, **variables.template, **_unsafe(variables.answers)}, Dumper=_Dumper)


def _unsafe_yaml(variables: Mapping[str, Any]) -> str:
    return yaml.dump(_unsafe(variables), Dumper=_Dumper)


def _unsafe(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {name: _unsafe(each) for name, each in node.items()}
    if isinstance(node, list):
        return [_unsafe(each) for each in node]
    return _Unsafe(node) if isinstance(node, str) else node
