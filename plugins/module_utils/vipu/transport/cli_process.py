# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of the command lines vipu-admin and vipu: arguments, environment, timeout and result.

The result line decides, because exit statuses are not documented; a status other than zero is a failure too.
Host, port and user are passed as flags. The access key is passed in the environment, because all users of a host
can read arguments. TLS files and metadata keys are passed in the environment too: Graphcore's releases have
different flags for them and ignore unknown variables.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import typing as t
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..client import ACCESS_KEY_METADATA, USER_ID_METADATA, Connection, VipuError
from . import cli_objects, cli_output

# A command takes a fraction of a second, mostly CPU time, so more processes would not be faster.
MAX_PARALLEL = 4
_INHERITED = ("PATH", "USER", "LOGNAME", "TMPDIR")
_FIXED = {"LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}

_T = t.TypeVar("_T")


class Commands:
    """Commands for one controller. They run in a temporary folder, which is also their home, so that files that they
    write do not remain; ``close`` removes it."""

    def __init__(self, connection: Connection, vipu_admin: str, vipu: str) -> None:
        """``vipu_admin`` and ``vipu`` are paths or names of commands in the PATH."""
        self._connection = connection
        self._paths = {"vipu-admin": _resolve(vipu_admin), "vipu": _resolve(vipu)}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the folder."""
        if self._folder:
            self._folder.cleanup()
            self._folder = None

    def written(self, name: str) -> str | None:
        """Return the content of a file that a command wrote; None when there is none."""
        file = Path(self._home(), name)
        return file.read_text() if file.is_file() else None

    def query(self, command: str, *arguments: str) -> str:
        """Run a read-only command and return its output. Raises VipuError when it reports a failure."""
        printed, errors, status = self._run(command, arguments)
        self._check(arguments, printed, errors, status)
        return printed

    def change(self, command: str, *arguments: str) -> str:
        """Run a command that changes objects and return its output. Raises VipuError unless it reports success."""
        printed, errors, status = self._run(command, arguments)
        if not self._check(arguments, printed, errors, status):
            raise VipuError(
                "Cannot read the result of command '%s %s': it printed no result line, but %s. Check whether "
                "it changed anything." % (command, " ".join(arguments[:3]), cli_output.quoted(printed or errors)),
                "UNREADABLE",
                printed + errors,
            )
        return printed

    def parallel(self, *jobs: t.Callable[[], _T]) -> list[_T]:
        """Run independent jobs in parallel and return their results in order. Raises the first exception."""
        if len(jobs) < 2:
            return [job() for job in jobs]
        self._home()
        with ThreadPoolExecutor(MAX_PARALLEL) as pool:
            return [future.result() for future in [pool.submit(job) for job in jobs]]

    def _check(self, arguments: t.Sequence[str], printed: str, errors: str, status: int) -> bool:
        """Return whether there is a result line with success. Raises VipuError when the command failed."""
        result = cli_output.result(printed) or cli_output.result(errors)
        reason = result.reason if result else None
        if status and reason is None:
            reason = _error_line(errors or printed) or "it ended with status %d and without a message" % status
        if reason is None:
            return result is not None and result.verb == arguments[0]
        # Messages of some servers already contain the subject.
        if not reason.startswith("Cannot "):
            subject = " '%s'" % arguments[2] if len(arguments) > 2 else ""
            reason = "Cannot %s%s: %s" % (" ".join(arguments[:2]), subject, reason)
        raise VipuError(reason.rstrip(".") + ".", "FAILED", printed + errors)

    def _run(self, command: str, arguments: t.Sequence[str]) -> tuple[str, str, int]:
        """Run a command and return its standard output, standard error and exit status."""
        path, connection = self._paths[command], self._connection
        flags = self._flags()
        try:
            process = subprocess.Popen(  # noqa: S603 - a list and no shell
                [path, *flags, *arguments],
                env=self._environment(),
                cwd=self._home(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except FileNotFoundError:
            raise VipuError(
                "Cannot run command '%s': it was not found on the host of the task. Install it there, or set "
                "%s_path." % (path, command.replace("-", "_")),
                "MISSING_COMMAND",
            ) from None
        except ValueError:  # an access key or a path; flags were already checked
            raise VipuError(
                "Cannot run command '%s': the access key or a path contains a NUL character. Remove it." % path,
                "INVALID_ARGUMENT",
            ) from None
        except OSError as error:
            raise VipuError(
                "Cannot run command '%s': %s. Check the file and its mode."
                % (path, (error.strerror or str(error)).lower()),
                "MISSING_COMMAND",
            ) from None
        with process:
            try:
                printed, errors = process.communicate(timeout=connection.timeout)
            except BaseException as error:
                # Kill the whole session: children of a wrapper would keep the pipes open.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise VipuError(
                    "Cannot run command '%s %s': it did not end within %g seconds. Check that the controller at %s "
                    "responds, or increase timeout."
                    % (command, " ".join(arguments[:2]), connection.timeout, connection.address),
                    "DEADLINE_EXCEEDED",
                ) from None
        return printed, errors, process.returncode

    def _flags(self) -> list[str]:
        """Return the flags of the connection. Each is one word with its value, so no value can be taken for a flag."""
        connection = self._connection
        cli_objects.host(connection.host, "api_host")
        if not 0 < connection.port < 65536:
            raise VipuError(
                "Cannot call the controller: the port must be 1 to 65535, not %d." % connection.port, "INVALID_ARGUMENT"
            )
        connection.check_exposure()
        flags = ["--api-host=%s" % connection.host, "--api-port=%d" % connection.port]
        if connection.user_id:
            flags.append("--api-user-id=%s" % cli_objects.name("user", connection.user_id))
        return flags

    def _home(self) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="openipu-")
        return self._folder.name

    def _environment(self) -> dict[str, str]:
        """Return the environment of the commands: required variables and the connection, no inherited settings."""
        connection = self._connection
        paths = {
            "CA_PATH": connection.ca_path,
            "CLIENT_CERT": connection.client_cert,
            "CLIENT_KEY": connection.client_key,
        }
        metadata = (
            ("METADATA_USER_ID_KEY", connection.user_id_metadata, USER_ID_METADATA),
            ("METADATA_ACCESS_KEY_KEY", connection.access_key_metadata, ACCESS_KEY_METADATA),
        )
        return {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            **_FIXED,
            "HOME": self._home(),
            **{"VIPU_CLI_" + name: _absolute(path) for name, path in paths.items() if path},
            **({"VIPU_CLI_API_ACCESS_KEY": connection.access_key} if connection.access_key else {}),
            **({"VIPU_CLI_INSECURE_NETWORK": "true"} if connection.insecure_network else {}),
            **{"VIPU_CLI_" + name: key for name, key, default in metadata if key != default},
        }


def _resolve(command: str) -> str:
    """Return the absolute path of a command, or its name when it is not found."""
    if os.sep in command:
        return _absolute(command)
    found = shutil.which(command)
    return _absolute(found) if found else command


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _error_line(text: str) -> str:
    """Return the error message among the usage lines of a command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error = next((line for line in lines if line.lower().startswith("error:")), lines[0] if lines else "")
    return error[len("error:") :].strip() if error.lower().startswith("error:") else error
