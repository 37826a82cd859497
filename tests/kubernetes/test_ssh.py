# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of jobs with SSH, used by the real sshd, ssh and mpirun on loopback.

Each worker is a process with the command and the environment of its container. Only the paths of mounts differ.
"""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.domain import job, manifests, pods, reserved
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.domain.ssh_ports import Instance, PortBook, PortRange
from openipu.kubernetes.launcher import ssh_files
from openipu.kubernetes.operator import ssh_keys
from tests.ports import free_port
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

ADDRESS = "127.0.0.1"
PARTITION = Partition("p-sample-default-0", "10.1.5.1", 8090)
OPTIONS = PodOptions(launcher_image="launcher:1", proxy="http://proxy")
PATH = f"{os.environ['PATH']}:/usr/sbin"
SECONDS = 30.0
ODD_VALUE = 'it\'s "quoted" $HOME `id` \\\nand has two lines'

PACKAGES = {"sshd": "openssh-server", "ssh": "openssh-client", "mpirun": "openmpi-bin"}
MISSING = {package for program, package in PACKAGES.items() if shutil.which(program, path=PATH) is None}
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"apt-get install {' '.join(sorted(MISSING))}")


@dataclass
class Session:
    """The pods of a job on this machine, as processes of the user ``uid`` (None: that of the tests)."""

    job: Job
    folder: Path
    first_port: int
    passwd: Path | None = None
    uid: int | None = None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return (self.folder / "workers.log").read_text()

    def mount(self) -> dict[str, Path]:
        """Write the ConfigMap and the Secrets as kubelet mounts them. Return volume of the pods -> folder."""
        reserved_paths = {"config": reserved.CONFIG_PATH, "tools": reserved.TOOLS_PATH, "keys": reserved.SSH_PATH}
        folders = {name: Path(path) for name, path in reserved_paths.items()}
        for each in folders.values():
            each.mkdir(parents=True)
        for name, text in manifests.config_map(self.job, 0)["data"].items():
            (folders["config"] / name).write_text(text)
        return folders

    def start(self) -> None:
        """Start the workers, and run the init container of the launcher when they listen."""
        secret = manifests.ssh_keys(self.job, ssh_keys.create())["stringData"]
        folders = self.mount()
        made = [
            pods.worker(self.job, 0, index, PARTITION, 0, OPTIONS, self.first_port + index)
            for index in range(self.job.shape.workers)
        ]
        write_secret(folders["keys"], made[0], secret)
        for pod in made:
            self.start_worker(pod)
        launcher_keys = self.folder / "launcher-keys"
        launcher_keys.mkdir()
        write_secret(launcher_keys, self.launcher, secret)
        for pod in made:
            pod["status"] = {"podIP": ADDRESS}
        ssh_files.deliver(launcher_keys, folders["tools"], made)
        if os.geteuid() == 0:
            for each in folders["tools"].iterdir():
                os.chown(each, self.launcher["spec"]["initContainers"][0]["securityContext"]["runAsUser"], 0)
        else:  # the user of the init container cannot be another one
            (folders["tools"] / "identity").chmod(0o400)

    @property
    def launcher(self) -> dict[str, Any]:
        return pods.launcher(self.job, 0, PARTITION, 0, OPTIONS)

    def start_worker(self, pod: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        values = {each["name"]: each.get("value", ADDRESS) for each in container["env"]}
        command = [each.replace(f"$({reserved.ADDRESS_VARIABLE})", ADDRESS) for each in container["command"]]
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                self.as_user(command),
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **values},
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        port = container["startupProbe"]["tcpSocket"]["port"]
        until(lambda: process.poll() is not None or listens(port), SECONDS, lambda: self.log)
        assert process.poll() is None, self.log

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the launcher."""
        environment = {each["name"]: each["value"] for each in self.launcher["spec"]["containers"][0]["env"]}
        return subprocess.run(
            self.as_user(list(command)),
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def ssh(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the agent of mpirun, with options or the name of a worker first."""
        environment = {each["name"]: each["value"] for each in self.launcher["spec"]["containers"][0]["env"]}
        return self.run(*shlex.split(environment["OMPI_MCA_plm_rsh_agent"]), *arguments)

    def as_user(self, command: list[str]) -> list[str]:
        if self.passwd is None:
            return command
        switch = f'mount --bind {self.passwd} /etc/passwd; exec setpriv --reuid={self.uid} --clear-groups "$@"'
        return ["unshare", "--mount", "sh", "-ec", switch, "sh", *command]

    def stop(self) -> None:
        for each in self.processes:
            each.terminate()
            each.wait(SECONDS)


def write_secret(folder: Path, pod: dict[str, Any], data: dict[str, str]) -> None:
    """Write the items of the Secret of a pod as kubelet mounts them."""
    (volume,) = (each["secret"] for each in pod["spec"]["volumes"] if "secret" in each)
    for item in volume["items"]:
        file = folder / item["path"]
        file.write_text(data[item["key"]])
        file.chmod(volume["defaultMode"])


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((ADDRESS, port)) == 0


def ssh_job(count: int = 2) -> Job:
    env = [{"name": "ODD_VALUE", "value": ODD_VALUE}]
    launcher = {"command": ["mpirun"], "remoteShell": "SSH"}
    return job.read(first_form(launcher=launcher, workers=workers(count, container={"env": env})))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Session]]:
    """Yield a function that starts the pods of a job, in a folder that all users can read."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        for name in ("CONFIG_PATH", "TOOLS_PATH", "SSH_PATH"):
            monkeypatch.setattr(reserved, name, str(folder / name.lower()))

        def make(found: Job | None = None, **settings: Any) -> Session:
            made = Session(found or ssh_job(), folder, free_block(2), **settings)
            stack.callback(made.stop)
            made.start()
            return made

        yield make


def free_block(count: int) -> int:
    """Return the first of consecutive free ports, found with the rules of the operator."""
    for attempt in range(100):
        ports = PortBook(PortRange(20000, 29999)).ports(Instance(str(free_port()), 0, attempt), count)
        if not any(listens(port) for port in ports):
            return ports[0]
    raise AssertionError("no free ports")


def test_a_session_has_the_environment_of_its_worker(session: Callable[..., Session]) -> None:
    running = session()
    for index in range(2):
        done = running.ssh(f"sample-worker-{index}", 'printf %s "$IPUOF_VIPU_API_GCD_ID:$ODD_VALUE"')
        assert done.returncode == 0, done.stderr + running.log
        assert done.stdout == f"{index}:{ODD_VALUE}"
    assert running.ssh("sample-worker-0", "pwd").stdout.strip() == str(running.folder)


def test_a_session_returns_the_exit_status_of_its_command(session: Callable[..., Session]) -> None:
    assert session().ssh("sample-worker-1", "exit 7").returncode == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user, so it needs root")
def test_users_other_than_root_work(session: Callable[..., Session], tmp_path: Path) -> None:
    passwd = tmp_path / "passwd"
    passwd.write_text(Path("/etc/passwd").read_text() + "trainer:x:4321:0::/:/bin/sh\n")
    done = session(passwd=passwd, uid=4321).ssh("sample-worker-1", "id -u")
    assert done.stdout == "4321\n", done.stderr


def test_mpirun_starts_the_ranks_on_all_workers(session: Callable[..., Session]) -> None:
    running = session()
    command = 'printf "%s %s %s\\n" $OMPI_COMM_WORLD_RANK $IPUOF_VIPU_API_GCD_ID $IPUOF_VIPU_API_PARTITION_ID'
    done = running.run("mpirun", "-np", "4", "--map-by", "slot", "--bind-to", "none", "sh", "-c", command)
    assert done.returncode == 0, done.stderr + running.log
    assert sorted(done.stdout.splitlines()) == [f"{rank} {rank // 2} {PARTITION.id}" for rank in range(4)]


def test_mpirun_returns_the_exit_status_of_a_rank(session: Callable[..., Session]) -> None:
    done = session().run("mpirun", "-np", "2", "--map-by", "node", "sh", "-c", "exit 9")
    assert done.returncode == 9, done.stderr


def test_a_worker_with_another_host_key_is_rejected(session: Callable[..., Session]) -> None:
    running = session()
    known = Path(reserved.TOOLS_PATH) / "known_hosts"
    known.write_text(ssh_keys.create()["known_hosts"])
    done = running.ssh("sample-worker-0", "true")
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_the_key_of_another_job_is_rejected(session: Callable[..., Session]) -> None:
    running = session()
    identity = Path(reserved.TOOLS_PATH) / "identity"
    identity.write_text(ssh_keys.create()["identity"])
    identity.chmod(0o400)
    assert "Permission denied (publickey)" in running.ssh("sample-worker-0", "true").stderr


def test_passwords_and_forwarding_are_disabled(session: Callable[..., Session]) -> None:
    running = session()
    options = ("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive")
    assert "Permission denied (publickey)" in running.ssh(*options, "sample-worker-0", "true").stderr
    port = free_port()
    done = running.ssh("-v", "-o", "LogLevel=DEBUG", "-W", f"127.0.0.1:{port}", "sample-worker-0")
    assert "open failed: administratively prohibited" in done.stderr


def test_an_image_without_ssh_server_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserved, "CONFIG_PATH", str(tmp_path))
    script = manifests.config_map(ssh_job(), 0)["data"]["sshd.sh"].replace("/usr/sbin", "/nowhere")
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sshd.sh", ADDRESS, "2222"],
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127
    assert done.stderr == "The image has no SSH server. Install openssh-server, or use remoteShell KubeExec.\n"


def test_keys_are_new_for_each_job() -> None:
    one, other = ssh_keys.create(), ssh_keys.create()
    for name in ("identity", "host_key", "authorized_keys", "known_hosts"):
        assert one[name] != other[name]
    blob = one["authorized_keys"].split()[1]
    assert base64.b64decode(blob)[4:15] == b"ssh-ed25519"
