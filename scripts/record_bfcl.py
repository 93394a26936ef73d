#!/usr/bin/env python3
"""Records the reference of BFCL v4 on tasks and calls of its own drawing, in the form that `spar conformance bfcl` replays.

    python3.12 scripts/record_bfcl.py REFERENCE OUT [--seed 0] [--fuzz 400] [--calls 60] [--entries 200] [--single 400] [--own FILE]

REFERENCE is the folder `berkeley-function-call-leaderboard` of a checkout of ShishirPatil/gorilla; mpmath 1.3.0 has to be
installed. OUT gets `fuzz.jsonl` (random calls on one class), `multi_turn_*.jsonl` (gold calls, calls with spoiled
arguments, verdicts) and `single_*.jsonl` (verdicts on spoiled answers). Every trace and every verdict is run in a process of
its own. All is done twice, with two hash seeds: results that differ are marked as not determined.

    TZ=UTC python3.12 scripts/record_bfcl.py ~/gorilla/berkeley-function-call-leaderboard traces --seed 3
    cp .../multi_turn_eval/func_source_code/long_context.py traces
    spar conformance bfcl --data traces --traces traces

The recordings that ship, of entries of our own, are made by

    python3.12 scripts/record_bfcl.py REFERENCE bfcl/tests/fixtures/recorded --seed 11 --own bfcl/tests/fixtures/own_entries.jsonl --fuzz 8 --calls 14
"""
import argparse
import copy
import datetime
import importlib
import inspect
import json
import os
import random
import re
import resource
import subprocess
import sys
import types
from pathlib import Path

CLASSES = ["GorillaFileSystem", "MathAPI", "MessageAPI", "TwitterAPI", "TicketAPI", "TradingBot", "TravelAPI", "VehicleControlAPI"]
SPLITS = ["base", "miss_func", "miss_param", "long_context"]
SINGLE = ["simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
          "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"]
# A trace that takes more is left out: some calls of the reference never end (`pwd` where directories are their own parents).
CHILD_BYTES, CHILD_SECONDS = 1 << 30, 10
TODAY = datetime.datetime(2026, 3, 23)

WORDS = ["a", "Zz", "the", "report", ".txt", "", " ", "hello world", "café 😀 \"q\" 's'", "line1\nline2", "b\na\nC", "x\ty\r\nz\x0bq\u2028r",
         "cd (x) pwd(y)", "it's (fine)", "a/b", "../x", "..", ".", "/", "./", "x/", "//", "d?", "bad:name", "\\", "100%", "{}", "{0}", "İI", "ß", "\x00\x7f\x85",
         "2024-10-10", "2025-02-29", "2020-1-5", "2024-11-15 ", "1990-05-06", "12/2028", "9999-12-31", "0001-01-01", "2024-13-01", "٢٠٢٤-01-01", "7", "-3", "1_0", "1e3", " 5 ",
         "nan", "inf", "None", "True", "on", "off", "auto", "START", "STOP", "engage", "release", "economy", "business", "first", "USD", "EUR", "JPY", "GBP", "RMB",
         "SFO", "LAX", "JFK", "RMS", "CIA", "PVG", "US12345", "Rivermist", "83214", "94016", "74532", "Open", "open", "Closed", "Resolved", "buy", "Sell", "AAPL", "NVDA",
         "celsius", "fahrenheit", "km", "m", "cm", "driver", "passenger", "rear_left", "fuel", "doors", "engine", "climate", "parkingBrake", "l", "w", "c",
         "new1.txt", "newdir", "copy.txt", "sub", "deep", "Alice", "Bob", "USR001", "USR002", "USR005", "john", "john123", "Apple", "Technology"]
NUMBERS = ["0", "1", "2", "3", "5", "7", "10", "60", "100", "101", "999", "12345", "-1", "-2", "-7", "0.5", "0.1", "0.2", "0.3", "1.0", "-2.5", "2.5", "3.14159", "22.5", "1e-07",
           "1e16", "1e22", "1e308", "5e-324", "-0.0", "123456789.123", "1/3", "2**0.5", "10**20", "-(10**25)", "2**63", "2**64", "True", "False"]
HOSTILE = ["None", "[]", "{}", "()", "''", "[None]", "[1, 'a']", "['x']", "['#a', '#b']", "[[1]]", "{'a': 1}", "{'title': 'n', 'status': None}", "{'title': 'n', 'priority': 9}",
           "{'a': {'b': [1, 2.0, None, True]}}", "{1: 2}", "(1,)", "(1, 'b')", "{1, }", "float('inf')", "float('-inf')", "float('nan')", "1+2j", "...", "'a' * 300",
           "10**400", "-(10**400)", "[1, 2, 3]", "[0.1, 0.2, 0.3]", "[1, 2.5, -4]", "[True, 2]", "['a', 'b', 'a']", "[1e308, 1e308]", "[10**400, 1.5]", "[[1], [2]]", "[None, 1]",
           "['AAPL', 'NVDA']", "['driver', 'rear_left']", "['driver', 'trunk']", "len('abc')", "str(5)", "[1, 2][0]", "{'a': 'b'}['a']", "1 if 2 > 1 else 0", "not 1",
           "x", "5 / 0", "[][0]", "{}['k']", "int('q')", "'a' + 1", "-'a'", "abs(-3)", "max([1, 5])", "sorted(['b', 'a'])", "list('ab')", "'A,B'.split(',')", "'ab'.upper()", "round(2.675, 2)"]


def stub_settings(reference):
    """Makes the checkers importable without the clients of the models."""
    sys.path.insert(0, str(reference))
    settings = types.ModuleType("bfcl_eval.constants.model_config")
    settings.MODEL_CONFIG_MAPPING = {"m": types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules["bfcl_eval.constants.model_config"] = settings


def isolated(work):
    """The value of a function that runs in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (CHILD_BYTES, CHILD_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CHILD_SECONDS, CHILD_SECONDS))
        code = 1
        try:
            with os.fdopen(write, "w") as pipe:
                json.dump(work(), pipe)
            code = 0
        except MemoryError:
            pass
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        return None
    return json.loads(text)


# --- states ---

def encoded(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -2**63 <= value < 2**64 else {"@repr": repr(value)}
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"@repr": repr(value)}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, tuple):
        return {"@tuple": [encoded(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        try:
            return {"@set": [encoded(item) for item in sorted(value)]}
        except TypeError:
            return {"@set": [encoded(item) for item in value]}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else f"@{type(key).__name__}:{key!r}": encoded(item) for key, item in value.items()}
    if value is Ellipsis:
        return {"@ellipsis": True}
    kind = type(value).__name__
    if kind == "File":
        return {"type": "file", "name": encoded(value.name), "content": encoded(value.content)}
    if kind == "Directory":
        return {"type": "directory", "name": encoded(value.name), "contents": encoded(value.contents)}
    return {"@repr": repr(value)}


def state_of(instances):
    return {name: {key: encoded(value) for key, value in vars(one).items() if not key.startswith("_")} for name, one in instances.items()}


# --- calls ---

class Drawer:
    """Draws arguments: what suits a parameter, what is in the state, and what suits nothing."""

    def __init__(self, draw, scenario):
        self.draw, self.texts, self.numbers = draw, [], []
        self.harvest(scenario)

    def harvest(self, value):
        if isinstance(value, dict):
            for key, item in value.items():
                self.harvest(key)
                self.harvest(item)
        elif isinstance(value, list):
            for item in value:
                self.harvest(item)
        elif isinstance(value, str) and len(value) < 200:
            self.texts.append(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.numbers.append(value)

    def text(self):
        return self.draw.choice(self.texts if self.texts and self.draw.random() < 0.6 else WORDS)

    def number(self):
        if self.numbers and self.draw.random() < 0.3:
            return repr(self.draw.choice(self.numbers))
        if self.draw.random() < 0.2:
            return repr(self.draw.choice([self.draw.randint(-50, 10**self.draw.randint(1, 12)), round(self.draw.uniform(-10, 200), self.draw.randint(0, 17)), self.draw.uniform(0, 1)]))
        return self.draw.choice(NUMBERS)

    def fitting(self, kind, name):
        draw = self.draw
        if "token" in name and draw.random() < 0.7 and getattr(self, "token", None):
            return repr(self.token)
        if name == "mode" and draw.random() < 0.5:
            return repr(draw.choice(["l", "w", "c", "on", "off", "auto", "engage", "release", "x"]))
        if name == "expiration_date" or "date" in name and kind != "dict" and draw.random() < 0.6:
            return repr(draw.choice([word for word in WORDS if re.match(r"^[\d٢]", word)] + [f"{draw.randint(1970, 2026)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"]))
        if name == "door":
            return repr(draw.sample(["driver", "passenger", "rear_left", "rear_right"], draw.randint(1, 4)))
        if name == "stocks":
            return repr(draw.choices(["AAPL", "GOOG", "TSLA", "NVDA", "ZETA", "QQ"], k=draw.randint(0, 4)))
        if name in ("numbers",):
            return "[" + ", ".join(self.number() for _ in range(draw.randint(0, 6))) + "]"
        if name in ("travel_from", "travel_to") and draw.random() < 0.8:
            return repr(draw.choice(["RMS", "SBK", "MPC", "SVP", "SHD", "CDG", "LHR", "SSV", "OKD", "WLB", "PEK", "HND", "HKG", "CIA", "CRH", "ATV", "PHV", "GFD", "SFO", "LAX", "JFK", "ORD", "BOS", "PVG", "XXX"]))
        if name in ("base_currency", "target_currency"):
            return repr(draw.choice(["USD", "RMB", "EUR", "JPY", "GBP", "CAD", "AUD", "INR", "RUB", "BRL", "MXN", "QQQ"]))
        if name in ("unit_in", "unit_out"):
            return repr(draw.choice(["km", "m", "cm", "mm", "um", "nm", "in", "ft", "yd", "miles", "kg", "lb", "celsius", "fahrenheit", "zz"]))
        if name in ("cityA", "cityB"):
            return repr(draw.choice(["83214", "74532", "56108", "62947", "71354", "83462", "47329", "52013", "69238", "51479", "94016", "94704", "08540", "0"]))
        if name == "precision":
            return repr(draw.choice([1, 2, 5, 10, 15, 28, 50, 100, 0, -1]))
        if name == "path":
            return repr(draw.choice([".", "/", "..", "", self.text(), "/" + self.text(), self.text() + "/" + self.text()]))
        if kind in ("integer", "float", "number"):
            return self.number()
        if kind == "boolean":
            return draw.choice(["True", "False"])
        if kind in ("array", "tuple"):
            return repr([self.text() for _ in range(draw.randint(0, 4))])
        if kind == "dict":
            keys = ["title", "description", "status", "priority"] + (["id"] if draw.random() < 0.2 else [])
            return "{" + ", ".join(f"'{key}': {draw.choice([repr(self.text()), self.number(), 'None'])}" for key in draw.sample(keys, draw.randint(0, len(keys)))) + "}"
        return repr(self.text())

    def argument(self, kind, name, wild):
        if self.draw.random() < wild:
            return self.draw.choice([self.draw.choice(HOSTILE), repr(self.text()), self.number(), self.draw.choice(HOSTILE)])
        return self.fitting(kind, name)


def parameters_of(documents):
    """name -> [(parameter, type, whether required)] of a class."""
    found = {}
    for function in documents:
        required = function["parameters"].get("required", [])
        found[function["name"]] = [(name, kind["type"], name in required) for name, kind in function["parameters"]["properties"].items()]
    return found


def drawn_call(drawer, methods, wild):
    draw = drawer.draw
    name = draw.choice(sorted(methods))
    given = [(parameter, drawer.argument(kind, parameter, wild)) for parameter, kind, required in methods[name] if required or draw.random() < 0.6]
    shape = draw.random()
    positional = 0
    if shape < wild:
        how = draw.choice(["drop", "extra", "rename", "positional", "more", "unknown", "double", "shuffle", "private", "blank", "nest", "after", "dotted", "star", "space"])
        if how == "drop" and given:
            given.pop(draw.randrange(len(given)))
        elif how == "extra":
            given.append((draw.choice(["verbose", "x", "path", "self"]), drawer.argument("string", "x", wild)))
        elif how == "rename" and given:
            at = draw.randrange(len(given))
            given[at] = (given[at][0] + "_x", given[at][1])
        elif how == "positional":
            positional = draw.randint(0, len(given))
        elif how == "more":
            return f"{name}({', '.join(['1'] * (len(methods[name]) + draw.randint(1, 2)))})"
        elif how == "unknown":
            name = draw.choice([name + "_v2", "nothing", "os.remove", "kill", "exit", "run", "print", name.upper()])
        elif how == "double" and given:
            given.append(given[0])
        elif how == "shuffle":
            draw.shuffle(given)
        elif how == "private":
            name = "_" + name
        elif how == "blank":
            return f" {name} ( {', '.join(f'{key} = {value}' for key, value in given)} ) "
        elif how == "nest" and given:
            at = draw.randrange(len(given))
            given[at] = (given[at][0], drawn_call(drawer, methods, 0))
        elif how == "after":
            call = f"{name}({', '.join(f'{key}={value}' for key, value in given)})"
            return call + draw.choice(["['result']", "[0]", ".x", ".keys()", " + 1", " == 1", " and 1", ", 1", ")", "(", ";", " x", "['error']", " or 2"])
        elif how == "dotted":
            name = draw.choice(["x.", "a.b.", "self."]) + name
        elif how == "star":
            return f"{name}({draw.choice(['*[1]', '**{}', '*5', '**5', '*(), **{chr(97): 1}', 'a=1, 2', '1 2', '=', ','])})"
    elif shape < wild + 0.15:
        positional = draw.randint(0, len(given))
    texts = [value for _, value in given[:positional]] + [f"{key}={value}" for key, value in given[positional:]]
    return f"{name}({', '.join(texts)})"


def fuzz_trace(execute, name, methods, scenario, is_long, seed, count):
    draw = random.Random(seed)
    drawer = Drawer(draw, scenario)
    # Three tempers: calls that mostly suit, some that do not, and few that do.
    wild = draw.choice([0.02, 0.15, 0.45])
    calls = []
    for _ in range(count):
        call = drawn_call(drawer, methods, wild)
        result, instances = execute([call], {name: scenario}, [name], "fuzz", is_long)
        calls.append({"call": call, "result": result[0]})
        one = next(iter(instances.values()))
        drawer.token = getattr(one, "access_token", None)
        if name in ("TravelAPI", "TwitterAPI", "TicketAPI", "GorillaFileSystem") and draw.random() < 0.2:
            drawer.texts = drawer.texts[-200:]
            drawer.harvest(re.findall(r"[\w.]{3,20}", result[0])[:20])
    return {"calls": calls, "state_final": state_of(instances)[name]}


# --- entries ---

def split_call(call):
    """Name and keyword arguments of a gold call, as written; None where it is otherwise."""
    import ast

    tree = ast.parse(call, mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return None
    texts = [(None, ast.unparse(argument)) for argument in tree.args]
    return tree.func.id, texts + [(word.arg, ast.unparse(word.value)) for word in tree.keywords]


def spoiled(drawer, call):
    """A gold call with something else in it, and what was done."""
    draw = drawer.draw
    parts = split_call(call)
    if parts is None or draw.random() < 0.25:
        return "keep", call
    name, given = parts
    kind = draw.choice(["rename_arg", "drop_arg", "wrong_value", "wrong_type", "repeat", "positional", "unknown_func", "extra_arg", "hostile"])
    at = draw.randrange(len(given)) if given else 0
    if kind == "rename_arg" and given and given[at][0]:
        given[at] = (given[at][0] + "_x", given[at][1])
    elif kind == "drop_arg" and given:
        given.pop(at)
    elif kind == "wrong_value" and given:
        given[at] = (given[at][0], draw.choice([repr(drawer.text()), drawer.number()]))
    elif kind in ("wrong_type", "hostile") and given:
        given[at] = (given[at][0], draw.choice(HOSTILE))
    elif kind == "positional":
        given = [(None, value) for _, value in given]
    elif kind == "unknown_func":
        name += "_v2"
    elif kind == "extra_arg":
        given.append(("verbose", draw.choice(HOSTILE)))
    return kind, f"{name}({', '.join(value if key is None else f'{key}={value}' for key, value in given)})"


def verdict_of(checker, entry, gold, answer):
    told = checker(answer, gold, entry, entry["id"].rsplit("_", 1)[0], "m") if len(answer) == len(gold) else {"valid": False}
    kept = {key: told[key] for key in ("valid", "error_type", "error_message") if key in told}
    details = told.get("details", {})
    if "differences" in details:
        kept["differing_attributes"] = sorted(details["differences"])
    if "missing_items" in details:
        kept["missing_count"] = len(details["missing_items"])
    return kept


def entry_trace(execute, checker, entry, gold, seed):
    is_long = "long_context" in entry["id"]
    arguments = entry["initial_config"], entry["involved_classes"], entry["id"], is_long

    def played(turns):
        states, results = [], []
        for calls in turns:
            result, instances = execute(calls, *arguments)
            results.append(result)
            states.append(state_of(instances))
        return [results, states]

    draw = random.Random(seed)
    drawer = Drawer(draw, entry["initial_config"])
    drawn = []
    for calls in gold:
        turn = [spoiled(drawer, call) for call in calls]
        for at in reversed(range(len(turn))):
            if turn[at][0] == "repeat":
                turn.insert(at, turn[at])
        drawn.append(turn)
    perturbed = [[call for _, call in turn] for turn in drawn]
    initial = isolated(lambda: state_of(execute([], *arguments)[1]))
    results, states = isolated(lambda: played(gold))
    perturbed_results, perturbed_states = isolated(lambda: played(perturbed))
    one_step = lambda turns: [[calls] if calls else [] for calls in turns]
    minus_last = copy.deepcopy(gold)
    next((calls for calls in reversed(minus_last) if calls), [None]).pop()
    added_at = draw.randrange(len(gold))
    added = draw.choice([call for calls in gold for call in calls] + ["pwd()", "nothing()", "1 + 1"])
    plus = one_step(gold)
    plus[added_at].insert(0, [added])
    answers = {
        "gold": one_step(gold), "empty": [[] for _ in gold], "gold_minus_last": one_step(minus_last), "gold_plus_read": plus,
        "gold_one_call_per_step": [[[call] for call in calls] for calls in gold],
        "gold_reversed_within_turn": one_step([calls[::-1] for calls in gold]), "perturbed": one_step(perturbed),
    }
    verdicts = {kind: isolated(lambda: verdict_of(checker, entry, gold, answer)) for kind, answer in answers.items()}
    verdicts["gold_plus_read"].update(added_call=added, added_at_turn=added_at)
    return {
        "id": entry["id"], "involved_classes": entry["involved_classes"], "initial_config": entry["initial_config"], "initial_state": initial,
        "turns": [{"gold_calls": calls, "results": result, "state_after": state} for calls, result, state in zip(gold, results, states)],
        "perturbed": [
            {"calls": [{"kind": kind, "call": call, "result": text} for (kind, call), text in zip(turn, result)], "state_after": state}
            for turn, result, state in zip(drawn, perturbed_results, perturbed_states)
        ],
        "verdicts": verdicts,
    }


# --- single turns ---

JSON_VALUES = [None, True, False, 0, 1, -1, 2.0, 1.5, 10**18, "", " ", "x", "1", "True", "null", "é", "it's", [], [1], ["a"], [1, "a"], [[1]], {}, {"a": 1}, {"a": [1]}, [{}], [{"a": 1}]]
WRITTEN = ["", "1", "1L", "1.0", "1.5f", "true", "True", "null", "\"x\"", "'x'", "x", "new int[]{1, 2}", "new String[]{\"a\", \"b\"}", "[1, 2]", "[\"a\", 'b']", "[]", "{}", "{a: 1}", "{'a': 'b', c: [1]}",
           "new ArrayList<>(Arrays.asList(\"a\", \"b\"))", "new ArrayList<String>()", "new HashMap<String, String>() {{ put(\"a\", \"b\"); }}", "Map.of(\"a\", 1)", "-1", "1e3", "0x1F", "1n", "new Set([1])", "[1, 2", "{a: 1", "[1,,2]", "1 2", "é"]


def answered(answer, draw):
    """A right answer, of which any accepted values are drawn."""
    calls = []
    for expected in answer:
        (name, parameters), = expected.items()
        given = {}
        for key, values in parameters.items():
            value = draw.choice(values) if values else ""
            if value == "" and "" in values:
                continue
            given[key] = one_value(value, draw)
        calls.append({name: given})
    return calls


def one_value(value, draw):
    """Dictionaries of an answer have lists of what is accepted."""
    if isinstance(value, dict):
        return {key: one_value(draw.choice(values), draw) if isinstance(values, list) and values else values for key, values in value.items() if not (isinstance(values, list) and "" in values and draw.random() < 0.5)}
    if isinstance(value, list):
        return [one_value(item, draw) for item in value]
    return value


def changed_value(value, draw, language):
    if language != "python":
        return draw.choice([draw.choice(WRITTEN), draw.choice(JSON_VALUES), str(value) + draw.choice(["", " ", ",", "_zzz", "]", "x"]), f"[{value}]", str(value).upper()])
    ways = [lambda: draw.choice(JSON_VALUES), lambda: [value], lambda: str(value), lambda: {"k": value}]
    if isinstance(value, str):
        ways += [value.upper, lambda: value + "_zzz", lambda: value.replace(" ", ", "), lambda: value[::-1], lambda: "".join(f"{c}-" for c in value), lambda: value.replace("'", '"')]
    if isinstance(value, (int, float)):
        ways += [lambda: float(value), lambda: value + 1, lambda: -value, lambda: value == 1, lambda: int(value)]
    if isinstance(value, list):
        ways += [lambda: value[::-1], lambda: value + [draw.choice(JSON_VALUES)], lambda: value[:-1], lambda: [changed_value(item, draw, language) for item in value], lambda: [str(item) for item in value]]
    if isinstance(value, dict) and value:
        key = draw.choice(sorted(value))
        ways += [lambda: {**value, key: changed_value(value[key], draw, language)}, lambda: {k: v for k, v in value.items() if k != key}, lambda: {**value, "zz": 1}]
    return draw.choice(ways)()


def spoiled_answer(kind, calls, draw, language, functions):
    calls = copy.deepcopy(calls)
    at = draw.randrange(len(calls)) if calls else None
    if kind == "order":
        draw.shuffle(calls)
    elif kind == "extra_call":
        calls.insert(draw.randint(0, len(calls)), copy.deepcopy(draw.choice(calls)))
    elif kind == "fewer":
        calls.pop(at)
    elif kind == "none":
        calls = []
    elif kind == "wrong_name":
        (name, given), = calls[at].items()
        calls[at] = {draw.choice([name + "x", name.replace(".", "_"), name.lower(), draw.choice(functions)["name"]]): given}
    else:
        (_, given), = calls[at].items()
        key = draw.choice(sorted(given)) if given else None
        if kind == "missing" and key:
            del given[key]
        elif kind == "extra_arg":
            known = [name for function in functions for name in function["parameters"]["properties"]]
            given[draw.choice(known + ["zzz"])] = draw.choice(WRITTEN if language != "python" else JSON_VALUES)
        elif kind == "value" and key:
            given[key] = changed_value(given[key], draw, language)
        elif kind == "values":
            for key in given:
                if draw.random() < 0.5:
                    given[key] = changed_value(given[key], draw, language)
        elif kind == "reordered":
            shuffled = list(given.items())
            draw.shuffle(shuffled)
            given.clear()
            given.update(shuffled)
    return calls


KINDS = ["gold", "gold", "value", "value", "value", "value", "values", "values", "missing", "extra_arg", "extra_call", "fewer", "none", "wrong_name", "order", "reordered"]


def single_trace(check, languages, category, entry, answer, seed):
    draw = random.Random(seed)
    language = {"simple_java": "java", "simple_javascript": "javascript"}.get(category, "python")
    functions = entry["function"] if isinstance(entry["function"], list) else [entry["function"]]
    answers = []
    for kind in KINDS:
        decoded = spoiled_answer(kind, answered(answer, draw), draw, language, functions)
        before = copy.deepcopy(decoded)
        try:
            told = check(entry["function"], decoded, answer, languages[language.upper()], category, "m")
        except Exception:  # the checker itself gives up, and so does the leaderboard
            continue
        verdict = {"valid": told["valid"], "error_type": told.get("error_type") if not told["valid"] else None, "error": told.get("error", [])}
        text = json.dumps([before, verdict])
        if "NaN" not in text and "Infinity" not in text:
            answers.append({"kind": kind, "decoded": before, "verdict": verdict})
    return {"id": entry["id"], "category": category, "language": language, "function": entry["function"], "possible_answer": answer, "answers": answers}


# --- runs ---

def read_lines(path):
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def record(options):
    stub_settings(options.reference)
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, MULTI_TURN_FUNC_DOC_FILE_MAPPING
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    for path in CLASS_FILE_PATH_MAPPING.values():
        if not path.endswith(("web_search", "memory_kv", "memory_vector", "memory_rec_sum")):
            importlib.import_module(path)

    class Today(datetime.datetime):
        @classmethod
        def today(cls):
            return TODAY

    sys.modules[CLASS_FILE_PATH_MAPPING["TravelAPI"]].datetime = Today
    data = options.reference / "bfcl_eval" / "data"

    def execute(calls, scenario, classes, identity, is_long):
        name = "m"
        # Objects of fuzz traces are called after their class alone.
        return multi_turn_utils.execute_multi_turn_func_call(calls, scenario, classes, name, identity, long_context=is_long)

    entries, gold = {}, {}
    for split in SPLITS:
        name = f"BFCL_v4_multi_turn_{split}.json"
        entries[split] = read_lines(data / name)
        gold[split] = [entry["ground_truth"] for entry in read_lines(data / "possible_answer" / name)]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)

    def write(name, rows):
        with (out / name).open("w", encoding="utf-8") as file:
            for row in rows:
                if row is not None:
                    file.write(json.dumps(row) + "\n")

    def fuzzed():
        for number in range(options.fuzz):
            name = CLASSES[number % len(CLASSES)]
            seed = f"{options.seed}/fuzz/{number}"
            draw = random.Random(seed + "/choice")
            documents = read_lines(data / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[name])
            scenarios = [entry["initial_config"].get(name, {}) for entry in entries["base"] if name in entry["involved_classes"]]
            scenario = draw.choice(scenarios + [{}]) if draw.random() < 0.9 else {}
            is_long = draw.random() < 0.25 and not options.own
            trace = isolated(lambda: fuzz_trace(execute, name, parameters_of(documents), scenario, is_long, seed, options.calls))
            if trace is None:
                print(f"fuzz {number} ended its process", file=sys.stderr)
                continue
            yield {"id": f"fuzz_{name}_{options.seed}_{number}", "class": name, "long_context": is_long, "initial_config": {name: scenario}, **trace}

    if options.own:
        own = read_lines(options.own)
        entries = {"base": [entry for entry in own if "involved_classes" in entry]}
        write("multi_turn_own.jsonl", (
            entry_trace(execute, multi_turn_checker, entry, entry["ground_truth"], f"{options.seed}/{entry['id']}") for entry in entries["base"]))
        write("single_own.jsonl", (
            single_trace(ast_checker, Language.__members__, entry["category"], entry, entry["ground_truth"], f"{options.seed}/{entry['id']}")
            for entry in own if "category" in entry))
        return write("fuzz.jsonl", fuzzed())
    write("fuzz.jsonl", fuzzed())
    for split in SPLITS:
        chosen = random.Random(f"{options.seed}/{split}").sample(range(len(entries[split])), min(options.entries, len(entries[split])))
        write(f"multi_turn_{split}.jsonl", (
            entry_trace(execute, multi_turn_checker, entries[split][at], gold[split][at], f"{options.seed}/{split}/{at}") for at in sorted(chosen)))
    for category in SINGLE:
        name = f"BFCL_v4_{category}.json"
        rows, answers = read_lines(data / name), {row["id"]: row["ground_truth"] for row in read_lines(data / "possible_answer" / name)}
        chosen = random.Random(f"{options.seed}/{category}").sample(range(len(rows)), min(options.single, len(rows)))
        write(f"single_{category}.jsonl", (
            single_trace(ast_checker, Language.__members__, category, rows[at], answers[rows[at]["id"]], f"{options.seed}/{category}/{at}") for at in sorted(chosen)))


def marked(first, second):
    """What differs between two runs is marked."""
    for path in sorted(Path(first).glob("*.jsonl")):
        rows = [(json.loads(a), json.loads(b)) for a, b in zip(path.open(), (Path(second) / path.name).open())]
        for row, other in rows:
            pairs = list(zip(row.get("calls", []), other.get("calls", [])))
            for turn, other_turn in zip(row.get("perturbed", []), other.get("perturbed", [])):
                pairs += zip(turn["calls"], other_turn["calls"])
            for call, other_call in pairs:
                if call["result"] != other_call["result"]:
                    call["nondeterministic"] = True
        path.write_text("".join(json.dumps(row) + "\n" for row, _ in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=lambda text: Path(text).resolve())
    parser.add_argument("out")
    for name, default in (("seed", 0), ("fuzz", 400), ("calls", 60), ("entries", 200), ("single", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--own", type=Path, help="instead of the release's entries, those of this file, one a line: id, involved_classes, initial_config, ground_truth or id, category, function, ground_truth")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        return record(options)
    again = options.out.rstrip("/") + ".again"
    runs = []
    for out, hash_seed in ((options.out, "0"), (again, "1")):
        arguments = [options.reference, out] + [f"--{name}={getattr(options, name)}" for name in ("seed", "fuzz", "calls", "entries", "single")]
        arguments += ["--own", options.own] if options.own else []
        command = [sys.executable, __file__, *map(str, arguments), "--once"]
        runs.append(subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": "UTC"}))
    if any(run.wait() for run in runs):
        sys.exit(1)
    marked(options.out, again)
    for path in Path(again).glob("*.jsonl"):
        path.unlink()
    Path(again).rmdir()


main()
