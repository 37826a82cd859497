# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers out of range, and numbers in other bases."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

SWITCHES = (
    ", switches: [{name: tor, kind: data, uplinks: [Ethernet1/1], uplink_channel: %s}, {name: m, kind: management}]"
)


@pytest.mark.parametrize("channel", [1, 2000])
def test_port_channels_of_eos_are_valid(pod, channel):
    [rack] = load(str(pod.write(rack_tail=SWITCHES % channel))).racks
    assert rack.switches[0].uplink_channel == channel


@pytest.mark.parametrize("channel", [0, 2001, 9999999])
def test_other_port_channels_are_rejected(pod, channel):
    path = pod.write(rack_tail=SWITCHES % channel)
    with pytest.raises(PodError) as caught:
        load(str(path))
    [mistake] = caught.value.mistakes
    assert "uplink_channel" in path.read_text().splitlines()[mistake.line - 1]
    assert mistake.message == f"switch 'tor': invalid uplink_channel {channel}: use 1 to 2000"


@pytest.mark.parametrize(
    ("text", "octal", "decimal"), [("0143", 99, 143), ("00", 0, 0), ("-017", -15, -17), ("01_43", 99, 143)]
)
def test_numbers_with_a_leading_zero_are_rejected(pod, text, octal, decimal):
    path = pod.write(networks=f"networks: {{gw: {{vlan: {text}}}}}")
    with pytest.raises(PodError) as caught:
        load(str(path))
    [mistake] = caught.value.mistakes
    assert path.read_text().splitlines()[mistake.line - 1].startswith("networks:")
    assert mistake.message == (
        f"invalid value '{text}': YAML reads a number with a leading zero as octal, here {octal}."
        f" Write {decimal}, or quote a text"
    )


@pytest.mark.parametrize(
    ("text", "base", "decimal"),
    [
        ("0o143", "octal", 99),
        ("-0o1_7", "octal", -15),
        ("0x63", "hexadecimal", 99),
        ("+0xF_f", "hexadecimal", 255),
        ("0b11", "binary", 3),
    ],
)
@pytest.mark.parametrize(
    "content",
    [{"networks": "networks: {gw: {vlan: %s}}"}, {"rack_tail": ", servers: [{name: %s}]"}],
    ids=["number", "name"],
)
def test_numbers_with_the_prefix_of_a_base_are_rejected(pod, text, base, decimal, content):
    path = pod.write(**{key: value % text for key, value in content.items()})
    with pytest.raises(PodError) as caught:
        load(str(path))
    [mistake] = caught.value.mistakes
    assert mistake.message == (
        f"invalid value '{text}': this is the {base} form of {decimal}. Write {decimal}, or quote a text"
    )


@pytest.mark.parametrize(("text", "decimal"), [("9_9", 99), ("-1_0", -10), ("1__4_3", 143)])
def test_numbers_with_underscores_are_rejected(pod, text, decimal):
    path = pod.write(networks=f"networks: {{gw: {{vlan: {text}}}}}")
    with pytest.raises(PodError) as caught:
        load(str(path))
    [mistake] = caught.value.mistakes
    message = f"invalid value '{text}': a number has only digits. Write {decimal}, or quote a text"
    assert (mistake.line, mistake.message) == (3, message)


@pytest.mark.parametrize("text", ["1_0", "１", "٣", "1.0"])
def test_texts_with_other_characters_than_digits_are_no_numbers(pod, text):
    pod.write()
    table = pod.machines_csv.read_text().replace("m1.1,rack1,1,", f"m1.1,rack1,{text},")
    with pytest.raises(PodError) as caught:
        pod.load(rows=table.splitlines())
    assert [each.message for each in caught.value.mistakes] == [
        f"machine 'm1.1': 'unit' must be a number, not '{text}'"
    ]


@pytest.mark.parametrize("text", ["'0x63'", "'0o63'", "0o9", "0b2", "0xyz"])
def test_texts_that_start_like_a_base_are_valid(pod, text):
    [rack] = load(str(pod.write(rack_tail=f", servers: [{{name: {text}}}]"))).racks
    assert rack.servers[0].name == text.strip("'")


@pytest.mark.parametrize("text", ["143", "'0143'"])
def test_decimal_numbers_and_quoted_texts_are_valid(pod, text):
    assert load(str(pod.write(networks=f"networks: {{gw: {{vlan: {text}}}}}"))).networks["gw"].vlan == 143
