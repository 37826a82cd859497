# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files, and the precedence of flag, environment and files."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openipu.shared.vipu.client import Connection
from openipu.shared.vipu.userfile import write_config
from openipu.vipu.cli import check_config, config_file, ipuof_files
from openipu.vipu.cli.config_file import ConfigError
from openipu.vipu.cli.settings import Settings, read_connection
from openipu.vipu.cli.user import vipu


@pytest.fixture(autouse=True)
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the system file, which does not exist yet."""
    monkeypatch.setattr(config_file, "SYSTEM_FILE", tmp_path / "etc" / "vipu-cli.hcl")
    config_file.SYSTEM_FILE.parent.mkdir()
    return config_file.SYSTEM_FILE


def connection(*arguments: str) -> Any:
    """Return the connection for a command line with these flags; flags after ``list`` belong to the noun."""
    root = vipu.make_context("vipu", [*arguments, *(() if "list" in arguments else ("list", "partitions"))])
    with root:
        _, verb, rest = vipu.resolve_command(root, [*root._protected_args, *root.args])
        assert isinstance(verb, click.Group)
        ctx = verb.make_context("list", rest, parent=root)
        _, leaf, rest = verb.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert leaf is not None
        return Settings(leaf.make_context("partitions", rest, parent=ctx)).connection()


def test_defaults() -> None:
    found = connection()
    assert (found.host, found.port, found.user_id, found.secure) == ("localhost", 8090, None, False)


def test_precedence_of_sources(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["api-host", "api-user-id", "ca-path", "client-cert", "client-key"]
    system.write_text("".join(f'{name}="system"\n' for name in names))
    file = tmp_path / "own.hcl"
    file.write_text("".join(f'{name}="file"\n' for name in names[:4]))
    monkeypatch.setenv("VIPU_CLI_API_HOST", "environment")
    monkeypatch.setenv("VIPU_CLI_API_USER_ID", "environment")
    monkeypatch.setenv("VIPU_CLI_CA_PATH", "environment")
    found = connection("-H", "flag", "--config", str(file), "list", "partitions", "--api-user-id", "late flag")
    assert found.host == "flag"
    assert found.user_id == "late flag"
    assert found.ca_path == "environment"
    assert found.client_cert == "file"
    assert found.client_key == "system"


def test_a_flag_after_the_noun_overrides_one_before_the_verb() -> None:
    assert connection("--api-port", "1", "list", "partitions", "--api-port", "2").port == 2


def test_the_environment_can_set_the_configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.hcl").write_text("api-port=4711")
    monkeypatch.setenv("VIPU_CLI_CONFIG", str(tmp_path / "own.hcl"))
    assert connection().port == 4711


@pytest.mark.parametrize("line", ["api-port=9000", 'api-port="9000"', "api-port = 9000 # why"])
def test_ports_in_files(system: Path, line: str) -> None:
    system.write_text(line)
    assert connection().port == 9000


@pytest.mark.parametrize(
    "line", ["api-port=0", 'api-port="x"', "api-port=true", "api-host=[1]", 'insecure-network="yes"']
)
def test_the_error_names_invalid_values_and_their_file(system: Path, line: str) -> None:
    system.write_text(line + "\n")
    with pytest.raises(ConfigError) as caught:
        connection()
    assert str(system) in str(caught.value) and line.split("=")[0] in str(caught.value)


def test_plaintext_is_allowed_by_every_source(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection().insecure_network is False
    assert connection("--insecure-network").insecure_network is True
    assert connection("list", "partitions", "--insecure-network").insecure_network is True
    system.write_text("insecure-network=true\n")
    assert connection().insecure_network is True
    monkeypatch.setenv("VIPU_CLI_INSECURE_NETWORK", "false")
    assert connection().insecure_network is False
    monkeypatch.undo()


def test_errors_of_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the configuration file .* it does not exist"):
        connection("--config", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="Cannot read the configuration file"):
        config_file.read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="it is not a text file"):
        config_file.read(tmp_path / "binary")
    (tmp_path / "bad").write_text('api-host="a"\n}\n')
    with pytest.raises(ConfigError, match=r"is not HCL at line 2"):
        config_file.read(tmp_path / "bad")


def test_comments_blanks_and_unknown_names_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text('# one\n\n// two\n  api-host = "a b" // three\nlog_level="debug"\nnumber=3\nflag=true')
    assert config_file.read(file) == {"api-host": "a b", "log_level": "debug", "number": 3, "flag": True}


def test_a_typing_error_gives_a_warning(system: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.hcl"
    file.write_text('api-hots="a"\nlog-level="debug"\napi-port=1\n')
    assert connection("--config", str(file)).port == 1
    assert capsys.readouterr().err == f"Warning: api-hots in {str(file)!r} is not used: did you mean api-host?\n"


def test_complex_files_are_read_by_the_library(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text('/* all\n of it */\napi-host = "say \\"hi\\""\napi-port=8090\nother { x = 1 }\n')
    found = config_file.read(file)
    assert found["api-host"] == 'say "hi"' and found["api-port"] == 8090


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=9), st.text(max_size=9))
@example("${", "%{x}")
@example("$$%%{", "\\${")
def test_written_files_can_be_read(host: str, user: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        write_config(file, Connection(host), user, "k3y")
        assert config_file.read(file) == {
            "api-host": host,
            "api-port": 8090,
            "api-user-id": user,
            "api-access-key": "k3y",
        }


def test_the_file_of_a_user_contains_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = connection("-H", "h", "--ca-path", "ca.crt", "--api-user-id", "admin", "--api-access-key", "secret")
    file = tmp_path / "alice.vipu-cli.hcl"
    write_config(file, found, "alice", "k3y")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config_file.read(file) == {
        "api-host": "h",
        "api-port": 8090,
        "api-user-id": "alice",
        "api-access-key": "k3y",
        "ca-path": str(tmp_path / "ca.crt"),
    }


def test_the_file_of_a_user_contains_other_metadata_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIPU_CLI_METADATA_USER_ID_KEY", "X-User")  # gRPC accepts lower case only
    found = connection()
    assert (found.user_id_metadata, found.access_key_metadata) == ("x-user", "vipu-access-key")
    write_config(tmp_path / "file", found, "alice", "k3y")
    text = (tmp_path / "file").read_text()
    assert 'metadata-user-id-key="x-user"\n' in text and "metadata-access-key-key" not in text


class Config:
    """PartitionConfig of ``count`` GCDs without devices."""

    class Gcd:
        attributes: dict[str, str] = {}  # noqa: RUF012 - never changed
        devices = ()

    def __init__(self, count: int) -> None:
        self.gcd_configs = [self.Gcd()] * count


def test_files_of_partitions_with_similar_names_are_independent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ipuof_files.write("p", Config(1))
    ipuof_files.write("p_gcd0", Config(1))
    paths = ipuof_files.write("q", Config(2))
    assert [path.name for path in paths] == ["q_gcd0_ipuof.conf", "q_gcd1_ipuof.conf"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    assert ipuof_files.present("p") and ipuof_files.present("q") and not ipuof_files.present("r")
    ipuof_files.remove("p", 1)
    ipuof_files.remove("q", 2)
    assert [path.name for path in ipuof_files.folder().iterdir()] == ["p_gcd0_ipuof.conf"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('api-host="10.3.1.101"\napi-port=8090\n', None),
        ('api-hots="10.3.1.101"\n', "api-hots in '{}' is not used: did you mean api-host?"),
        ("api-port=70000\n", "Cannot use api-port in '{}': it is not a port. 70000 is not in the range 1<=x<=65535."),
        ("api-host=true\n", "Cannot use api-host in '{}': it is neither text nor a number. Set one of them."),
        ('api-host="10.3.1.101\n', "Cannot read the configuration file '{}': it is not HCL"),
        ('api-host="a\\q"\n', "Cannot read the configuration file '{}': api-host has an invalid escape sequence."),
        ('api-host="a\\udcff"\n', "Cannot use api-host in '{}': it has characters that are no text. Remove them."),
        ('ca-path="a\\u0000b"\n', "Cannot use ca-path in '{}': it has characters that are no text. Remove them."),
        ('api-host="a\0b"\n', "Cannot use api-host in '{}': it has characters that are no text. Remove them."),
        (
            "x=" + "[" * 3000 + "]" * 3000,
            "Cannot read the configuration file '{}': it is nested too deeply. Write lines like",
        ),
        ('\ufeffapi-host="10.3.1.101"\n', None),  # a byte order mark, as editors on Windows write it
    ],
)
def test_check_config(text: str, message: str | None, tmp_path: Path) -> None:
    file = tmp_path / "vipu-cli.hcl"
    file.write_text(text)
    if message is None:
        check_config.main(str(file))
        return
    with pytest.raises(SystemExit) as rejected:
        check_config.main(str(file))
    assert str(rejected.value).startswith(message.format(file))


def test_other_programs_read_one_file_only(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server reads the files of several users, so its environment must not replace their settings."""
    system.write_text('api-user-id="system"\nca-path="system"\n')
    monkeypatch.setenv("VIPU_CLI_API_USER_ID", "environment")
    file = tmp_path / "alice.vipu-cli.hcl"
    write_config(file, Connection("10.1.3.101", 8091), "alice", "secret")
    found = read_connection(file, timeout=3.0)
    assert (found.host, found.port, found.user_id, found.access_key) == ("10.1.3.101", 8091, "alice", "secret")
    assert (found.ca_path, found.timeout) == (None, 3.0)
    with pytest.raises(ConfigError, match="it does not exist"):
        read_connection(tmp_path / "none")
