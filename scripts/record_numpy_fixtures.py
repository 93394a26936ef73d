#!/usr/bin/env python3
"""Records what numpy draws, as a fixture of the crate `spar-python`.

    pip install numpy
    python3 scripts/record_numpy_fixtures.py python/tests/fixtures/numpy_random.json [SEEDS]

Written: draws of `numpy.random.default_rng(seed)` and of `numpy.random.RandomState(seed)`, each a call, what it was
given and what came. With SEEDS, that many more seeds than those of the fixture are drawn from.
"""
import json
import random
import sys

import numpy

GENERATOR_SEEDS = [0, 1, 42, 1234567, 2**31 - 1, 2**32 - 1, 2**32, 2**63 + 5, 10**30, 2**140 + 3]
STATE_SEEDS = [0, 1, 42, 1234567, 2**31 - 1, 2**32 - 1]


def calls(order, is_state):
    """A list of calls that a seed of its own chooses."""
    made = []
    for _ in range(40):
        kind = order.choice(["integers", "integers", "random", "uniform", "choice", "weighted", "sample", "shuffle",
                             "permutation"] + (["normal"] if is_state else []))
        if kind == "integers":
            low = order.choice([0, 0, 0, -5, 3, -2**40])
            span = order.choice([1, 2, 3, 6, 7, 10, 100, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 3 * 2**30])
            made.append((kind, [low, low + span]))
        elif kind == "random":
            made.append((kind, []))
        elif kind in ("uniform", "normal"):
            made.append((kind, [order.choice([0.0, -1.5, 3.25]), order.choice([4.0, 5.5, 1e6])]))
        elif kind == "weighted":
            made.append((kind, [order.choice([[0.5, 0.5], [0.1, 0.2, 0.7], [0.25, 0.0, 0.75], [1.0]])]))
        elif kind == "sample":
            # Of a large pool, of which many are taken, the end is shuffled.
            made.append((kind, order.choice([[5, 3], [10, 10], [1, 1], [30, 2], [7, 0], [12000, 6], [300, 4]] + ([[10001, 201]] if order.random() < 0.05 else []))))
        else:
            made.append((kind, [order.choice([1, 2, 3, 10, 17])]))
    return made


def drawn(rng, kind, given):
    if kind == "integers":
        return int((rng.integers if hasattr(rng, "integers") else rng.randint)(*given))
    if kind == "random":
        return float(rng.random())
    if kind in ("uniform", "normal"):
        return float(getattr(rng, kind)(*given))
    if kind == "choice":
        return int(rng.choice(given[0]))
    if kind == "weighted":
        return int(rng.choice(len(given[0]), p=given[0]))
    if kind == "sample":
        return [int(it) for it in rng.choice(given[0], given[1], replace=False)]
    if kind == "shuffle":
        items = list(range(given[0]))
        rng.shuffle(items)
        return items
    return [int(it) for it in rng.permutation(given[0])]


def case(seed, is_state):
    rng = numpy.random.RandomState(seed) if is_state else numpy.random.default_rng(seed)
    draws = [[kind, given, drawn(rng, kind, given)] for kind, given in calls(random.Random(seed), is_state)]
    return {"seed": seed if is_state else str(seed), "draws": draws}


more = int(sys.argv[2]) if len(sys.argv) > 2 else 0
fresh = random.Random("more seeds")
generator = GENERATOR_SEEDS + [fresh.getrandbits(fresh.choice([8, 31, 60, 100])) for _ in range(more)]
state = STATE_SEEDS + [fresh.getrandbits(32) for _ in range(more)]
with open(sys.argv[1], "w") as out:
    lists = {"generator": [case(seed, False) for seed in generator], "random_state": [case(seed, True) for seed in state]}
    json.dump(lists, out, separators=(",", ":"))
    out.write("\n")
print(f"numpy {numpy.__version__}: {len(generator)} and {len(state)} seeds")
