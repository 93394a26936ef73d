#!/usr/bin/env python3
"""Records logarithms of mpmath 1.3.0, as a fixture of the crate `spar-bfcl`.

    python3.12 scripts/record_bfcl_fixtures.py bfcl/tests/fixtures
"""
import json
import random
import sys
from pathlib import Path

import mpmath

CASES = [
    ("100", "10", "10"), ("8", "2", "15"), ("2.718281828459045", "2.718281828459045", "5"), ("1", "10", "10"), ("10", "1", "10"),
    ("0", "10", "5"), ("10", "0", "5"), ("0", "0", "5"), ("-1", "10", "5"), ("10", "-2", "5"), ("-3", "-2", "10"), ("1", "-2", "5"),
    ("1e300", "2", "50"), ("1e-300", "2", "50"), ("1.0000001", "10", "20"), ("0.9999999", "10", "20"), ("'8'", "'2'", "10"),
    ("'1/3'", "'0.1'", "20"), ("'abc'", "2", "5"), ("'john'", "2", "5"), ("None", "2", "5"), ("[1]", "2", "5"), ("5", "2", "'7'"),
    ("5", "2", "'x'"), ("5", "2", "3.9"), ("5", "2", "None"), ("5", "2", "0"), ("5", "2", "-3"), ("5", "2", "1"), ("True", "2", "5"),
    ("float('inf')", "2", "5"), ("2", "float('inf')", "5"), ("float('nan')", "2", "5"), ("123456789", "7", "200"), ("2", "10", "1000"),
    ("3", "1.0000000000000002", "15"), ("10**40", "10", "30"), ("'inf'", "3", "4"), ("0.5", "0.5", "10"), ("0.1", "10", "15"), ("81", "3", "2"),
]


def recorded(value, base, precision):
    try:
        mpmath.mp.dps = eval(precision)
        shown = repr(mpmath.log(eval(value)) / mpmath.log(eval(base)))
    except Exception as error:
        shown = "raised " + str(error)
    return {"value": value, "base": base, "precision": precision, "repr": shown}


def main():
    draw = random.Random(5)
    cases = list(CASES)
    for _ in range(60):
        value, base = (repr(draw.choice([draw.uniform(0.01, 50), draw.randint(2, 10**6), -draw.random()])) for _ in "ab")
        cases.append((value, base, str(draw.randint(1, 60))))
    rows = [json.dumps(recorded(*case)) for case in cases]
    Path(sys.argv[1], "logarithms.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


main()
