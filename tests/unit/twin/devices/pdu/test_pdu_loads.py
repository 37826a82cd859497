# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads, alarms and persistent state of a PDU."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.devices.pdu import MODELS, Community, Model, Pdu, User
from openipu.twin.devices.pdu.load import LoadState, Thresholds, measure
from openipu.twin.devices.pdu.pdu import Alarm
from tests.unit.twin.devices.pdu.pdu_clock import Rack


@given(st.sampled_from(list(MODELS.values())), st.dictionaries(st.integers(0, 50), st.floats(0, 4000)))
def test_phases_and_banks_add_up_to_the_device_load(model: Model, watts: dict[int, float]) -> None:
    total = sum(watts.get(outlet.number, 0.0) for outlet in model.outlets)
    reading = measure(model, watts)
    assert reading.device == pytest.approx(total)
    assert sum(reading.phases) == pytest.approx(total)
    if reading.banks:
        assert sum(reading.banks) == pytest.approx(total)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (0, LoadState.LOW),
        (1.9, LoadState.LOW),
        (2, LoadState.NORMAL),
        (12.9, LoadState.NORMAL),
        (13, LoadState.NEAR_OVERLOAD),
        (15.9, LoadState.NEAR_OVERLOAD),
        (16, LoadState.OVERLOAD),
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


@given(st.sampled_from(list(MODELS.values())), st.data())
def test_the_first_outlets_load_phases_and_banks_evenly(model: Model, data: st.DataObject) -> None:
    order = model.balanced()
    assert sorted(order) == [outlet.number for outlet in model.outlets]
    used = order[: data.draw(st.integers(0, len(order)))]
    reading = measure(model, dict.fromkeys(used, 100.0))
    for loads in (reading.phases, reading.banks):
        assert max(loads, default=0) - min(loads, default=0) <= 101


def test_alarms_start_and_end() -> None:
    rack = Rack()
    alarms: list[Alarm] = []
    rack.pdu.listeners.append(alarms.append)
    rack.set_loads({1: 3000.0})  # 13.3 A
    rack.pdu.sample()  # no second alarm while the state lasts
    rack.set_loads({1: 3800.0})  # 16.9 A
    rack.set_loads({})
    near, over = LoadState.NEAR_OVERLOAD, LoadState.OVERLOAD
    assert alarms == [
        Alarm("bank", 1, near, True),
        Alarm("bank", 1, near, False),
        Alarm("bank", 1, over, True),
        Alarm("bank", 1, over, False),
    ]


def test_a_change_of_thresholds_can_raise_an_alarm() -> None:
    rack = Rack(outlet1=1000.0)
    alarms: list[Alarm] = []
    rack.pdu.listeners.append(alarms.append)
    draft = rack.pdu.draft()
    draft.settings.device.over = draft.settings.device.near = 9  # 0.9 kW
    assert not alarms
    rack.pdu.commit(draft)
    assert alarms == [Alarm("device", 1, LoadState.OVERLOAD, True)]


def test_energy_and_peaks_are_counted() -> None:
    rack = Rack(outlet1=1200.0)
    rack.clock.advance(1800)
    rack.set_loads({1: 600.0})
    rack.clock.advance(3600)
    rack.pdu.sample()
    assert rack.pdu.record.energy == pytest.approx(600.0 + 600.0)  # Wh
    assert rack.pdu.record.device_peak.value == 120
    assert rack.pdu.record.bank_peaks[0].value == 53
    rack.pdu.reset(rack.pdu.record.device_peak)
    rack.pdu.reset_energy()
    assert (rack.pdu.record.device_peak.value, rack.pdu.record.energy) == (60, 0.0)
    assert rack.pdu.record.bank_peaks[0].value == 53


def test_settings_and_counters_survive_a_restart(tmp_path: Path) -> None:
    rack = Rack("AP8953", tmp_path, outlet1=1000.0)
    draft = rack.pdu.draft()
    draft.settings.name, draft.settings.outlets[4].name = "left", "server5"
    draft.settings.banks[1].restriction = LoadState.OVERLOAD
    draft.settings.receivers[5].address = "10.1.3.101"
    rack.pdu.commit(draft)
    rack.pdu.outlets.command(5, "immediateOff")
    rack.clock.advance(3600)
    rack.pdu.close()
    again = Rack("AP8953", tmp_path).pdu
    assert again.settings == draft.settings
    assert not again.outlets.is_on(5)
    assert again.record.energy == pytest.approx(1000.0)
    assert (again.count_boot(), again.count_boot()) == (1, 2)
    assert Rack("AP8953", tmp_path).pdu.count_boot() == 3


def test_settings_that_cannot_be_saved_are_not_applied(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    pdu = Rack(folder=folder).pdu
    folder.write_text("a file in the place of the folder")
    draft = pdu.draft()
    draft.settings.name = "left"
    done: list[str] = []
    draft.actions.append(lambda: done.append("a command"))
    with pytest.raises(OSError, match="state"):
        pdu.commit(draft)
    assert (pdu.settings.name, done) == ("pdu1", [])


def test_the_state_file_is_private(tmp_path: Path) -> None:
    rack = Rack(folder=tmp_path)
    rack.pdu.save()  # contains communities of trap receivers
    assert stat.S_IMODE((tmp_path / "pdu1.json").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["pdu1.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": "AP8886"}', "\x00"])
def test_an_invalid_state_file_is_rejected(tmp_path: Path, content: str) -> None:
    (tmp_path / "pdu1.json").write_text(content)
    with pytest.raises(
        ValueError, match=r"Cannot read .*pdu1\.json: it is not the state of a PDU\. Remove it to reset the PDU\.$"
    ):
        Rack(folder=tmp_path)


def test_a_state_file_of_another_model_is_rejected(tmp_path: Path) -> None:
    Rack("AP8953", tmp_path).pdu.save()
    with pytest.raises(ValueError, match=r"for an AP8886: it is the state of an AP8953\. Remove it to reset"):
        Rack(folder=tmp_path)


def test_an_unknown_model_is_rejected() -> None:
    with pytest.raises(
        ValueError, match=r"Cannot create PDU 'pdu1': the twin does not support model 'AP9999'\. Choose from AP8886"
    ):
        Pdu("pdu1", "AP9999")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "Cannot create SNMPv3 user '': invalid length"),
        ({"name": "x" * 33}, "Cannot create SNMPv3 user 'xxx"),
        ({"auth": "sha1"}, "authentication 'sha1' is unknown. Choose from md5, sha, sha224, sha256, sha384, sha512"),
        ({"priv": "rot13"}, "encryption 'rot13' is unknown. Choose from des, aes, aes192, aes256"),
        ({"priv_key": "1234567"}, "a key is too short. Use at least 8 characters."),
    ],
)
def test_an_invalid_user_is_rejected(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        User(**{"name": "apc", "auth_key": "12345678", "priv_key": "12345678", **options})


def test_secrets_of_users_are_not_shown() -> None:
    assert "12345678" not in repr((User("apc", "12345678", "12345678"), Community("12345678")))
