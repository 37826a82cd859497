# SPDX-License-Identifier: GPL-3.0-or-later
"""Error messages of `pdu` and `pdu_info`, without secrets in any output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK

from tests.integration.collection.playbook import play, results
from tests.integration.pdu.pdu_perform import perform
from tests.integration.pdu_agents import AUTH_KEY, HOST, PRIV_KEY, READER, READS, WITH_V2C, WRITES, Agents, trap_port

Object = dict[str, Any]
READER_OPTIONS = {"username": READER, "auth_protocol": "sha256", "priv_protocol": "aes256"}
QUICK = {"timeout": 0.3, "retries": 0}
TRAP = "tr4p-for-tests"


def task(module: str, options: Object, path: str = "action") -> Object:
    """Return a task that may fail."""
    return {
        "name": module,
        f"openipu.pod.{module}": options,
        "ignore_errors": True,
        "vars": {"openipu_fast_path": path == "action"},
    }


def test_messages_of_rejected_logins(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu()
    at = f"{HOST}:{served.port}"
    login = f"Cannot log in to {at} as 'operator'"
    with trap_port() as silent:  # a port that ignores all requests
        ignored = silent.getsockname()[1]
        cases: list[tuple[Object, str]] = [
            ({"username": "unknown"}, f"Cannot log in to {at}: it has no SNMPv3 user 'unknown'. Check username."),
            ({"auth_key": "another-key"}, f"{login}: authentication failed. Check auth_key and auth_protocol."),
            ({"auth_protocol": "sha512"}, f"{login}: authentication failed. Check auth_key and auth_protocol."),
            (
                {"priv_key": "another-key"},
                f"{login}: decryption failed. Check priv_key and priv_protocol, and that the host of the task has the "
                "Python library cryptography.",
            ),
            (
                {"security_level": "auth_no_priv"},
                f"{login}: it does not accept security_level auth_no_priv. Set the level of this user there.",
            ),
            (
                {"security_level": "no_auth_no_priv"},
                f"{login}: it does not accept security_level no_auth_no_priv. Set the level of this user there.",
            ),
            (
                {"auth_key": "k3y"},
                f"Cannot connect to {at}: auth_key is shorter than 8 characters, the minimum of SNMPv3. Check "
                "auth_key.",
            ),
            (
                {"priv_key": ""},
                f"Cannot connect to {at} with security_level auth_priv: no priv_key. Set priv_key.",
            ),
            (
                {"version": "v2c", "community": READS, **QUICK},  # the agent accepts v3 only
                f"Cannot reach {at}: no response within 0.3 s. Check that it is up, host and port, and the community.",
            ),
            (
                {"port": ignored, **QUICK, "retries": 1},
                f"Cannot reach {HOST}:{ignored}: no response within 0.6 s. Check that it is up, host and port, and "
                "that it accepts SNMPv3 from this host.",
            ),
            ({"host": "pdu1.invalid"}, "Cannot resolve the host 'pdu1.invalid'. Check host."),
            ({"version": "v2c"}, "version is v2c but all of the following are missing: community"),
        ]
        found = results(tmp_path, [task("pdu_info", served.options(**options)) for options, _message in cases])
    assert [(each["failed"], each["msg"]) for each in found] == [(True, message) for _options, message in cases]


def test_an_invalid_configuration_is_rejected_before_any_write(agents: Agents, tmp_path: Path) -> None:
    metered, switched = agents.pdu(), agents.pdu("pdu2", "AP8953")
    pdu1, pdu2 = f"pdu1 (AP8886 at {HOST}:{metered.port})", f"pdu2 (AP8953 at {HOST}:{switched.port})"
    cases = [
        (
            metered,
            {"name": "left", "outlets": [{"number": 1, "state": "off"}]},
            f"Cannot set outlets on {pdu1}: this model cannot switch its outlets. Omit outlets, or use a switched "
            "model, like an AP89xx.",
        ),
        (
            metered,
            {"name": "left", "banks": [{"number": 7}]},
            f"Cannot set bank 7 on {pdu1}: it has 1 to 6. Correct the number, or remove it.",
        ),
        (
            switched,
            {"phases": [{"number": 2, "overload": 20}]},
            f"Cannot set phase 2 on {pdu2}: it has 1 to 1. Correct the number, or remove it.",
        ),
        (
            metered,
            {"banks": [{"number": 1, "overload": 20}]},
            f"Cannot set overload of bank 1 of {pdu1} to 20 A: the rating is 16 A. Set at most the rating.",
        ),
        (
            metered,
            {"low_load": 18},
            f"Cannot set the thresholds of {pdu1} to low_load 18 kW, near_overload 17.6 kW, overload 22 kW: they must "
            "be in ascending order.",
        ),
        (
            metered,
            {"trap_receivers": [{"address": "10.1.3.101"}]},
            f"Cannot add trap receiver 10.1.3.101 to {pdu1}: it needs an address and a community. Set both.",
        ),
        (
            switched,
            {"outlets": [{"number": 2, "name": "server1", "reboot_duration": 61}]},
            f"Cannot set reboot_duration 61 s of outlet 2 on {pdu2}: the PDU does not accept this value. Not set: name "
            "'server1' of outlet 2. Nothing was changed.",
        ),
    ]
    found = results(tmp_path, [task("pdu", served.options(config=config)) for served, config, _message in cases])
    assert [(each["failed"], each["msg"]) for each in found] == [(True, message) for *_case, message in cases]
    assert "set" not in metered.requests
    assert metered.pdu.settings.name == "pdu1"
    assert switched.pdu.settings.outlets[1].name == "Outlet 2"


def test_a_read_only_user_cannot_write(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu()
    options = served.options(**READER_OPTIONS)
    info, change = results(tmp_path, [task("pdu_info", options), task("pdu", {**options, "config": {"name": "left"}})])
    assert (info["failed"], info["pdu"]["name"]) == (False, "pdu1")
    assert change["msg"] == (
        f"Cannot set name 'left' on pdu1 (AP8886 at {HOST}:{served.port}): no write access with these credentials. "
        "Use those of a user with write access. Nothing was changed."
    )
    assert not change["changed"]


def test_a_rejected_trap_receiver_is_no_change(agents: Agents) -> None:
    served = agents.pdu()
    config = {"trap_receivers": [{"address": "10.1.3.101", "community": TRAP}]}
    result = perform(PDU_TASK, **served.options(config=config, **READER_OPTIONS))
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith("Not set: community of trap receiver 10.1.3.101. Nothing was changed.")


def test_no_output_contains_secrets(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    community = {"host": HOST, "port": served.port, "version": "v2c", "community": READS, "write_community": WRITES}
    wrong = {"auth_key": "wr0ng-for-tests", "priv_key": "wr0ng-for-tests"}

    def receiver(number: int) -> Object:
        return {"trap_receivers": [{"address": f"10.1.3.{number}", "community": TRAP}]}

    tasks = [
        task("pdu", served.options(config=receiver(101))),
        task("pdu", {**community, "config": receiver(102)}, "module"),
        task("pdu", served.options(config=receiver(103), **READER_OPTIONS)),
        task("pdu", served.options(state="gathered")),
        task("pdu_info", {**community, "retries": "many"}),
        task("pdu_info", served.options(**wrong)),
        task("pdu_info", served.options(**wrong), "module"),
    ]
    played = play(tmp_path, tasks, "-vvv", "--diff")
    assert (played.ok, played.changed) == (len(tasks), 2), played.output
    assert "10.1.3.103" in played.output
    for secret in (AUTH_KEY, PRIV_KEY, READS, WRITES, TRAP, *wrong.values()):
        assert secret not in played.output


def test_headroom_and_excesses(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(watts={1: 2300.0, 8: 1150.0})
    cases: list[Object] = [
        {"added_loads": [{"bank": 1, "power": 1.3}, {"phase": 3, "power": 7}]},
        {"added_loads": [{"bank": 1, "power": 1.5}]},
        {"added_loads": [{"bank": 1, "power": 1.5}], "fail_on_excess": False},
        {"added_loads": [{"bank": 1, "power": 1.3}], "breaker_share": 0.8},
        {"expected_power": 20},
        {"expected_power": 22.5},
        {"added_loads": [{"bank": 9, "power": 1}]},
    ]
    fits, full, reported, shared, all_on, overload, unknown = results(
        tmp_path, [task("pdu_info", served.options(**case)) for case in cases]
    )
    assert (fits["fits"], fits["excess_message"], fits["excesses"]) == (True, "", [])
    assert {key: fits["banks"][0][key] for key in ("current", "breaker", "headroom", "headroom_power", "phases")} == {
        "current": 10.2,
        "breaker": 16,
        "headroom": 5.8,
        "headroom_power": 1.33,
        "phases": [1],
    }
    assert (fits["phases"][0]["current"], fits["phases"][0]["headroom"]) == (15.3, 16.7)
    assert (fits["device"]["power"], fits["device"]["headroom_power"]) == (3.45, 18.55)
    assert full["failed"]
    assert (
        full["msg"]
        == reported["excess_message"]
        == (
            f"Cannot add 1.5 kW to pdu1 (AP8886 at {HOST}:{served.port}): bank 1 would carry 16.7 A of at most 16 A "
            "(10.2 now and 6.5 more). Reduce the load, or move it to another PDU."
        )
    )
    assert (
        reported["failed"],
        reported["fits"],
        [(each["kind"], each["number"]) for each in reported["excesses"]],
    ) == (
        False,
        False,
        [("bank", 1)],
    )
    assert "bank 1 would carry 15.9 A of at most 12.8 A" in shared["msg"]
    assert all_on["failed"]
    assert "phase 1 would carry 39.3 A of at most 32 A" in all_on["msg"]
    assert "the whole PDU would carry 22.5 kW of at most 22 kW (3.5 now and 19.1 more)" in overload["msg"]
    assert unknown["msg"] == "Cannot add a load to bank 9: the PDU does not have it; it has banks 1 to 6."
