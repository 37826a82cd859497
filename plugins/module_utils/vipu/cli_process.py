# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the command lines vipu-admin and vipu: what they see, how long they may take, how they went.

The result line is the authority, since exit statuses are not documented; a status that says failed
counts too. Host, port and user go as flags; the access key goes by environment, which only the user
itself can see, while arguments are there for everybody. TLS files and metadata keys go by environment as
well, because Graphcore's releases name them each in its own way and pass over what they do not know.
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

from . import cli_objects, cli_output
from .client import ACCESS_KEY_METADATA, USER_ID_METADATA, Connection, VipuError

# A command takes a fraction of a second, mostly of CPU: a few at once save time, many only get in each other's way.
AT_ONCE = 4
_KEPT = ("PATH", "USER", "LOGNAME", "TMPDIR")
_FIXED = {"LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}

_T = t.TypeVar("_T")


class Commands:
    """The commands for one controller. They run in a folder of their own, which is their home too, so that
    the files that they write for people are not left anywhere; ``close`` removes it."""

    def __init__(self, connection: Connection, vipu_admin: str, vipu: str) -> None:
        """``vipu_admin`` and ``vipu`` are paths, or names to be found on the PATH."""
        self._connection = connection
        self._paths = {"vipu-admin": _found(vipu_admin), "vipu": _found(vipu)}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the folder."""
        if self._folder:
            self._folder.cleanup()
            self._folder = None

    def ask(self, command: str, *arguments: str) -> str:
        """What a command prints that only looks; raises VipuError when it says that it failed."""
        printed, errors, status = self._run(command, arguments)
        self._check(arguments, printed, errors, status)
        return printed

    def act(self, command: str, *arguments: str) -> str:
        """What a command prints that changes something; raises VipuError unless it says that it did so."""
        printed, errors, status = self._run(command, arguments)
        if not self._check(arguments, printed, errors, status):
            raise VipuError(
                "It is not known whether '%s %s' did its work: it has printed no result line, but %s."
                % (command, " ".join(arguments[:3]), cli_output.quoted(printed or errors)),
                "UNREADABLE",
                printed + errors,
            )
        return printed

    def at_once(self, *jobs: t.Callable[[], _T]) -> list[_T]:
        """The results of independent jobs, in their order, a few of them at a time; raises what the first raises."""
        if len(jobs) < 2:
            return [job() for job in jobs]
        self._home()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [future.result() for future in [pool.submit(job) for job in jobs]]

    def _check(self, arguments: t.Sequence[str], printed: str, errors: str, status: int) -> bool:
        """Whether there is a result line that says success; raises VipuError when the command failed."""
        result = cli_output.result(printed) or cli_output.result(errors)
        reason = result.reason if result else None
        if status and reason is None:
            reason = _last_words(errors or printed) or "it ended with status %d and said nothing" % status
        if reason is None:
            return result is not None and result.verb == arguments[0]
        # Some servers put the subject into the reason themselves.
        if not reason.startswith(("Cannot ", "The V-IPU controller")):
            subject = " '%s'" % arguments[2] if len(arguments) > 2 else ""
            reason = "Cannot %s%s: %s" % (" ".join(arguments[:2]), subject, reason)
        raise VipuError(reason.rstrip(".") + ".", "FAILED", printed + errors)

    def _run(self, command: str, arguments: t.Sequence[str]) -> tuple[str, str, int]:
        """Standard output, standard error and exit status."""
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
                "The command '%s' was not found on the host of the task: install it there, or give its path "
                "with %s_path." % (path, command.replace("-", "_")),
                "MISSING_COMMAND",
            ) from None
        except ValueError:  # an access key or a path; what goes as a flag was looked at
            raise VipuError(
                "The command '%s' cannot be run: a NUL stands in the access key or in a path." % path,
                "INVALID_ARGUMENT",
            ) from None
        except OSError as error:
            raise VipuError(
                "The command '%s' cannot be run (%s): check the file and its mode."
                % (path, (error.strerror or str(error)).lower()),
                "MISSING_COMMAND",
            ) from None
        with process:
            try:
                printed, errors = process.communicate(timeout=connection.timeout)
            except BaseException as error:
                # All of its session, since a wrapper's children would hold the pipes open.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise VipuError(
                    "The command '%s %s' did not end within %g seconds: check that the controller at %s answers, or "
                    "allow more with timeout."
                    % (command, " ".join(arguments[:2]), connection.timeout, connection.address),
                    "DEADLINE_EXCEEDED",
                ) from None
        return printed, errors, process.returncode

    def _flags(self) -> list[str]:
        """Where and who, each flag one word with its value, so that no value can be taken for a flag."""
        connection = self._connection
        cli_objects.host(connection.host, "api_host")
        if not 0 < connection.port < 65536:
            raise VipuError("There is no port %d: give one from 1 to 65535." % connection.port, "INVALID_ARGUMENT")
        flags = ["--api-host=%s" % connection.host, "--api-port=%d" % connection.port]
        if connection.user_id:
            flags.append("--api-user-id=%s" % cli_objects.name("user", connection.user_id))
        return flags

    def _home(self) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="openipu-")
        return self._folder.name

    def _environment(self) -> dict[str, str]:
        """What the commands see of this process's environment is what they need, and no settings of theirs."""
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
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            **_FIXED,
            "HOME": self._home(),
            **{"VIPU_CLI_" + name: _absolute(path) for name, path in paths.items() if path},
            **({"VIPU_CLI_API_ACCESS_KEY": connection.access_key} if connection.access_key else {}),
            **{"VIPU_CLI_" + name: key for name, key, usual in metadata if key != usual},
        }


def _found(command: str) -> str:
    """The command as it is called from any folder; what is not found stays as it is named."""
    if os.sep in command:
        return _absolute(command)
    found = shutil.which(command)
    return _absolute(found) if found else command


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _last_words(text: str) -> str:
    """What a command says that was called in a way it does not know, among the lines on its usage."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if line.lower().startswith("error:")), lines[0] if lines else "")
    return told[len("error:") :].strip() if told.lower().startswith("error:") else told
