# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts that print recorded output, for releases of the command lines that cannot run in tests."""

from __future__ import annotations

import shlex
from pathlib import Path

# Global flags precede the verb; the rest of the line is the name of the recording.
SCRIPT = """\
#!/bin/sh
echo "$(basename "$0") $*" >> {folder}/lines
env > {folder}/environment
pwd > {folder}/folder
while [ "${{1#--api-}}" != "$1" ]; do shift; done
echo "$(basename "$0") $*" >> {folder}/calls
if [ -x "{folder}/$*.do" ]; then exec "{folder}/$*.do"; fi
if [ ! -e "{folder}/$*" ]; then echo "Usage:" >&2; echo "Error: unknown command '$*'" >&2; exit 1; fi
cat "{folder}/$*"
if [ -e "{folder}/$*.errors" ]; then cat "{folder}/$*.errors" >&2; fi
if [ -e "{folder}/$*.status" ]; then exit "$(cat "{folder}/$*.status")"; fi
"""


class Recorded:
    """Scripts ``vipu`` and ``vipu-admin`` in a folder, with their recorded output."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        for name in ("vipu", "vipu-admin"):
            self._executable(name, SCRIPT.format(folder=shlex.quote(str(folder))))
        self.vipu, self.vipu_admin = str(folder / "vipu"), str(folder / "vipu-admin")

    def prints(self, line: str, output: str, errors: str = "", status: int = 0) -> None:
        """Set standard output, standard error and exit status of a command."""
        (self.folder / line).write_text(output)
        (self.folder / f"{line}.errors").write_text(errors)
        (self.folder / f"{line}.status").write_text(str(status))

    def does(self, line: str, script: str) -> None:
        """Replace a command with a shell script."""
        self._executable(f"{line}.do", f"#!/bin/sh\n{script}\n")

    @property
    def calls(self) -> list[str]:
        """Commands that ran, in order, without global flags."""
        return self._recorded_lines("calls")

    @property
    def lines(self) -> list[str]:
        """Commands that ran, with all arguments."""
        return self._recorded_lines("lines")

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the last command."""
        return dict(line.split("=", 1) for line in self._recorded_lines("environment") if "=" in line)

    @property
    def working_folder(self) -> Path:
        """Working folder of the last command."""
        return Path(self._recorded_lines("folder")[0])

    def _recorded_lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def _executable(self, name: str, text: str) -> None:
        file = self.folder / name
        file.write_text(text)
        file.chmod(0o755)
