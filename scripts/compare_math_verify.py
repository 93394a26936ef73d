#!/usr/bin/env python3
"""Compares spar's math equivalence with PyPI's math-verify on pairs that a seed makes.

    pip install 'math-verify[antlr4_13_2]'
    scripts/compare_math_verify.py --seed 1 --pairs 500

Every pair is a reference and an answer of one of the classes below, equal by construction, off by a little, or of another form. math-verify
gets `\\boxed{reference}` and `\\boxed{answer}`, as its users call it; the example `equal` of the crate spar-answers gets both as they
are. Printed are the agreement, every difference with the rule that judges it (docs/answers.md), those that no rule judges, and how many
verdicts per second each side gives. Ends with 1 where fewer than 98 % agree or a difference is not judged.

`--write FILE` keeps the pairs with math-verify's verdicts, as the golden test of the crate reads them.
"""

import argparse
import json
import logging
import random
import re
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def integer(r):
    n = r.randint(-200, 2000)
    return r.choice([(f"{n}", f"{n}"), (f"{n}", f"{n}.0"), (f"{n}", f" {n} "), (f"{n}", f"{n + r.choice([-1, 1, 10])}"),
                     (f"{n}", f"{n}.00"), (f"{n}", f"{n}.0000001")])


def thousands(r):
    n = r.randint(1000, 99_999_999)
    return r.choice([(f"{n}", f"{n:,}"), (f"{n:,}", f"{n}"), (f"{n:,}".replace(",", "{,}"), f"{n}"), (f"\\${n:,}", f"{n}"),
                     (f"{n:,}", f"{n + 1}"), (f"{n:,}", f"{n:,}.00"), (f"{n:,}", f"\\${n:,}")])


def decimal(r):
    places = r.randint(1, 5)
    n = Fraction(r.randint(1, 10 ** (places + 2)), 10 ** places)
    text = f"{float(n):.{places}f}"
    latex = f"\\frac{{{n.numerator}}}{{{n.denominator}}}" if n.denominator > 1 else f"{n.numerator}"
    off = f"{float(n) + 10 ** -r.randint(2, 9):.9f}"
    return r.choice([(text, latex), (latex, text), (text, text + "00"), (text, off), (latex, off), (text, f"{n}")])


def rounding(r):
    n = Fraction(r.randint(1, 50), r.choice([3, 6, 7, 9, 11, 13]))
    digits = r.randint(3, 9)
    latex = f"\\frac{{{n.numerator}}}{{{n.denominator}}}" if n.denominator > 1 else f"{n.numerator}"
    return latex, f"{float(n):.{digits}f}"


def fraction(r):
    a, b, k = r.randint(1, 60), r.randint(2, 60), r.randint(2, 9)
    sign = r.choice(["", "", "-"])
    return r.choice([
        (f"{sign}\\frac{{{a}}}{{{b}}}", f"{sign}\\dfrac{{{a * k}}}{{{b * k}}}"), (f"{sign}\\frac{{{a}}}{{{b}}}", f"{sign}{a}/{b}"),
        (f"{sign}{a}/{b}", f"\\frac{{{sign}{a}}}{{{b}}}"), (f"\\frac{{{a}}}{{{b}}}", f"\\frac{{{b}}}{{{a}}}"),
        (f"-\\frac{{{a}}}{{{b}}}", f"\\frac{{{a}}}{{-{b}}}"), (f"\\frac{{{a}}}{{{b}}}", f"{a}\\div {b}"),
        (f"\\frac{{{a}}}{{{b}}}", f"\\tfrac{{{a}}}{{{b + 1}}}"), (f"\\frac{a % 10}{b % 9 + 1}", f"\\frac{{{a % 10}}}{{{b % 9 + 1}}}")])


def mixed(r):
    w, b = r.randint(1, 20), r.randint(3, 12)
    a = r.randint(1, b - 1)
    return r.choice([(f"{w}\\frac{{{a}}}{{{b}}}", f"\\frac{{{w * b + a}}}{{{b}}}"), (f"\\frac{{{w * b + a}}}{{{b}}}", f"{w} \\frac{{{a}}}{{{b}}}"),
                     (f"{w}\\frac{{{a}}}{{{b}}}", f"\\frac{{{w * a}}}{{{b}}}"), (f"-{w}\\frac{{{a}}}{{{b}}}", f"-\\frac{{{w * b + a}}}{{{b}}}")])


def percent(r):
    n = r.randint(1, 300)
    return r.choice([(f"{n}\\%", f"{n}"), (f"{n}", f"{n}\\%"), (f"{n}\\%", f"{n / 100}"), (f"\\frac{{{n}}}{{100}}", f"{n}\\%"),
                     (f"{n}.5\\%", f"{n}.5"), (f"{n}\\%", f"{n + 1}\\%"), (f"{n}.25\\%", f"{(n + .25) / 100:.4f}"), (f"{n}\\%", f"{n} percent"),
                     (f"{n}\\%", f"{n}%")])


def root(r):
    a, b = r.randint(2, 9), r.choice([2, 3, 5, 6, 7])
    return r.choice([
        (f"\\sqrt{{{a * a * b}}}", f"{a}\\sqrt{{{b}}}"), (f"{a}\\sqrt{{{b}}}", f"{a}\\sqrt{{{b + 1}}}"),
        (f"\\frac{{{a}}}{{\\sqrt{{{b}}}}}", f"\\frac{{{a}\\sqrt{{{b}}}}}{{{b}}}"), (f"\\sqrt{{{a * a}}}", f"{a}"),
        (f"\\sqrt{{{b}}}", f"{b ** .5:.{r.randint(4, 9)}f}"), (f"\\sqrt[3]{{{a ** 3 * b}}}", f"{a}\\sqrt[3]{{{b}}}"),
        (f"({a}+\\sqrt{{{b}}})^2", f"{a * a + b}+{2 * a}\\sqrt{{{b}}}"), (f"\\frac{{1}}{{\\sqrt{{{b}}}-1}}", f"\\frac{{\\sqrt{{{b}}}+1}}{{{b - 1}}}"),
        (f"{a}\\sqrt{b}", f"{a}\\sqrt{{{b}}}"), (f"{a}^{{1/2}}", f"\\sqrt{{{a}}}"), (f"sqrt({b})", f"\\sqrt{{{b}}}"),
        (f"\\sqrt{{\\frac{{{a}}}{{{b}}}}}", f"\\frac{{\\sqrt{{{a * b}}}}}{{{b}}}")])


def power(r):
    a, n, m = r.randint(2, 9), r.randint(2, 8), r.randint(2, 6)
    return r.choice([(f"{a}^{{{n}}}", f"{a ** n}"), (f"{a ** n}", f"{a}^{n}"), (f"{a}^{n}\\cdot {a}^{m}", f"{a}^{{{n + m}}}"),
                     (f"{a}^{{-{n}}}", f"\\frac{{1}}{{{a ** n}}}"), (f"{a}.5 \\times 10^{{{n}}}", f"{a * 10 ** n + 5 * 10 ** (n - 1)}"),
                     (f"{a}^{{{n}}}", f"{a}^{{{n + 1}}}"), (f"{a}\\times 10^{{{40 + n}}}", f"{a}\\times 10^{{{40 + n}}}+1"), (f"{a}^{{{200 + n}}}", f"{a}^{{{200 + n}}}")])


def constant(r):
    a, b = r.randint(1, 12), r.randint(2, 9)
    return r.choice([(f"{a}\\pi", f"{a} \\pi"), (f"\\frac{{{a}\\pi}}{{{b}}}", f"\\frac{{{a}}}{{{b}}}\\pi"), (f"{a}\\pi", f"{a * 3.141592653589793:.{r.randint(2, 8)}f}"),
                     (f"{a}\\pi", f"{a + 1}\\pi"), (f"e^{{{a}}}", f"e^{a}"), (f"{a}e", f"{a} e"), (f"{a}\\pi + {b}", f"{b}+{a}\\pi"),
                     (f"\\frac{{\\pi}}{{{b}}}", f"\\pi/{b}"), (f"{a}\\pi", f"{a}π"), (f"e^{{{a}\\ln {b}}}", f"{b ** a}")])


def logarithm(r):
    a, n = r.randint(2, 7), r.randint(2, 6)
    return r.choice([(f"\\log_{{{a}}} {a ** n}", f"{n}"), (f"\\ln {a ** n}", f"{n}\\ln {a}"), (f"\\log_{a} {a + 1}", f"\\frac{{\\ln {a + 1}}}{{\\ln {a}}}"),
                     (f"\\ln({a}) + \\ln({n})", f"\\ln({a * n})"), (f"\\log 1000", "3"), (f"\\ln {a}", f"\\ln {a + 1}"), (f"\\log_{{{a}}}{{{a ** n}}}", f"{n + 1}")])


def trigonometry(r):
    t = r.choice("xyz")
    n = r.choice([3, 4, 6])
    exact = {3: r"\frac{\sqrt{3}}{2}", 4: r"\frac{\sqrt{2}}{2}", 6: r"\frac{1}{2}"}[n]
    return r.choice([(f"\\sin\\frac{{\\pi}}{{{n}}}", exact), (f"\\sin^2 {t} + \\cos^2 {t}", "1"), (f"\\sin(2{t})", f"2\\sin {t}\\cos {t}"),
                     (f"\\cos(2{t})", f"2\\cos^2 {t} - 1"), (f"\\tan {t}", f"\\frac{{\\sin {t}}}{{\\cos {t}}}"), (f"\\sin {t}", f"\\cos {t}"),
                     (f"\\cos(2{t})", f"1-\\sin^2 {t}"), ("\\arctan 1", "\\frac{\\pi}{4}"), (f"\\sin(\\pi - {t})", f"\\sin {t}"),
                     (f"\\tan\\frac{{\\pi}}{{4}}", "1")])


def counting(r):
    n = r.randint(3, 9)
    k = r.randint(1, n - 1)
    binomial = 1
    for i in range(k):
        binomial = binomial * (n - i) // (i + 1)
    factorial = 1
    for i in range(2, n + 1):
        factorial *= i
    return r.choice([(f"{n}!", f"{factorial}"), (f"\\binom{{{n}}}{{{k}}}", f"{binomial}"), (f"{binomial}", f"\\dbinom{{{n}}}{{{k}}}"),
                     (f"\\frac{{{n}!}}{{{k}!}}", f"{factorial}/{k}!"), (f"\\binom{{{n}}}{{{k}}}", f"\\binom{{{n}}}{{{n - k}}}"), (f"{n}!", f"{factorial + 1}")])


def polynomial(r):
    a, b = r.randint(1, 9), r.randint(1, 9)
    x = r.choice("xyzn")
    return r.choice([(f"({x}+{a})({x}-{b})", f"{x}^2+{a - b}{x}-{a * b}".replace("+-", "-")), (f"{x}^2+{2 * a}{x}+{a * a}", f"({x}+{a})^2"),
                     (f"{a}{x}+{b}", f"{b}+{a}{x}"), (f"{a}({x}+{b})", f"{a}{x}+{a * b}"), (f"{x}^2-{a * a}", f"({x}-{a})({x}+{a})"),
                     (f"{a}{x}^2+{b}", f"{a}{x}^2-{b}"), (f"{x}^3-{x}", f"{x}({x}-1)({x}+1)"), (f"({x}+1)^3", f"{x}^3+3{x}^2+3{x}+1"),
                     (f"{a}{x}", f"{a}{'a' if x != 'a' else 'b'}"), (f"\\frac{{{a}}}{{4}}{x}", f"{a / 4}{x}"), (f"{a}{x}^{{2}}", f"{a}\\cdot {x}^2")])


def quotient(r):
    a = r.randint(2, 9)
    x = r.choice("xyn")
    return r.choice([(f"\\frac{{{x}^2-{a * a}}}{{{x}-{a}}}", f"{x}+{a}"), (f"\\frac{{1}}{{{x}}}+\\frac{{1}}{{{x}+1}}", f"\\frac{{2{x}+1}}{{{x}({x}+1)}}"),
                     (f"\\frac{{{a}}}{{{x}}}", f"{a}{x}^{{-1}}"), (f"\\frac{{{x}}}{{{a}}}", f"\\frac{{1}}{{{a}}}{x}"), (f"\\frac{{{x}+1}}{{{x}-1}}", f"\\frac{{1+{x}}}{{1-{x}}}"),
                     (f"\\frac{{{x}(n+1)}}{{2}}".replace("nn", "n"), f"\\frac{{(n+1){x}}}{{2}}")])


def several(r):
    a, b = r.randint(2, 9), r.randint(2, 9)
    return r.choice([("a^2-b^2", "(a+b)(a-b)"), (f"{a}x+{b}y", f"{b}y+{a}x"), (f"{a}xy", f"{a}yx"), ("(x+y)^2", "x^2+2xy+y^2"), ("x_1+x_2", "x_2+x_1"),
                     (f"{a}x+{b}y", f"{b}x+{a}y" if a != b else "x"), (r"\frac{a+b}{c}", r"\frac{a}{c}+\frac{b}{c}"), ("xy+xz", "x(y+z)"), (r"\alpha+\beta", r"\beta + \alpha"),
                     (r"\sqrt{x^2+y^2}", r"\sqrt{y^2+x^2}"), (r"\sqrt{x+1}", r"\sqrt{x}+1"), (r"|x-1|", r"|1-x|"), ("x^{1/2}", r"\sqrt{x}")])


def assignment(r):
    a, x = r.randint(-30, 30), r.choice("xyzn")
    return r.choice([(f"{a}", f"{x}={a}"), (f"{x}={a}", f"{a}"), (f"{x}={a}", f"{x} = {a}"), (f"{x}={a}", f"{x}={a + 1}"), (f"{x}={a}", f"{'a' if x != 'a' else 'b'}={a}"),
                     (f"y={a}x+1", f"{a}x+1"), (f"{a}x+1", f"y={a}x+1"), (f"{a}", f"{x} = {a - 1}+1 = {a}"), (f"{x}={a}", f"{x}+1={a + 1}"), (f"f(x)={a}x", f"{a}x")])


def equation(r):
    a, b, k = r.randint(2, 9), r.randint(1, 9), r.randint(2, 5)
    return r.choice([(f"y={a}x+{b}", f"y-{a}x={b}"), (f"{a}x+{b}y=1", f"{k * a}x+{k * b}y={k}"), (f"x^2+y^2={a}", f"y^2={a}-x^2"), (f"y={a}x+{b}", f"y={a}x-{b}"),
                     ("(x+1)(x-1)=0", "x^2-1=0"), (f"xy={a}", f"y=\\frac{{{a}}}{{x}}"), (f"{a}x+{b}y=1", f"{b}x+{a}y=1" if a != b else "x=1")])


def inequality(r):
    a = r.randint(-9, 9)
    b = a + r.randint(1, 9)
    return r.choice([(f"x>{a}", f"{a}<x"), (f"x\\le {a}", f"x \\leq {a}"), (f"x>{a}", f"x\\ge {a}"), (f"x<{a}", f"x>{a}"), (f"{a}<x<{b}", f"({a},{b})"),
                     (f"x\\ge {a}", f"[{a},\\infty)"), (f"{a}<x\\le {b}", f"({a},{b}]"), (f"x<{a}", f"(-\\infty,{a})"), (f"{a}\\le x\\le {b}", f"{a} \\leq x \\leq {b}"),
                     (f"x\\neq {a}", f"x\\ne {a}"), (f"{a}<x<{b}", f"{a}<x\\le {b}"), (f"x>{a}", f"({a},{b})")])


def interval(r):
    a = r.randint(-9, 9)
    b = a + r.randint(1, 9)
    return r.choice([(f"({a},{b})", f"({a}, {b})"), (f"[{a},{b}]", f"[{a},{b}.0]"), (f"({a},{b})", f"[{a},{b}]"), (f"[{a},\\infty)", f"[{a}, \\infty)"),
                     (f"(-\\infty,{a})\\cup({b},\\infty)", f"({b},\\infty)\\cup(-\\infty,{a})"), (f"[{a},{b})", f"[{a},{b}]"),
                     (f"x\\in[{a},{b}]", f"[{a},{b}]"), (f"[{a},{b}]", f"x \\in [{a},{b}]"), (f"(-\\infty,{a})\\cup({a},\\infty)", f"\\mathbb{{R}}\\setminus\\{{{a}\\}}"),
                     (f"\\left({a},{b}\\right]", f"({a},{b}]"), (f"(-\\infty,{a}]", f"(-\\infty,{a})"), (f"(\\frac{{{a}}}{{2}},{b + 10})", f"({a / 2},{b + 10})"),
                     (f"[{a},{b}]\\cup[{b + 2},{b + 3}]", f"[{a},{b}]\\cup[{b + 2},{b + 4}]")])


def members(r):
    items = r.sample(range(-20, 40), r.randint(2, 4))
    text, mixed_up = ",".join(map(str, items)), ", ".join(map(str, r.sample(items, len(items))))
    return r.choice([(text, mixed_up), (f"\\{{{text}\\}}", f"\\{{{mixed_up}\\}}"), (text, f"\\{{{mixed_up}\\}}"), (text, ",".join(map(str, items[1:] + [99]))), (text, ",".join(map(str, items[1:])) or "1"),
                     (f"\\{{{text}\\}}", mixed_up), (" and ".join([", ".join(map(str, items[:-1])), str(items[-1])]), mixed_up),
                     (f"x={items[0]}\\text{{ or }}x={items[1]}", f"{items[1]},{items[0]}"), (f"{items[0]},{items[1]}", f"x={items[1]} or x={items[0]}"),
                     (f"\\frac{{{items[0]}}}{{3}},\\sqrt{{2}}", f"\\sqrt{{2}},\\frac{{{items[0]}}}{{3}}"), (text, f"{items[0]}")])


def point(r):
    items = [r.randint(-20, 20) for _ in range(r.randint(2, 4))]
    text = ",".join(map(str, items))
    other = items[:-1] + [items[-1] + 1]
    return r.choice([(f"({text})", f"({', '.join(map(str, items))})"), (f"({text})", f"({','.join(map(str, other))})"), (f"({text})", f"\\left({text}\\right)"),
                     (f"({text})", text), (f"(x,y)=({items[0]},{items[1]})", f"({items[0]},{items[1]})"), (f"(\\frac{{{items[0]}}}{{2}},{items[1]},0)", f"({items[0] / 2},{items[1]},0)"),
                     (f"({items[0]},{items[1]},5),(1,2,3)", f"(1,2,3),({items[0]},{items[1]},5)"), (f"({text},7)", f"({','.join(map(str, reversed(items)))},7)")])


def matrix(r):
    a = [r.randint(-9, 9) for _ in range(4)]
    body = f"{a[0]} & {a[1]} \\\\ {a[2]} & {a[3]}"
    other = f"{a[0]} & {a[1]} \\\\ {a[2]} & {a[3] + 1}"
    return r.choice([(f"\\begin{{pmatrix}}{body}\\end{{pmatrix}}", f"\\begin{{bmatrix}}{body}\\end{{bmatrix}}"), (f"\\begin{{pmatrix}}{body}\\end{{pmatrix}}", f"\\begin{{pmatrix}}{other}\\end{{pmatrix}}"),
                     (f"\\begin{{pmatrix}}{a[0]}\\\\{a[1]}\\end{{pmatrix}}", f"\\begin{{pmatrix}} {a[0]} \\\\ {a[1]} \\end{{pmatrix}}"),
                     (f"\\begin{{pmatrix}}{a[0]}\\\\{a[1]}\\end{{pmatrix}}", f"\\begin{{pmatrix}}{a[0]} & {a[1]}\\end{{pmatrix}}"),
                     (f"\\begin{{pmatrix}}\\frac{{1}}{{2}}\\\\{a[1]}\\end{{pmatrix}}", f"\\begin{{pmatrix}}0.5\\\\{a[1]}\\end{{pmatrix}}"),
                     (f"\\begin{{pmatrix}}{a[0]}\\\\{a[1]}\\end{{pmatrix}}", f"({a[0]},{a[1]})")])


def plus_minus(r):
    a, b = r.randint(1, 20), r.randint(2, 7)
    return r.choice([(f"\\pm {a}", f"{a},-{a}"), (f"{a}\\pm\\sqrt{{{b}}}", f"{a}-\\sqrt{{{b}}},{a}+\\sqrt{{{b}}}"), (f"x=\\pm {a}", f"{a},-{a}"), (f"\\pm {a}", f"{a}"),
                     (f"\\frac{{1\\pm\\sqrt{{{b}}}}}{{2}}", f"\\frac{{1+\\sqrt{{{b}}}}}{{2}},\\frac{{1-\\sqrt{{{b}}}}}{{2}}"), (f"\\pm {a}", f"\\pm {a + 1}")])


def unit(r):
    n = r.randint(1, 500)
    word = r.choice(["cm", "km", "hours", "minutes", "feet", "miles", "kg", "square units", "days", "meters"])
    return r.choice([(f"{n}", f"{n}\\text{{ {word}}}"), (f"{n}\\text{{ {word}}}", f"{n}"), (f"{n}", f"{n} {word.split()[0]}"), (f"{n}\\text{{ cm}}^2", f"{n}"), (f"{n}\\ \\mathrm{{m/s}}", f"{n}"),
                     (f"{n}\\text{{ {word}}}", f"{n + 1}\\text{{ {word}}}"), (f"\\${n}", f"{n}"), (f"\\${n}.00", f"\\${n}"), (f"{n}^\\circ", f"{n}"), (f"{n}", f"{n}^{{\\circ}}"),
                     (f"{n}\\text{{ {word}}}", f"{n} {word.split()[0]}"), (f"{n}\\mbox{{ {word}}}", f"{n}")])


def words(r):
    word = r.choice(["even", "odd", "Alice", "east", "No solution", "Monday", "true", "Yes", "parallelogram", "neither"])
    other = r.choice(["Bob", "west", "never", "no"])
    return r.choice([(f"\\text{{{word}}}", word.lower()), (f"\\text{{{word}}}", f"\\text{{{word.upper()}}}"), (f"\\text{{{word}}}", f"\\text{{{other}}}"), (f"\\text{{{word}}}", f"\\textbf{{{word}}}"),
                     (f"\\mathrm{{{word.split()[0]}}}", f"\\text{{{word.split()[0]}}}"), (f"\\text{{{word}}}", "5")])


def letter(r):
    x, y = r.choice("ABCD"), r.choice("ABCD")
    return r.choice([(x, f"({x})"), (f"\\text{{{x}}}", x), (f"\\text{{({x})}}", x), (x, y), (f"\\textbf{{({x})}}", f"\\text{{{x}}}"), (x, x.lower())])


def whole_part(r):
    a, b = r.randint(1, 40), r.choice([3, 4, 7])
    return r.choice([(f"\\lfloor \\frac{{{a}}}{{{b}}}\\rfloor", f"{a // b}"), (f"\\lceil \\frac{{{a}}}{{{b}}}\\rceil", f"{-(-a // b)}"), (f"|-{a}|", f"{a}"), (f"\\left|{a}-{b}\\right|", f"{abs(a - b)}"),
                     (f"\\gcd({a * b},{b})", f"{b}"), (f"\\max({a},{b})", f"{max(a, b)}")])


def complex_number(r):
    a, b = r.randint(1, 9), r.randint(1, 9)
    return r.choice([(f"{a}+{b}i", f"{b}i+{a}"), (f"{a}+{b}i", f"{a}-{b}i"), (f"{a}-{b}i", f"{a} - {b}i"), (f"{a}i+{b}i", f"{a + b}i"), (f"{a}+{b}i", f"{a + 1}+{b}i")])


def odd(r):
    """Where the two differ by rule, or an answer is broken."""
    n = r.randint(2, 9)
    return r.choice([(f"\\sin 30^\\circ", r"\frac{1}{2}"), (f"\\sqrt[3]{{-{n ** 3}}}", f"-{n}"), (f"{n}pi", f"{n}\\pi"), (f"(1+i)^2", "2i"), (f"\\frac{{{n}}}{{0}}", f"\\frac{{{n}}}{{0}}"),
                     (f"{n + 5}>x>{n}", f"{n}<x<{n + 5}"), (f"{n}", f"{n}\\text{{ or {n + 1}}}"), (f"{n}", f"{n - 1}={n}"), (f"{n}", "{" * 5 + f"{n}"), (f"{n}", ""), (f"{n}", f"{n}" + ")" * 4),
                     (f"{n}", "\\frac{" * 40), (f"{n}000", f"{n}e3"), (f"{n}", f"{n},{n + 1},{n + 2},{n + 3}"), (f"e^{{i\\pi}}", "-1"), (f"{n}", f"\\boxed{{{n}}}"), (f"{n}", f"{n}."),
                     (f"\\{{x|x>{n}\\}}", f"({n},\\infty)"), (f"{n} dollars", f"{n}"), (f"{n}ab", f"{n}ba"), (f"{n}t", f"{n}"), (f"{n}i", f"{n} i"), (f"\\frac{{{n}}}{{5}}+\\frac{{2}}{{5}}i", f"\\frac{{{n}+2i}}{{5}}"), (f"{n} cm^2", f"{n}")])


def response(r):
    reference, answer = r.choice([integer, fraction, root, polynomial, members, point])(r)
    answer = answer.strip()
    return reference, r.choice([f"We compute. So the answer is $\\boxed{{{answer}}}$.", f"First, $2+2=4$.\n\nTherefore \\boxed{{{answer}}}", f"The final answer is $\\boxed{{{answer}}}$. I hope it is correct.",
                                f"The final answer is ${answer}$."])


CLASSES = [
    (integer, 3), (thousands, 3), (decimal, 4), (rounding, 3), (fraction, 5), (mixed, 3), (percent, 4), (root, 5), (power, 3), (constant, 4), (logarithm, 3), (trigonometry, 3), (counting, 3), (polynomial, 5),
    (quotient, 3), (several, 4), (assignment, 4), (equation, 3), (inequality, 4), (interval, 4), (members, 5), (point, 4), (matrix, 3), (plus_minus, 3), (unit, 5), (words, 3), (letter, 2), (whole_part, 2),
    (complex_number, 2), (odd, 1), (response, 5),
]

# What judges a difference: a pattern over "reference | answer", who is right, and why. docs/answers.md says the same at length.
JUDGED = [
    (r"\\(sin|cos|tan) ?\d+\^", True, "degrees in a trigonometric function are degrees"),
    (r"\\sqrt\[[35]\]\{-", True, "an odd root of a negative number is real"),
    (r"\dab|\dt\b", True, "letters behind a number are variables, unless a space and the end set off a unit"),
    (r"\dt\b", False, "letters behind a number are variables, unless a space and the end set off a unit"),
    (r"\dpi\b", True, "`pi` as it is typed is π"),
    (r"i\)\^2|e\^\{i|\d ?i", True, "i is the imaginary unit"),
    (r"\\frac\{\d+\}\{0\}", False, "what divides by zero is no answer"),
    (r">x>", True, "a chain that is turned round says the same"),
    (r"\\text\{ or \d", False, "another answer in words is another answer"),
    (r"\d=\d", False, "a chain of numbers that are not equal is no answer"),
    (r"\d\.$|\d\.\s", True, "a full stop at the end says nothing"),
    (r"\de\d", True, "1e3 is 1000"),
    (r"\\\{x ?[|:]", True, "a set may be told by a condition"),
    (r"^\\(d|t)?frac.* \| -?\d+\.\d{6,}$", True, "rounding is of decimal numbers"),
    (r"\\text\{true\}", True, "true is a word"),
    (r"dollars|cm\^2", True, "units as they are typed are units too"),
    (r"^\(-?\d+,-?\d+\] \| .*x|^\[-?\d+,-?\d+\) \| .*x", True, "an interval may be told as a condition"),
    (r"\\frac\\|\\frac\d\\", True, "arguments of \\frac need no braces"),
    (r"\\max|\\gcd", True, "math-verify does not read this function everywhere"),
    (r"^-?\d+ \| .*\d(?:,\d)+", False, "several answers are not one"),
]


def make_pairs(seed, count):
    r = random.Random(seed)
    makers, weights = zip(*CLASSES)
    pairs = []
    while len(pairs) < count:
        maker = r.choices(makers, weights)[0]
        reference, answer = maker(r)
        pairs.append({"class": maker.__name__, "reference": reference, "answer": answer})
    return pairs


def theirs(pairs):
    logging.disable(logging.CRITICAL)
    from math_verify import parse, verify

    start = time.perf_counter()
    verdicts = []
    for pair in pairs:
        answer = pair["answer"] if pair["class"] == "response" else f"\\boxed{{{pair['answer']}}}"
        verdicts.append(bool(verify(parse(f"\\boxed{{{pair['reference']}}}"), parse(answer))))
    return verdicts, time.perf_counter() - start


def ours(pairs, command):
    lines = "".join(
        json.dumps({"reference": pair["reference"], "answer": pair["answer"], "is_response": pair["class"] == "response"}) + "\n" for pair in pairs
    )
    found = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=ROOT)
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    return lines[:-1], lines[-1]["seconds"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--pairs", type=int, default=500)
    arguments.add_argument("--write", type=Path, help="keep the pairs with math-verify's verdicts here")
    arguments.add_argument("--equal", help="the example's program, where it is built already")
    given = arguments.parse_args()
    command = [given.equal] if given.equal else ["cargo", "run", "-q", "-p", "spar-answers", "--example", "equal"]
    pairs = make_pairs(given.seed, given.pairs)
    found, seconds = ours(pairs, command)
    verdicts, their_seconds = theirs(pairs)

    differences = [(pair, own, verdict) for pair, own, verdict in zip(pairs, found, verdicts) if own["equal"] != verdict]
    unjudged = 0
    judged = {}
    for pair, own, verdict in differences:
        text = f"{pair['reference']} | {pair['answer']}"
        reason = next((why for pattern, equal, why in JUDGED if equal == own["equal"] and re.search(pattern, text)), None)
        unjudged += reason is None
        judged[id(pair)] = reason
        print(f"{pair['class']}: {text!r}\n    spar {own['equal']} ({own['detail']}), math-verify {verdict}: {reason or 'NOT JUDGED'}")
    agreement = 1 - len(differences) / len(pairs)
    equal = sum(verdicts)
    print(f"classes: {dict(Counter(pair['class'] for pair in pairs))}")
    print(f"{len(pairs)} pairs of seed {given.seed}, {equal} of them equal for math-verify: {agreement:.1%} agree, {len(differences)} differ, {unjudged} of these not judged")
    print(f"verdicts per second: spar {len(pairs) / seconds:,.0f}, math-verify {len(pairs) / their_seconds:,.0f}: {their_seconds / seconds:.0f} times as many")
    if given.write:
        with given.write.open("w") as file:
            for pair, verdict in zip(pairs, verdicts):
                differs = {"differs": judged[id(pair)]} if id(pair) in judged else {}
                file.write(json.dumps({**pair, "math_verify": verdict, **differs}, ensure_ascii=False) + "\n")
    sys.exit(agreement < 0.98 or unjudged > 0)


if __name__ == "__main__":
    main()
