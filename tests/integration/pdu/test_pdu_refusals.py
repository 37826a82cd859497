# SPDX-License-Identifier: GPL-3.0-or-later
"""What `pdu` and `pdu_info` say when they cannot do what they are asked, and that they keep secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu.tasks import PDU_TASK
from pdu_agents import AUTH_KEY, HOST, PRIV_KEY, READER, READS, WITH_V2C, WRITES, Agents, trap_port
from pdu_perform import perform
from playbook import play, results

Object = dict[str, Any]
READER_OPTIONS = {"username": READER, "auth_protocol": "sha256", "priv_protocol": "aes256"}
QUICK = {"timeout": 0.3, "retries": 0}
TRAP = "tr4p-of-nobody"


def task(module: str, options: Object, path: str = "action") -> Object:
    """One task that may fail."""
    return {
        "name": module,
        f"openipu.pod.{module}": options,
        "ignore_errors": True,
        "vars": {"openipu_fast_path": path == "action"},
    }


def test_who_is_not_let_in_is_told_why(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu()
    at = f"{HOST}:{served.port}"
    with trap_port() as silent:  # a port that takes requests and answers none
        nobody = silent.getsockname()[1]
        cases: list[tuple[Object, str]] = [
            ({"username": "nobody"}, f"{at} knows no SNMPv3 user 'nobody': check username."),
            ({"auth_key": "another-key"}, f"{at} does not let 'operator' in: check auth_key and auth_protocol."),
            ({"auth_protocol": "sha512"}, f"{at} does not let 'operator' in: check auth_key and auth_protocol."),
            (
                {"priv_key": "another-key"},
                f"{at} and we cannot read each other as 'operator': check priv_key and priv_protocol, and that the "
                "host of the task has the Python library cryptography.",
            ),
            (
                {"security_level": "auth_no_priv"},
                f"{at} does not let 'operator' in with security_level auth_no_priv: use the one that the user "
                "has there.",
            ),
            (
                {"security_level": "no_auth_no_priv"},
                f"{at} does not let 'operator' in with security_level no_auth_no_priv: use the one that the user has "
                "there.",
            ),
            (
                {"auth_key": "k3y"},
                f"The auth_key for {at} is shorter than the 8 characters that SNMPv3 takes: check it.",
            ),
            (
                {"priv_key": ""},
                f"SNMPv3 with security_level auth_priv to {at} takes priv_key: give it.",
            ),
            (
                {"version": "v2c", "community": READS, **QUICK},  # it speaks v3 only
                f"{at} did not answer within 0.3 seconds: check that it is up, host and port, and community.",
            ),
            (
                {"port": nobody, **QUICK, "retries": 1},
                f"{HOST}:{nobody} did not answer within 0.6 seconds: check that it is up, host and port, and that it "
                "lets this host use SNMPv3.",
            ),
            ({"host": "pdu1.invalid"}, "No address is known of pdu1.invalid: check host."),
            ({"version": "v2c"}, "version is v2c but all of the following are missing: community"),
        ]
        found = results(tmp_path, [task("pdu_info", served.options(**options)) for options, _sentence in cases])
    assert [(each["failed"], each["msg"]) for each in found] == [(True, sentence) for _options, sentence in cases]


def test_what_a_pdu_cannot_be_is_said_before_anything_is_written(agents: Agents, tmp_path: Path) -> None:
    metered, switched = agents.pdu(), agents.pdu("pdu2", "AP8953")
    pdu1, pdu2 = f"pdu1 (AP8886 at {HOST}:{metered.port})", f"pdu2 (AP8953 at {HOST}:{switched.port})"
    cases = [
        (
            metered,
            {"name": "left", "outlets": [{"number": 1, "state": "off"}]},
            f"{pdu1} meters its outlets and cannot switch them: leave outlets out, or use a switched model, like an "
            "AP89xx.",
        ),
        (metered, {"name": "left", "banks": [{"number": 7}]}, f"{pdu1} has no bank 7: it has 1 to 6."),
        (switched, {"phases": [{"number": 2, "overload": 20}]}, f"{pdu2} has no phase 2: it has 1 to 1."),
        (
            metered,
            {"banks": [{"number": 1, "overload": 20}]},
            f"The overload of bank 1 of {pdu1} would be 20 A, and it is made for 16 A: give no more than that.",
        ),
        (
            metered,
            {"low_load": 18},
            f"The thresholds of {pdu1} would be low_load 18 kW, near_overload 17.6 kW, overload 22 kW: they have to "
            "rise in this order.",
        ),
        (
            metered,
            {"trap_receivers": [{"address": "10.1.3.101"}]},
            f"The new trap receiver 10.1.3.101 of {pdu1} needs an address and a community: give both.",
        ),
        (
            switched,
            {"outlets": [{"number": 2, "name": "server1", "reboot_duration": 61}]},
            f"{pdu2} refused reboot_duration 61 s of outlet 2: it does not take this value. Not done: name 'server1' "
            "of outlet 2. Nothing was changed.",
        ),
    ]
    found = results(tmp_path, [task("pdu", served.options(config=config)) for served, config, _sentence in cases])
    assert [(each["failed"], each["msg"]) for each in found] == [(True, sentence) for *_case, sentence in cases]
    assert "set" not in metered.requests
    assert metered.pdu.settings.name == "pdu1"
    assert switched.pdu.settings.outlets[1].name == "Outlet 2"


def test_who_may_only_read(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu()
    options = served.options(**READER_OPTIONS)
    info, change = results(tmp_path, [task("pdu_info", options), task("pdu", {**options, "config": {"name": "left"}})])
    assert (info["failed"], info["pdu"]["name"]) == (False, "pdu1")
    assert change["msg"] == (
        f"pdu1 (AP8886 at {HOST}:{served.port}) refused name 'left': it may not be written with these credentials, so "
        "use those of a user who may write. Nothing was changed."
    )
    assert not change["changed"]


def test_a_refused_trap_receiver_is_no_change(agents: Agents) -> None:
    served = agents.pdu()
    config = {"trap_receivers": [{"address": "10.1.3.101", "community": TRAP}]}
    result = perform(PDU_TASK, **served.options(config=config, **READER_OPTIONS))
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith("Not done: community of trap receiver 10.1.3.101. Nothing was changed.")


def test_secrets_are_nowhere(agents: Agents, tmp_path: Path) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    community = {"host": HOST, "port": served.port, "version": "v2c", "community": READS, "write_community": WRITES}
    wrong = {"auth_key": "wr0ng-of-nobody", "priv_key": "wr0ng-of-nobody"}

    def told(number: int) -> Object:
        return {"trap_receivers": [{"address": f"10.1.3.{number}", "community": TRAP}]}

    tasks = [
        task("pdu", served.options(config=told(101))),
        task("pdu", {**community, "config": told(102)}, "module"),
        task("pdu", served.options(config=told(103), **READER_OPTIONS)),
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


def test_headroom_and_what_would_exceed_it(agents: Agents, tmp_path: Path) -> None:
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
    fits, full, told, shared, all_on, too_much, unknown = results(
        tmp_path, [task("pdu_info", served.options(**case)) for case in cases]
    )
    assert (fits["fits"], fits["refusal"], fits["excesses"]) == (True, "", [])
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
        == told["refusal"]
        == (
            f"pdu1 (AP8886 at {HOST}:{served.port}) cannot take 1.5 kW more: bank 1 would carry 16.7 A of at most 16 A "
            "(10.2 now and 6.5 more). Power less of it, or move load to another PDU."
        )
    )
    assert (told["failed"], told["fits"], [(each["kind"], each["number"]) for each in told["excesses"]]) == (
        False,
        False,
        [("bank", 1)],
    )
    assert "bank 1 would carry 15.9 A of at most 12.8 A" in shared["msg"]
    assert all_on["failed"]
    assert "phase 1 would carry 39.3 A of at most 32 A" in all_on["msg"]
    assert "the whole PDU would carry 22.5 kW of at most 22 kW (3.5 now and 19.1 more)" in too_much["msg"]
    assert unknown["msg"] == "The PDU has no bank 9: it has banks 1 to 6."
