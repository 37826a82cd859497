# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid allocations, partitions, users and unknown keys of pod.yml: each error has file, line, cause and remedy."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

ALLOCATIONS = "allocations:\n  - {id: a, cluster: cl, size: 2}\n"

TAILS = [
    (
        "a misspelt key",
        "partitons: []\n",
        9,
        "unknown key 'partitons': did you mean 'partitions'?",
    ),
    ("a key twice", "name: again\n", 9, "the key 'name' is used twice in one mapping"),
    (
        "an allocation in an unknown cluster",
        "allocations:\n  - {id: a, cluster: c1, size: 1}\n",
        10,
        "unknown cluster 'c1': known are cl",
    ),
    (
        "an allocation that is too large",
        "allocations:\n  - {id: a, cluster: cl, size: 5}\n",
        10,
        "needs 5 machines, but cluster 'cl' has 4",
    ),
    (
        "allocations that are too large together",
        ALLOCATIONS + "  - {id: b, cluster: cl, size: 3}\n",
        11,
        "needs 3 machines, but cluster 'cl' has 4 and other allocations leave 2",
    ),
    (
        "an empty allocation",
        "allocations:\n  - {id: a, cluster: cl, size: 0}\n",
        10,
        "allocation 'a' has no machines: set at least one",
    ),
    (
        "size and machines",
        "allocations:\n  - {id: a, cluster: cl, size: 1, machines: [m1.1]}\n",
        10,
        "'size' and 'machines' exclude each other: remove one of them",
    ),
    (
        "neither size nor machines",
        "allocations:\n  - {id: a, cluster: cl}\n",
        10,
        "'size' or 'machines' is missing: add one of them",
    ),
    (
        "machines that are not consecutive",
        "allocations:\n  - id: a\n    cluster: cl\n    machines:\n    - m1.1\n    - m1.3\n",
        14,
        "'m1.3' does not follow 'm1.1' in cluster 'cl'",
    ),
    (
        "a machine in two allocations",
        "allocations:\n  - {id: a, cluster: cl, machines: [m1.1]}\n  - {id: b, cluster: cl, machines: [m1.1]}\n",
        11,
        "machine m1.1 is used by both allocation 'a' (line 10) and allocation 'b'",
    ),
    (
        "the same id",
        ALLOCATIONS + "  - {id: a, cluster: cl, size: 1}\n",
        11,
        "allocation 'a' is used twice, in line 10 and line 11: use different names",
    ),
    (
        "a partition of the same id",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 1}\n  - {id: p, allocation: a, size: 2}\n",
        13,
        "partition 'p' is used twice, in line 12 and line 13: use different names",
    ),
    (
        "a misspelt required key",
        ALLOCATIONS + "partitions:\n  - {id: p, allocatoin: a}\n",
        12,
        "partition 'p': unknown key 'allocatoin': did you mean 'allocation'? (missing: size)",
    ),
    (
        "an unknown role for hosts",
        "deploy:\n  controllers: [vipu_sever]\n",
        10,
        "unknown value of controllers 'vipu_sever': did you mean 'vipu_server'?",
    ),
    ("a group without roles", "deploy:\n  switches: [common]\n", 10, "unknown key 'switches'"),
    (
        "a size that is not a power of two",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 6}\n",
        12,
        "the size must be a power of two (1, 2, 4, 8, …), not 6",
    ),
    (
        "a negative size",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: -4}\n",
        12,
        "the size must be a power of two",
    ),
    (
        "a partition larger than its allocation",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 16}\n",
        12,
        "needs 16 IPUs, but allocation 'a' has 8",
    ),
    (
        "partitions that are too large together",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 8}\n  - {id: q, allocation: a, size: 1}\n",
        13,
        "other partitions leave 0",
    ),
    (
        "a partition in an unknown allocation",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: aa, size: 1}\n",
        12,
        "unknown allocation 'aa': did you mean 'a'?",
    ),
    (
        "an unknown option of a partition",
        ALLOCATIONS + "partitions:\n  - id: p\n    allocation: a\n    size: 1\n    reconfigurabel: true\n",
        15,
        "partition 'p': unknown key 'reconfigurabel': did you mean 'reconfigurable'?",
    ),
    (
        "a wrong type",
        ALLOCATIONS + "partitions:\n  - id: p\n    allocation: a\n    size: many\n",
        14,
        "partition 'p': 'size' must be a number",
    ),
    (
        "an unknown routing",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 1, routing: x}\n",
        12,
        "unknown value of routing",
    ),
    (
        "GCDs that do not divide",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 4, num_gcds: 3}\n",
        12,
        "4 IPUs cannot be divided evenly by num_gcds 3",
    ),
    (
        "another number of IPUs",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 4, ipus: [{topology_id: 0}]}\n",
        12,
        "lists 1 IPUs but has size 4",
    ),
    (
        "a user of an unknown allocation",
        ALLOCATIONS + "users:\n  - {id: u, allocations: [b]}\n",
        12,
        "unknown allocation 'b'",
    ),
    ("text instead of a list", "allocations: a\n", 9, "'allocations' must be a list"),
    ("an item that is not a mapping", "allocations: [a]\n", 9, "'allocations' must be a list of mappings"),
    ("invalid YAML", "allocations: [\n", 9, "is not YAML: this '[' is not closed: add ']'"),
    ("an unknown tag", "users: !vault x\n", 9, "tag '!vault'. Remove the tag"),
]


@pytest.mark.parametrize(("tail", "line", "message"), [case[1:] for case in TAILS], ids=[case[0] for case in TAILS])
def test_error_in_pod_yml_has_its_line(pod, tail, line, message):
    path = pod.write(tail=tail)
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(path), line)
