#!/usr/bin/env python3
"""Records what CPython gives, as fixtures of the crate `spar-python`.

    python3.12 scripts/record_python_fixtures.py python/tests/fixtures

`random.json`: draws of seeded generators. `expressions.json`: expressions with the representation of their value, or
the words of what they raise.
"""
import json
import random
import sys
from pathlib import Path

SEEDS = [0, 1, 200191, 1053520, 141053, -7, 2**40 + 5, 10**60, "", "spar", "a longer seed é"]

EXPRESSIONS = [
    # literals
    "1", "-1", "0x1F", "0b101", "0o17", "1_000", "1.", ".5", "1e3", "1E-7", "1j", "2.5j", "'a'", '"b"', "'''c'''",
    "'a' 'b'", "r'\\n'", "'\\x41\\u00e9\\n\\t\\\\'", "'\\101'", "'\\N{BULLET}'", "True", "None", "...", "[]", "[1, 2,]", "()", "(1,)",
    "(1)", "{}", "{'a': 1, 'b': [1, 2]}", "{1, 1, 1}", "{1: 'x', 1.0: 'y', True: 'z'}", "'é\\u200b'", "b'ab'",
    # operators
    "1 + 2 * 3", "(1 + 2) * 3", "2 ** 3 ** 2", "-2 ** 2", "2 ** -1", "7 // 2", "-7 // 2", "7 % -3", "-7.5 % 2", "1 / 3",
    "10 / 5", "1 / 0", "1.0 / 0", "1 // 0", "1 % 0", "1.5 // 0", "1.5 % 0", "0 ** -1", "'a' + 'b'", "'a' + 1", "1 + 'a'",
    "'ab' * 3", "[1] * 2", "[1] + [2]", "[1] + (2,)", "'a' * 1.5", "not 1", "not ''", "1 and 0", "0 or 'x'", "1 < 2 < 3",
    "1 < 'a'", "1 == 1.0", "'a' in 'abc'", "1 in 'abc'", "1 in [1]", "1 not in [1]", "'a' in 5", "None is None",
    "1 if 0 else 2", "~5", "-True", "+'a'", "-'a'", "~1.5", "1e308 * 10", "0.1 + 0.2", "1j * 1j", "(1+2j) / 3",
    "(-8) ** 0.5", "10 ** 20", "2 ** 0.5", "1e200 ** 2", "[1, 2] < [1, 3]", "{1} == {1.0}", "3 | 4", "6 & 3", "5 ^ 1", "1 << 4",
    "255 >> 2", "1.5 | 1", "1 != 2", "1 <> 2",
    # parts
    "[1, 2, 3][0]", "[1, 2, 3][-1]", "[1][5]", "{'a': 1}['a']", "{'a': 1}['b']", "'abc'[1]", "'abc'[1:]", "[1, 2, 3][:2]",
    "[1]['a']", "5[0]", "None[0]", "(1, 2)[True]", "{}[[]]", "'abc'[::-1]", "[1, 2, 3, 4][::2]",
    # builtins
    "len('abc')", "len(5)", "str(1.0)", "str()", "int('5')", "int('x')", "int(2.9)", "int()", "float('1e3')", "float('x')",
    "float([])", "bool([])", "abs(-3)", "abs('a')", "round(2.5)", "round(2.675, 2)", "round('a')", "sum([1, 2.5])", "sum('ab')",
    "min([3, 1, 2])", "max(3, 1, 2)", "max([])", "sorted([3, 1, 2])", "sorted(['b', 1])", "list('ab')", "list(5)", "tuple([1])",
    "dict(a=1)", "dict([('a', 1)])", "set([])", "repr('a')", "type(1)", "len()", "len(1, 2)", "len(x=1)", "sum()", "abs()", "pow(2, 3)",
    "min()", "sorted()", "isinstance(1, int)", "range(3)", "list(range(3))", "divmod(7, 2)", "chr(65)", "ord('A')", "sum([[1], [2]], [])",
    # methods
    "'aB'.upper()", "'aB'.lower()", "' a '.strip()", "'a,b'.split(',')", "'a b'.split()", "','.join(['a', 'b'])", "'abc'.replace('b', 'x')",
    "'abc'.startswith('a')", "{'a': 1}.get('b')", "{'a': 1}.get('a', 2)", "list({'a': 1}.keys())", "list({'a': 1}.values())",
    "list({'a': 1}.items())", "'abc'.nope()", "(5).upper()", "[1].index(1)", "'a'.format()", "'{}'.format(3)", "'abc'.find('c')",
    "'abc'.title()", "[1, 2].count(1)", "'abc'.isdigit()",
    # names
    "x", "foo(1)", "foo.bar()", "true", "null", "NaN",
    # what is no expression
    "", "   ", "f(", "f(1", "[1, 2", "{'a': 1", "f)", ")", "'abc", "\"abc", "f(a b)", "f(1 2)", "f(a=1, a=2)", "f(a=1, 2)", "f(as=True)",
    "f(1=2)", "f('a'=1)", "1 +", "* 2", "f(,)", "f(a=)", "a = 1", "a == 1 =", "[1, 2)", "(1, 2]", "{'a' 1}", "{'a': }", "012", "1__0", "1a",
    "0x", "$", "?", "a ? b : c", "f(a: 1)", "'\\x4'", "lambda: 1", "[x for x in [1]]", "f'{1}'", "if x: 1", "print 'a'", "x; y", "1\n2",
    "import os", "f(**{'a': 1})", "f(*[1])", "'a\nb'", "\t1", " 1", "f(a, )", "f()()", "f.1", "1.real", "f(a=b=1)", "None = 1", "def", "class",
    "f(None=1)", "f(True=1)", "f(in=1)", "a := 1", "(a := 1)", "‘a’", "f(a=“x”)", "1,2", "a,", "\\", "'a' \\\n'b'", "#x", "1 #x",
]


def draws(seed):
    r = random.Random(seed)
    items = list(range(30))
    case = {"seed": {"int": str(abs(seed))} if isinstance(seed, int) else {"str": seed}}
    case["words"] = [r.getrandbits(32) for _ in range(4)]
    case["random"] = r.random()
    case["bits40"] = r.getrandbits(40)
    case["bits100"] = str(r.getrandbits(100))
    case["int"] = r.randint(10000, 99999)
    case["long"] = r.randint(100000000000, 999999999999)
    case["uniform"] = r.uniform(-10, 40)
    case["choice"] = r.choice(items)
    case["choices"] = r.choices(items, k=5)
    case["weighted"] = r.choices(items, weights=[float(i) for i in items], k=5)
    shuffled = list(items)
    r.shuffle(shuffled)
    case["shuffled"] = shuffled
    case["sample"] = r.sample(items, 10)
    case["sparse"] = r.sample(range(1000), 7)
    case["gauss"] = [r.gauss(1.0, 2.0), r.gauss(1.0, 2.0)]
    case["exponential"] = r.expovariate(0.5)
    case["triangular"] = r.triangular(0.0, 1.0)
    case["big_range"] = str(r.randrange(-5, 10**30))
    case["bytes"] = list(r.randbytes(7))
    case["normal"] = r.normalvariate(1.0, 2.0)
    case["log_normal"] = r.lognormvariate(0.0, 0.5)
    case["gamma"] = [r.gammavariate(shape, 2.0) for shape in (0.5, 1.0, 2.5)]
    case["beta"] = r.betavariate(2.0, 0.7)
    case["pareto"] = r.paretovariate(3.0)
    case["weibull"] = r.weibullvariate(1.5, 2.0)
    return case


def evaluated(text):
    import warnings

    warnings.simplefilter("ignore")
    try:
        value = eval(text, {})
        return {"text": text, "type": type(value).__name__, "repr": repr(value)}
    except Exception as error:
        return {"text": text, "raised": type(error).__name__, "words": str(error)}


def write(path, rows):
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def main():
    folder = Path(sys.argv[1])
    write(folder / "random.json", [draws(seed) for seed in SEEDS])
    write(folder / "expressions.json", [evaluated(text) for text in EXPRESSIONS])


main()
