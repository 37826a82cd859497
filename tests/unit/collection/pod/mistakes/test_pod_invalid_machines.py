# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid machines.csv: each error has file, line, cause and remedy."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

HEADER = "name,rack,unit,bmc_mac,gw_mac,rnic_mac,gw_address"


def row(unit, name=None, rack="rack1", mac=None, address=""):
    number = unit + (32 if name == "x" else 0)  # the machine x has MACs of its own
    macs = ",".join(f"02:{network}:00:00:01:{number:02x}" for network in ("01", "02"))
    return f"{name or f'm{unit}'},{rack},{unit},{macs},{mac or f'02:05:00:00:01:{number:02x}'},{address}"


ROWS = [
    (
        "the MAC of another machine",
        [HEADER, row(1), row(2, mac="02:05:00:00:01:01")],
        3,
        "MAC 02:05:00:00:01:01 is used by both rnic of 'm1' (line 2) and rnic of 'm2': use different values",
    ),
    (
        "the same MAC written otherwise",
        [HEADER, row(1), row(2, mac="0205.0000.0101")],
        3,
        "is used by both rnic of 'm1'",
    ),
    ("the same name", [HEADER, row(1), row(2, name="m1")], 3, "name m1 is used by both"),
    ("the same unit", [HEADER, row(1), row(1, name="x")], 3, "unit 1 of rack 'rack1'"),
    (
        "the same address",
        [HEADER, row(1), row(2, address="10.2.1.1")],
        3,
        "address 10.2.1.1 is used by both gw of 'm1'",
    ),
    (
        "an address of another network",
        [HEADER, row(1, address="10.5.1.1")],
        2,
        "address 10.5.1.1 (gw of 'm1') is outside subnet 10.2.0.0/16 of network 'gw'",
    ),
    ("the subnet's own address", [HEADER, row(1, address="10.2.0.0")], 2, "is outside subnet"),
    ("no address", [HEADER, row(1, address="10.2.1")], 2, "'10.2.1' (gw of 'm1') is not an IPv4 address"),
    ("an IPv6 address", [HEADER, row(1, address="::1")], 2, "is not an IPv4 address"),
    ("no MAC", [HEADER, row(1, mac="02:05:00:00:01")], 2, "'02:05:00:00:01' (rnic of 'm1') is not a MAC"),
    ("a multicast MAC", [HEADER, row(1, mac="03:05:00:00:01:01")], 2, "is not the address of a single device"),
    ("a unit beyond the rack", [HEADER, row(33)], 2, "machine 'm33': invalid unit 33: use 1 to 32"),
    ("a unit that is not a number", [HEADER, row(1).replace(",1,", ",one,")], 2, "'unit' must be a number, not 'one'"),
    ("an unknown rack", [HEADER, row(1, rack="rak1")], 2, "unknown rack 'rak1': did you mean 'rack1'?"),
    ("a value too many", [HEADER, row(1) + ",9"], 2, "the line has 8 values and the header 7"),
    ("an empty required value", [HEADER, row(1, name=" ").replace("m1", " ")], 2, "'name' is missing: add it"),
    ("a name with a slash", [HEADER, row(1, name="../m")], 2, "machine: invalid name '../m': use 1 to 63 letters"),
    (
        "a template as the serial",
        [HEADER + ",serial", row(1) + ",{{ 7 * 7 }}"],
        2,
        "machine 'm1': invalid serial '{{ 7 * 7 }}': templates are not rendered here",
    ),
    ("a template as the agent", [HEADER + ",agent", row(1) + ",{{ x }}"], 2, "machine 'm1': invalid agent '{{ x }}'"),
    ("a line break in the serial", [HEADER + ",serial", row(1) + ',"a\nb"'], 2, "a value in quotes is not closed"),
    (
        "a long serial",
        [HEADER + ",serial", row(1) + "," + "x" * 10_000],
        2,
        "invalid serial '%s…': use 1 to 128 letters" % ("x" * 40),
    ),
    (
        "an unknown column",
        [HEADER.replace("bmc_mac", "bmc-mac"), row(1)],
        1,
        "unknown column 'bmc-mac': did you mean 'bmc_mac'?",
    ),
    ("a missing column", ["name,unit,bmc_mac,gw_mac", "m,1,a,b"], 1, "the header has no column 'rnic_mac': add it"),
    (
        "no header",
        [row(1), row(2)],
        1,
        "start the file with the names of its 7 columns. It needs name, unit, bmc_mac, gw_mac, rnic_mac",
    ),
    ("a column twice", [HEADER + ",unit", row(1) + ",1"], 1, "the column 'unit' is used twice"),
    ("an open quote", [HEADER, '"m1,rack1'], 2, "is not CSV"),
    ("a comment and an empty line before", ["# racks", "", HEADER, row(1), "", row(1, name="x")], 6, "unit 1 of rack"),
]


@pytest.mark.parametrize(("rows", "line", "message"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_error_in_machines_csv_has_its_line(pod, rows, line, message):
    path = pod.write(rows=rows)
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(pod.machines_csv), line)
    assert str(caught.value).startswith(f"{pod.machines_csv}, line {line}: ")
