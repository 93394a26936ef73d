#!/usr/bin/env python3
"""Records puzzles of reasoning-gym, with the scores of many answers, as JSON lines for `spar conformance reasoning-gym`.

    python3 -m venv venv && venv/bin/pip install reasoning-gym==0.1.25
    venv/bin/python scripts/record_reasoning_gym.py --items 100 --seed 1 --out traces.jsonl
    venv/bin/python scripts/record_reasoning_gym.py --items 2 --compact --out puzzles/tests/fixtures/reasoning_gym.jsonl

Each dataset is recorded with its defaults and with the other options below. An exception of the package is recorded as
such: `raises` in place of a puzzle, no `score` beside an answer. `--compact` hashes long texts and leaves out facts and long
answers, so that a fixture stays small. `--bench` prints, in place of a recording, how many puzzles per second each
dataset makes.
"""

import argparse
import contextlib
import decimal
import io
import json
import signal
import sys
import time

import reasoning_gym
from reasoning_gym.factory import DATASETS

# Options beside the defaults.
VARIANTS = {
    "gcd": [{"min_numbers": 3, "max_numbers": 5, "min_value": 10, "max_value": 100000}],
    "lcm": [{"min_numbers": 3, "max_numbers": 12, "max_value": 1000000}],
    "count_bits": [{"min_n": 5, "max_n": 2**60}, {"max_n": 10}],
    "chain_sum": [{"min_terms": 1, "max_terms": 10, "max_digits": 18, "allow_negation": True}],
    "products": [{"max_terms": 8, "max_digits": 18, "allow_negation": True}],
    "prime_factorization": [{"max_value": 10**9}],
    "leg_counting": [{"min_animals": 1, "max_animals": 37, "max_instances": 64}],
    "dice": [{"num_dice": 1, "max_dice_size": 2}, {"num_dice": 40, "max_dice_size": 30}],
    "fraction_simplification": [{"min_value": 100, "max_value": 120, "styles": ["latex_frac"]}],
    "color_cube_rotation": [{"min_rotations": 10, "max_rotations": 50}],
    "modulo_grid": [{"size_x": 7, "size_y": 9, "max_divisor": 3, "max_target": 5, "max_holes": 30}],
    "number_sequence": [{"max_complexity": 4, "max_terms": 10}, {"max_complexity": 1}],
    "rectangle_count": [{"max_rectangles": 8, "width": 20, "height": 22}],
    "basic_arithmetic": [
        {"max_terms": 10, "whitespace": "random", "format_style": "natural"},
        {"allow_parentheses": False, "max_digits": 3},
        {"operators": ["+", "-", "*"], "allow_negation": False, "whitespace": "no_space"},
    ],
    "bitwise_arithmetic": [{"difficulty": 1}, {"difficulty": 6}],
    "calendar_arithmetic": [{"year": 2024, "offset_upper_bound": 1000, "leap_year_range": 5000}],
    "decimal_arithmetic": [
        {"min_num_decimal_places": 0, "max_num_decimal_places": 8, "max_terms": 12, "precision": 20},
        {"min_num_decimal_places": 1, "precision": 5, "max_terms": 4},
    ],
    "decimal_chain_sum": [{"min_decimal_places": 0, "max_decimal_places": 9, "max_digits": 8, "allow_negation": True}],
    "number_format": [{"max_num_candidates": 9, "min_n": 1, "max_n": 10**12, "max_delta": 1e6}],
    "power_function": [{"min_base": -2.0, "max_base": 2.0, "max_exponent": 60}],
    "time_intervals": [{"max_time_difference_seconds": 100000, "max_date_difference_days": 5000}],
    "ab": [{"length": 25}],
    "base_conversion": [{"min_base": 9, "max_base": 36, "max_value": 10**15}],
    "binary_alternation": [{"min_n": 1, "max_n": 9, "p_solvable": 0.5}],
    "binary_matrix": [{"max_n": 5, "p_zero": 0.05}],
    "count_primes": [{"max_n": 100}],
    "cryptarithm": [{"max_words": 6, "allow_leading_zero": True}],
    "game_of_life": [{"grid_size_x": 6, "grid_size_y": 9, "filled_cells": 25, "simulation_steps": 3}],
    "graph_color": [{"num_colors": 4, "min_num_vertices": 5, "max_num_vertices": 12, "edge_probability": 0.4}],
    "jugs": [{"num_jugs": 4, "difficulty": 4}, {"difficulty": 6}],
    "manipulate_matrix": [{"max_rows": 4, "max_transforms": 20, "w_crop": 0.1, "w_map": 2.5}],
    "number_filtering": [{"min_decimals": 1, "max_decimals": 9, "min_value": -1.0, "max_value": 1.0}, {"max_decimals": 0}],
    "number_sorting": [{"max_decimals": 6, "max_value": 10000.0}],
    "palindrome_generation": [{"max_length": 30}],
    "palindrome_partitioning": [{"max_string_len": 9, "min_substring_palindrome_len": 3}],
    "rotate_matrix": [{"max_n": 5, "max_rotations": 40}],
    "rotten_oranges": [{"min_n": 3, "max_n": 6, "p_rotten": 0.4}],
    "spiral_matrix": [{"max_n": 15}],
    "string_insertion": [{"max_string_length": 100}],
    "string_manipulation": [{"max_string_length": 40, "max_num_rules": 20}],
    "string_splitting": [{"max_initial_machines": 50, "max_iterations": 20}],
    "string_synthesis": [{"max_initial_blocks": 40, "max_iterations": 15}],
    "complex_arithmetic": [{"min_real": -3, "max_real": 3, "min_imag": 0, "operations_weights": [0.1, 0.1, 0.4, 0.4]}],
    "simple_equations": [{"max_terms": 8, "operators": ["+", "-"], "operators_weights": [0.5, 0.5]}, {"max_value": 5}],
    "course_schedule": [{"max_num_courses": 25, "max_num_prerequisites": 4, "p_solvable": 0.8}],
    "family_relationships": [{"min_family_size": 3, "max_family_size": 20}],
    "largest_island": [{"max_rows": 15, "max_num_islands": 10, "max_island_size": 20}],
    "path_star": [{"degree": 6, "node_range": 100, "reversed": True}],
    "quantum_lock": [{"difficulty": 25}],
    "shortest_path": [{"max_rows": 12, "p_blocked": 0.2}],
    "coin_flip": [{"max_trials": 60, "allow_exact": False}, {"min_trials": 20, "max_trials": 40}],
    "simple_geometry": [{"max_sides": 12, "min_angle": 100}],
    "aiw": [{"max_entities": 50}],
    "circuit_logic": [{"min_terms": 1, "max_terms": 9, "min_inputs": 1, "max_inputs": 6, "allow_reuse": False}],
    "propositional_logic": [{"max_vars": 6, "max_statements": 7, "max_complexity": 5}],
    "self_reference": [],
    "syllogism": [{"invalid_ratio": 0.6, "inversion_probability": 0.7}, {"allow_all": False, "allow_some": False}],
    "kakurasu": [{"min_rows": 3, "max_cols": 6, "p_ones": 0.5}],
    "mahjong_puzzle": [{"min_num_rounds": 1, "max_num_rounds": 5}],
    "maze": [{"min_dist": 2, "max_dist": 30, "max_grid_size": 20}],
    "mini_sudoku": [{"min_empty": 0, "max_empty": 4}],
    "n_queens": [{"n": 5, "max_remove": 5}, {"n": 6, "min_remove": 3, "max_remove": 6}],
    "sudoku": [{"min_empty": 5, "max_empty": 60}],
    "survo": [{"min_board_size": 5, "max_board_size": 8, "max_empty": 12, "max_num": 500}],
    "tower_of_hanoi": [{"min_disks": 1, "max_disks": 8, "max_pegs": 6}],
    "tsumego": [{"min_board_size": 5, "max_board_size": 19, "max_stones": 30}],
}

# Answers that are scored for a dataset beside those made of the right one.
ANSWERS = {
    "fraction_simplification": [
        "\\frac{1}{2}", "$\\dfrac { 3 } { 7 }$", " \\DFRAC{2}{ 4}x", "1/2/3", "1/0", "-1/2", "a/b", "\\frac{1}{-2}", "١/٢",
    ],
    "prime_factorization": ["2", "2 × 3", "3×2× ", "×", "2 x 3", "2 × a", "1 × 2 × 3 × 5", "-2 × -3"],
    "rectangle_count": ["1", "2", "3", " 5\n", "7.0", "1_0", "9" * 5000],
    "dice": ["1/2", "1/2\n"],
    "bitwise_arithmetic": ["0x", "0X1F", "-0x3", "0b11", "0o17", "012", "1_000", "0x_1f"],
    "calendar_arithmetic": ["Monday", "monday", "FRIDAY", " Sunday ", "Yes", "NO", "7", "8", "-1", "30"],
    "time_intervals": ["1 days", "12 days, 01:02", "3 days, 01:02:03", "01:02", "1:2:3", "01:02:03.456", "-3 days", "1:2:3.4.5", "a:b"],
    "binary_matrix": ["[[0, 1], [1, 0]]", "[[0]]", "[1", "((1,2),(3,))"],
    "spiral_matrix": ["[1, 2, 3]", "(0,)", "1 2 3"],
    "string_insertion": ["['A', 'B']", "'ABCDEA'", "[1]"],
    "cryptarithm": ["A=1,B=2", "A=1,A=2", "A=x", "A=1=2", "=1"],
    "graph_color": ['{"0": 1}', '{"a": 1}', "null", '{"0": [1], "1": 2}'],
    "jugs": ['["fill A"]', '["fill A", "pour A->B", "empty A"]', '["pour A"]', '["fill Z"]', '["jump"]', '"fill"', '[""]'],
    "number_sorting": ["[1, 2]", "['a', 'b']", "['1', '2', '3']"],
    "complex_arithmetic": ["i", "-i", "3i", "-3i", "3 + i", "3 - 2i", "(3+2i)", "((1))", "1e2+3i", "3+i2", "2i+3", "1+2j", "+i", "--i", "3++2i", "3+2", "1.5-.5i"],
    "shortest_path": ["up", "right right", "down left", "infeasible"],
    "quantum_lock": ["A", "A → B → C", "a b c", "B B B B", "A A A A A A A A"],
    "propositional_logic": ["P", "(P ∨ ¬P)", "(P ∧ Q)", "¬P", "P → Q", "P ∨ Q ∧ ¬P ↔ Q", "X", "(P", "P ∨", "((P ∨ Q))", "(P) ∨ (Q)", "not P", "¬¬P"],
    "tsumego": ["A1", "c3", "the move is C4", "J10", "5C", "Z99"],
    "n_queens": ["Q _", "[['Q']]", "(('_', 'Q'),)"],
    "tower_of_hanoi": ["Move disk 1 from Peg 1 to Peg 2", "Move disk 1 from Peg 1 to Peg 9", "move disk 1 from peg 1 to peg 2"],
    "syllogism": ["Yes", "No"],
    "circuit_logic": [" 1", "0\n", "10"],
    "coin_flip": ["1/2", "3/8", ".5", "5e-1", "1 / 2", "1/0", "-1/2", "0.4999", "1_0/2_0", "1e400", "1/3", "0.1234567891"],
    "family_relationships": ["mother", " Father ", "AUNT", "son"],
    "palindrome_generation": ["aba", "abc", "a"],
    "decimal_chain_sum": ["1,000", " 12.5 ", "1_0"],
    "power_function": ["1.23e+4", "0.00", "1.00", "Infinity"],
}

GENERAL = ["", " ", "\n", "0", "1", "-1", "5", "12", "1.5", "1e3", "abc", "1/2", "[1, 2]", "1, 2", "1 2", "True", "yes", "No", "None",
           "nan", "inf", "{}", '{"a": 1}', "[]", "[[1]]", "x" * 300, "é", "'a'"]


class Slow(Exception):
    """The package took too long for one puzzle."""


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def plain(value):
    """JSON of what the package holds in its facts."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def perturbed(gold, other):
    """Answers that resemble the right one: in other letters, cut, longer, with parts changed."""
    yield from (" " + gold + "\n", gold.upper(), gold.lower(), gold.title(), "The answer is " + gold, gold + ".", gold[:-1], gold[1:])
    yield from (gold[::-1], gold.replace(" ", ""), gold.replace(",", ", "), gold.replace("\n", " "), gold.replace("'", '"'), gold + gold)
    yield "\n".join(reversed(gold.split("\n")))
    yield " ".join(reversed(gold.split(" ")))
    yield ",".join(reversed(gold.split(",")))
    yield "\n".join(gold.split("\n")[:-1])
    yield " ".join(gold.split(" ")[:-1])
    yield ", ".join(gold.split(", ")[:-1])
    for place, letter in enumerate(gold):
        if letter.isdigit():
            yield gold[:place] + str((int(letter) + 1) % 10) + gold[place + 1:]
            yield gold[:place] + str((int(letter) + 7) % 10) + gold[place + 1:]
            break
    for place in range(len(gold) - 1, -1, -1):
        if gold[place].isalnum():
            replaced = "1" if gold[place].isdigit() else "x"
            yield gold[:place] + replaced + gold[place + 1:]
            break
    if gold.isdigit() and len(gold) < 4000:
        yield from (str(int(gold) + 1), str(int(gold) + 3), "+" + gold, "0" + gold, gold + ".0", gold + ".00")
    if other is not None:
        yield other


def bounded(seconds, call):
    """The call's result, or `Slow` where it takes longer."""
    def stop(*_):
        raise Slow()

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def record(name, config, seed, index, compact, out):
    # Some datasets change decimal's context for the whole process.
    decimal.setcontext(decimal.Context())
    dataset = reasoning_gym.create_dataset(name, seed=seed, size=500, **config)
    line = {"dataset": name, "seed": seed, "index": index}
    if config:
        line["config"] = plain(config)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            item = bounded(60, lambda: dataset[index])
    except Slow:
        print(f"{name}: seed {seed} index {index} took over a minute and is left out", file=sys.stderr)
        return
    except Exception as error:
        line["raises"] = f"{type(error).__name__}: {error}"
        out.write(json.dumps(line, ensure_ascii=False) + "\n")
        return
    text = lambda value: {"fnv": fnv(value)} if compact and len(value) > 120 else value
    gold = item["answer"]
    line["question"] = text(item["question"])
    line["answer"] = None if gold is None else text(gold)
    if not compact:
        line["metadata"] = plain(item["metadata"])
    answers = [None]
    if isinstance(gold, str):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                other = bounded(20, lambda: dataset[index + 1])["answer"]
        except Exception:
            other = None
        answers += list(perturbed(gold, other if isinstance(other, str) else None))
    answers += ANSWERS.get(name, []) + GENERAL
    extra = EXTRA.get(name)
    if extra:
        answers += list(extra(item))
    if compact:
        answers = [answer for answer in answers if answer is None or len(answer) <= 60][: 14 if index == 0 else 6]
    scores = []
    seen = set()
    for answer in ["gold"] + answers:
        entry = {"is_gold": True} if not scores else {"answer": answer}
        given = gold if not scores else answer
        if scores and given in seen:
            continue
        if scores:
            seen.add(given)
        fresh = json.loads(json.dumps(item)) if name in COPIED else item
        try:
            entry["score"] = float(bounded(20, lambda: dataset.score_answer(given, fresh)))
        except Slow:
            continue
        except Exception:
            pass
        scores.append(entry)
    line["scores"] = scores
    out.write(json.dumps(line, ensure_ascii=False) + "\n")


def coloring(item):
    colors = {str(vertex): color for vertex, color in item["metadata"]["possible_answer"].items()}
    yield json.dumps(colors)
    yield json.dumps({vertex: 1 for vertex in colors})
    yield json.dumps({**colors, "0": 99})
    yield json.dumps(dict(list(colors.items())[1:]))
    yield json.dumps({vertex: float(color) for vertex, color in colors.items()})


def as_python(item):
    rows = [[int(cell) for cell in row.split()] for row in item["answer"].split("\n")]
    yield str(rows)
    yield str(rows[0])


# More answers, made of a puzzle.
EXTRA = {
    "propositional_logic": lambda item: [item["metadata"]["example_answer"], *item["metadata"]["premises"]],
    "n_queens": lambda item: [str([row.split() for row in item["answer"].split("\n")]), *item["metadata"]["valid_answers"][:3]],
    "tower_of_hanoi": lambda item: [item["answer"] + "\n" + item["answer"].split("\n")[-1], item["answer"].replace("\n", "\n\n  "), item["answer"].replace("Move", "7. Move")],
    "sudoku": lambda item: [item["answer"].replace("1", "2"), item["answer"] + "\n\nDone"],
    "mini_sudoku": lambda item: [item["answer"].replace("1", "2"), "x\n" + item["answer"]],
    "graph_color": coloring,
    "binary_matrix": as_python,
    "spiral_matrix": as_python,
    "string_insertion": lambda item: [str(list(item["answer"]))],
    "shortest_path": lambda item: [item["answer"] + " left right", item["answer"] + " up down"],
    "quantum_lock": lambda item: [item["answer"] + " → A", item["answer"].lower()],
    "game_of_life": lambda item: [item["answer"].replace("0", "0.0"), item["answer"].replace("1", "true"), "[[0], [1, 1]]", '{"0": 1}', "[1, 2]", '["0101"]'],
}

# Datasets whose scorers change the puzzle.
COPIED = set()


def bench(names, seconds):
    for name in names:
        decimal.setcontext(decimal.Context())
        dataset = reasoning_gym.create_dataset(name, seed=1, size=10**9)
        made, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            dataset[made]
            made += 1
        print(json.dumps({"dataset": name, "per_second": made / (time.perf_counter() - start)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", help="names; all that are recorded by default")
    parser.add_argument("--items", type=int, default=20, help="puzzles of each dataset and choice of options")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compact", action="store_true", help="a small fixture")
    parser.add_argument("--bench", type=float, help="measure each dataset for so many seconds")
    parser.add_argument("--list", action="store_true", help="print the names of all datasets of the package")
    parser.add_argument("--out", default="-")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(sorted(DATASETS)))
        return
    names = arguments.datasets or list(VARIANTS)
    if arguments.bench:
        bench(names, arguments.bench)
        return
    with open(arguments.out, "w") if arguments.out != "-" else sys.stdout as out:
        for name in names:
            for config in [{}] + VARIANTS[name]:
                for index in range(arguments.items):
                    record(name, config, arguments.seed, index, arguments.compact, out)


if __name__ == "__main__":
    main()
