# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU measures, when that is an alarm, and what it keeps of it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdu_clock import Rack

from openipu.twin.pdu import MODELS, Community, Model, Pdu, User
from openipu.twin.pdu.load import LoadState, Thresholds, measure
from openipu.twin.pdu.pdu import Alarm


@given(st.sampled_from(list(MODELS.values())), st.dictionaries(st.integers(0, 50), st.floats(0, 4000)))
def test_no_watt_is_lost(model: Model, watts: dict[int, float]) -> None:
    there = sum(watts.get(outlet.number, 0.0) for outlet in model.outlets)
    reading = measure(model, watts)
    assert reading.device == pytest.approx(there)
    assert sum(reading.phases) == pytest.approx(there)
    if reading.banks:
        assert sum(reading.banks) == pytest.approx(there)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (0, LoadState.LOW),
        (1.9, LoadState.LOW),
        (2, LoadState.NORMAL),
        (13, LoadState.NORMAL),
        (13.1, LoadState.NEAR_OVERLOAD),
        (16, LoadState.NEAR_OVERLOAD),
        (16.1, LoadState.OVERLOAD),
    ],
)
def test_thresholds(value: float, state: LoadState) -> None:
    assert Thresholds(2, 13, 16).state(value) == state


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_outlets_are_numbered_and_wired(model: Model) -> None:
    assert [outlet.number for outlet in model.outlets] == list(range(1, len(model.outlets) + 1))
    for outlet in model.outlets:
        assert 1 <= outlet.phase <= model.phases
        assert outlet.bank == 0 or model.bank_phases[outlet.bank - 1] == outlet.phase


def test_alarms_come_and_go() -> None:
    rack = Rack()
    told: list[Alarm] = []
    rack.pdu.listeners.append(told.append)
    rack.draws({1: 3000.0})  # 13.3 A
    rack.pdu.sample()  # and no second alarm while it lasts
    rack.draws({1: 3800.0})  # 16.9 A
    rack.draws({})
    near, over = LoadState.NEAR_OVERLOAD, LoadState.OVERLOAD
    assert told == [
        Alarm("bank", 1, near, True),
        Alarm("bank", 1, near, False),
        Alarm("bank", 1, over, True),
        Alarm("bank", 1, over, False),
    ]


def test_a_change_of_thresholds_is_an_alarm_too() -> None:
    rack = Rack(outlet1=1000.0)
    told: list[Alarm] = []
    rack.pdu.listeners.append(told.append)
    draft = rack.pdu.draft()
    draft.settings.device.over = draft.settings.device.near = 9  # 0.9 kW
    assert not told
    rack.pdu.commit(draft)
    assert told == [Alarm("device", 1, LoadState.OVERLOAD, True)]


def test_energy_and_peaks_are_counted() -> None:
    rack = Rack(outlet1=1200.0)
    rack.clock.go(1800)
    rack.draws({1: 600.0})
    rack.clock.go(3600)
    rack.pdu.sample()
    assert rack.pdu.record.energy == pytest.approx(600.0 + 600.0)  # Wh
    assert rack.pdu.record.device_peak.value == 120
    assert rack.pdu.record.bank_peaks[0].value == 53
    rack.pdu.reset(rack.pdu.record.device_peak)
    rack.pdu.reset_energy()
    assert (rack.pdu.record.device_peak.value, rack.pdu.record.energy) == (60, 0.0)
    assert rack.pdu.record.bank_peaks[0].value == 53


def test_a_restart_keeps_what_was_set_and_counted(tmp_path: Path) -> None:
    rack = Rack("AP8953", tmp_path, outlet1=1000.0)
    draft = rack.pdu.draft()
    draft.settings.name, draft.settings.outlets[4].name = "left", "server5"
    draft.settings.banks[1].restriction = LoadState.OVERLOAD
    draft.settings.receivers[5].address = "10.1.3.101"
    rack.pdu.commit(draft)
    rack.pdu.command(5, "immediateOff")
    rack.clock.go(3600)
    rack.pdu.close()
    again = Rack("AP8953", tmp_path).pdu
    assert again.settings == draft.settings
    assert not again.is_on(5)
    assert again.record.energy == pytest.approx(1000.0)
    assert (again.count_boot(), again.count_boot()) == (1, 2)
    assert Rack("AP8953", tmp_path).pdu.count_boot() == 3


def test_what_cannot_be_kept_is_not_set(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    pdu = Rack(folder=folder).pdu
    folder.write_text("a file in the place of the folder")
    draft = pdu.draft()
    draft.settings.name = "left"
    done: list[str] = []
    draft.todo.append(lambda: done.append("a command"))
    with pytest.raises(OSError, match="state"):
        pdu.commit(draft)
    assert (pdu.settings.name, done) == ("pdu1", [])


def test_the_file_is_nobody_elses(tmp_path: Path) -> None:
    rack = Rack(folder=tmp_path)
    rack.pdu.keep()  # communities of trap receivers are in it
    assert stat.S_IMODE((tmp_path / "pdu1.json").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["pdu1.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": "AP8886"}', "\x00"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "pdu1.json").write_text(content)
    with pytest.raises(ValueError, match=r"pdu1\.json is not the state of a PDU: remove it to begin anew\.$"):
        Rack(folder=tmp_path)


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    Rack("AP8953", tmp_path).pdu.keep()
    with pytest.raises(ValueError, match="is of an AP8953, not of an AP8886: remove it to begin anew"):
        Rack(folder=tmp_path)


def test_there_are_models_and_no_others() -> None:
    with pytest.raises(ValueError, match="There is no PDU model 'AP9999' in the twin: choose from AP8886, AP8953"):
        Pdu("pdu1", "AP9999")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": ""}, "is no name of an SNMPv3 user"),
        ({"name": "x" * 33}, "is no name of an SNMPv3 user"),
        ({"auth": "sha1"}, "authentication is one of md5, sha, sha256, sha384, sha512"),
        ({"priv": "rot13"}, "encryption is one of des, aes, aes192, aes256"),
        ({"priv_key": "1234567"}, "a key has at least 8 characters"),
    ],
)
def test_users_that_cannot_be(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        User(**{"name": "apc", "auth_key": "12345678", "priv_key": "12345678", **options})


def test_secrets_of_users_are_not_shown() -> None:
    assert "12345678" not in repr((User("apc", "12345678", "12345678"), Community("12345678")))
