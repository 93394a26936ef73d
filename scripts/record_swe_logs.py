#!/usr/bin/env python3
"""Records what the benchmarks' own log parsers, graders and difflib say, in the form that the tests of `spar-swe` replay.

    python3.12 scripts/record_swe_logs.py record REFERENCES swe/tests/fixtures [--seed 5] [--logs 22] [--runs FOLDER]
    python3.12 scripts/record_swe_logs.py compare REFERENCES BINARY [--seed 7] [--logs 200]
    python3.12 scripts/record_swe_logs.py run FOLDER --python PYTHON --node NODE_MODULES [--only RUNNER...]

REFERENCES is a folder that holds, unpacked: `swebench5`, `swebench4`, `swebench3` and `swebench2` (the wheels of swebench 5.0.2, 4.1.0, 3.0.17 and 2.1.8), `swesmith`
(the wheel of swesmith 0.0.9), `terminal_bench` (the wheel of terminal-bench 0.2.18), `rebench` (a checkout of
SWE-rebench/SWE-rebench-V2), `r2e` (a checkout of R2E-Gym/R2E-Gym), `unidiff` (the wheel of unidiff 1.0.1) and `swe_rl` (a checkout of
facebookresearch/swe-rl). None of them has to be installed: of each only the parsers
are executed, in a process of their own.

Logs are drawn from a seed: lines as the runners print them, with names, times, colours and noise drawn at random, cut and
mixed. `--runs` adds logs of runners that were run on small projects (with `--logs 0` nothing else is recorded): `run` writes those, with the pytest (and
pytest-xdist), Django and sympy that PYTHON has, the Jest, Mocha, vitest, Jasmine and tape of the folder NODE_MODULES, and whatever is there of cargo, node, go,
g++ with GoogleTest, phpunit, rspec, ruby with minitest and test-unit, and Debian's gradle and Maven with libsurefire-java and junit4. `compare` draws others and gives each
to every parser that exists; BINARY is the example `parse_logs`, which reads them with ours.

    cargo build -p spar-swe --example parse_logs
    python3.12 scripts/record_swe_logs.py compare references target/debug/examples/parse_logs --seed 7
"""
import argparse
import ast
import difflib
import enum
import importlib
import json
import logging
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree as ET
from pathlib import Path

NAMES = {"SWE-bench 5", "SWE-bench 4", "SWE-rebench V2", "SWE-smith", "R2E-Gym", "terminal-bench 1"}
STATUSES = {"PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL"}


# Parsers of the references.

def bare(name, path):
    """A package of which nothing is executed but what is asked for."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module
    return module


def functions(path, scope):
    """The functions of a file, without its imports and decorated classes."""
    tree = ast.parse(Path(path).read_text())
    body = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.Assign)) and not getattr(node, "decorator_list", None)]
    for node in body:
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), scope)
        except Exception:  # noqa: BLE001 - assignments that need what was left out
            pass
    return scope


def method(path, owner, scope):
    """The method `log_parser` of a class, as a function of the log."""
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.ClassDef) and node.name.startswith(owner):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "log_parser":
                    own = dict(scope)
                    exec(compile(ast.Module([member], []), str(path), "exec"), own)
                    return lambda log, *_: own["log_parser"](None, log)
    raise SystemExit(f"{path}: no class `{owner}` with a log_parser")


def prepare_swebench(root):
    """Makes SWE-bench's parsers importable without what they do not use: its engines, its data sets."""
    bare("swebench", root / "swebench")
    bare("swebench.harness", root / "swebench/harness")
    spec = types.ModuleType("spec")
    spec.TestSpec = object
    spec.make_test_spec = None
    sys.modules["swebench.types"] = sys.modules["swebench.harness.test_spec.test_spec"] = spec
    bare("swebench.harness.test_spec", root).TestSpec = object
    utils = types.ModuleType("utils")
    holder = root / ("swebench/utils.py" if (root / "swebench/utils.py").exists() else "swebench/harness/utils.py")
    tree = ast.parse(holder.read_text())
    node = [node for node in tree.body if getattr(node, "name", "") == "ansi_escape"]
    exec(compile(ast.Module(node, []), str(holder), "exec"), {"re": re}, vars(utils))
    if node:
        utils.ansi_escape.__globals__["re"] = re
    sys.modules["swebench.utils"] = sys.modules["swebench.harness.utils"] = utils


def load_swebench(root):
    prepare_swebench(root)
    bare("swebench.harness.log_parsers", root / "swebench/harness/log_parsers")
    found = {}
    for path in sorted((root / "swebench/harness/log_parsers").glob("*.py")):
        if path.stem not in ("__init__", "utils"):
            module = importlib.import_module(f"swebench.harness.log_parsers.{path.stem}")
            found.update({name: value for name, value in vars(module).items() if name.startswith("parse_") and callable(value)})
    return {name: (lambda parser: lambda log, context: parser(log, context))(parser) for name, parser in found.items()}


def load_rebench(root):
    bare("lib", root / "lib")
    bare("lib.agent", root / "lib/agent")
    module = importlib.import_module("lib.agent.log_parsers")
    found = dict(module.NAME_TO_PARSER)
    found["parse_log_sympy"] = module.parse_log_sympy
    return {name: (lambda parser: lambda log, context: parser(log))(parser) for name, parser in found.items()}


def load_swesmith(root, swebench4):
    load_swebench(swebench4)
    scope = {"re": re, "ET": ET, "TestStatus": sys.modules["swebench.harness.constants"].TestStatus}
    profiles = root / "swesmith/profiles"
    found = {}
    for name in ("cpp", "java", "javascript"):
        found.update({key: (lambda parser: lambda log, context: parser(log))(value) for key, value in functions(profiles / f"{name}.py", dict(scope)).items() if key.startswith("parse_log_")})
    for name, file, owner in [
        ("parse_log_pytest", "python", "PythonProfile"), ("parse_log_autograd", "python", "Autograd"),
        ("parse_log_paramiko", "python", "Paramiko"), ("parse_log_python_slugify", "python", "PythonSlugify"),
        ("parse_log_tornado", "python", "Tornado"), ("parse_log_mypy", "python", "Mypy"),
        ("parse_log_gotest", "golang", "GoProfile"), ("parse_log_cargo", "rust", "RustProfile"),
        ("parse_log_csharp", "csharp", ""), ("parse_log_phpunit", "php", ""),
        ("parse_log_jq", "c", "Jq"), ("parse_log_redis", "c", "Valkey"), ("parse_log_react_pdf", "javascript", "ReactPDF"), ("parse_log_marked", "javascript", "Marked"),
        ("parse_log_drizzle_orm", "typescript", "Drizzleorm"), ("parse_log_typescript", "typescript", "TypeScript0a"), ("parse_log_cppunit", "cpp", "Aria2"), ("parse_log_airsim", "cpp", "AirSim"),
    ]:
        found[name] = method(profiles / f"{file}.py", owner, {**scope, "parse_log_mocha": functions(profiles / "javascript.py", dict(scope))["parse_log_mocha"]})
    return found


def load_r2e(root):
    scope = {}
    path = root / "src/r2egym/repo_analysis/execution_log_parser.py"
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return {"parse_log_pytest": lambda log, context: scope["parse_log_pytest"](log)}


def load_terminal_bench(root):
    bare("terminal_bench", root / "terminal_bench")
    bare("terminal_bench.utils", root / "terminal_bench/utils")
    logger = types.ModuleType("logger")
    logger.logger = logging.getLogger("terminal_bench")
    sys.modules["terminal_bench.utils.logger"] = logger
    factory = importlib.import_module("terminal_bench.parsers.parser_factory")

    def parser(kind):
        return lambda log, context: {name: status.name for name, status in kind().parse(log).items()}
    return {name.value: parser(kind) for name, kind in factory.ParserFactory.PARSER_NAME_TO_CLASS.items()}


def load(origin, references):
    return {
        "SWE-bench 5": lambda: load_swebench(references / "swebench5"),
        "SWE-bench 4": lambda: load_swebench(references / "swebench4"),
        "SWE-rebench V2": lambda: load_rebench(references / "rebench"),
        "SWE-smith": lambda: load_swesmith(references / "swesmith", references / "swebench4"),
        "R2E-Gym": lambda: load_r2e(references / "r2e"),
        "terminal-bench 1": lambda: load_terminal_bench(references / "terminal_bench"),
    }[origin]()


class Context:
    def __init__(self, asked):
        self.instance_id, self.version = asked.get("instance_id", ""), asked.get("version", "")


def serve(origin, references):
    """A worker: reads logs, writes what every parser of one origin makes of them."""
    real = sys.stdout
    sys.stdout = sys.stderr = open("/dev/null", "w")
    parsers = load(origin, references)

    def late(*_):
        raise TimeoutError("too slow")
    signal.signal(signal.SIGALRM, late)
    for line in sys.stdin:
        asked = json.loads(line)
        names = asked["parsers"] if asked["parsers"] is not None else sorted(parsers)
        answers = {}
        for name in names:
            if name not in parsers:
                answers[name] = {"unknown": True}
                continue
            signal.alarm(5)
            try:
                tests = parsers[name](asked["log"], Context(asked))
                # A word that only begins like a status counts as none of them.
                answers[name] = {str(test): str(getattr(status, "value", status)) if getattr(status, "value", status) in STATUSES else "OTHER" for test, status in tests.items()}
                json.dumps(answers[name]).encode()
                answers[name] = {"tests": answers[name]}
            except TimeoutError:
                answers[name] = {"slow": True}
            except Exception as error:  # noqa: BLE001 - it is recorded
                answers[name] = {"raises": type(error).__name__}
            finally:
                signal.alarm(0)
        print(json.dumps(answers), file=real, flush=True)


def serve_grades(root):
    """A worker: reads cases, writes the reports of one version of SWE-bench."""
    real = sys.stdout
    sys.stdout = open("/dev/null", "w")
    prepare_swebench(root)
    docker = types.ModuleType("docker")
    docker.DockerClient = object
    images = types.ModuleType("images")
    images.list_images = None
    sys.modules["docker"] = docker
    sys.modules["swebench.image_builder.docker_utils"] = sys.modules["swebench.harness.docker_utils"] = images
    bare("swebench.image_builder", root)
    grading = importlib.import_module("swebench.harness.grading")
    for line in sys.stdin:
        case = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            if "instance" in case:
                # Version 2 has the repository from the name of the folder.
                log = Path(folder, case["instance"]["instance_id"], "log")
                log.parent.mkdir()
                log.write_text(case["log"], newline="")
                try:
                    report = grading.get_eval_report(types.SimpleNamespace(**case["instance"]), case["prediction"], str(log), True)
                    answer = {"report": json.dumps(report, indent=4)}
                except Exception as error:  # noqa: BLE001 - it is recorded
                    answer = {"raises": type(error).__name__}
            else:
                os.chdir(folder)
                for identity, files in case["files"].items():
                    place = Path("logs/run_evaluation/run", case["predictions"][identity]["model_name_or_path"].replace("/", "__"), identity)
                    place.mkdir(parents=True)
                    for name, text in files.items():
                        (place / name).write_text(text)
                reporting = importlib.import_module("swebench.harness.reporting")
                path = reporting.make_run_report(case["predictions"], [{"instance_id": identity} for identity in case["instances"]], "run")
                answer = {"name": Path(path).name, "report": Path(path).read_text()}
                os.chdir("/")
        print(json.dumps(answer), file=real, flush=True)


class Worker:
    def __init__(self, origin, references, mode="serve"):
        self.origin = origin
        self.child = subprocess.Popen([sys.executable, __file__, mode, str(references), origin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})

    def ask(self, log, parsers=None):
        self.child.stdin.write(json.dumps({**log, "parsers": parsers}) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"the worker of {self.origin} ended")
        return json.loads(line)


# Logs that are drawn.

WORDS = ["alpha", "beta", "gamma", "parse", "load", "Widget", "HTTP", "empty_list", "returns", "the", "a", "x1", "naïve", "日本", "50%", "ok", "FAILED", "passed", "in", "it's", "a-b", "\u00a0", "foo.bar", "error", "[x]", "q(1)", "1)", "#2", "a:b", "-", "PASSED", "skipped"]
PLAIN = ["alpha", "beta", "gamma", "parse", "load", "widget", "empty", "returns", "x1", "zed", "node", "utf8"]
NOISE = ["", "", "   ", "Traceback (most recent call last):", '  File "/testbed/a.py", line 3, in f', "AssertionError: 1 != 2", "warning: unused variable", "+ git checkout abc tests/a.py", "PASSED", "FAILED", "ERROR: usage: pytest [options]", "ERRORS", "SKIPPED [3] tests/a.py:7: no network", "ok", "FAIL", "\x1b[32mgreen\x1b[0m", "<p>text</p>", "{", "}", "[", "]", "100%|####| 3/3", "1 passing (3ms)", "  1 failing", "SUMMARY:", "Starting browser Chrome", "=== short test summary info ===", "FAIL:", "in 0.5s", "\tat a.b.C(C.java:3)", "Killed", "\u2028line", "a\x0bb\x1cc", "carriage\rreturn"]


class Draw:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def pick(self, choices):
        return self.rng.choice(choices)

    def number(self, low=0, high=99):
        return self.rng.randint(low, high)

    def chance(self, share):
        return self.rng.random() < share

    def ident(self):
        return "_".join(self.pick(PLAIN) for _ in range(self.number(1, 3)))

    def words(self, most=5):
        return " ".join(self.pick(WORDS if self.chance(0.4) else PLAIN) for _ in range(self.number(1, most)))

    def file(self, ending):
        return "/".join([self.pick(["tests", "src", "pkg/sub", "test/unit"]), self.ident() + ending])

    def node(self):
        name = f"{self.file('.py')}::" + ("Test" + self.pick(PLAIN).title() + "::" if self.chance(0.3) else "") + "test_" + self.ident()
        if self.chance(0.3):
            name += "[" + self.pick([self.words(2), "/tmp/x/y.txt", "//host/a", "/a/*/b", "MouseButton.LEFT", "a-b", "1]", "[n", ""]) + "]"
        return name

    def ms(self):
        return self.pick(["(3ms)", "(12 ms)", "(1.5 s)", "(0.2s)", "(7 m s)", "", "", ""])

    def lines(self, make, low=3, high=8):
        return [make() for _ in range(self.number(low, high))]

    def mix(self, lines):
        """Cuts, repeats, indents and colours some lines, and puts noise between them; of two fifths of the logs nothing."""
        if self.chance(0.4):
            return lines
        mixed = []
        for line in lines:
            if self.chance(0.12):
                mixed.append(self.pick(NOISE))
            if self.chance(0.06):
                line = self.pick([line[: self.number(0, max(1, len(line)))], line + "  ", "\t" + line, line + line, line.upper(), line.replace(" ", "  "), f"\x1b[3{self.number(1, 7)}m{line}\x1b[0m", line + "\r"])
            mixed.append(line)
            if self.chance(0.05):
                mixed.append(line)
        return mixed


def pytest_log(d):
    word = lambda: d.pick(["PASSED", "PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS"])  # noqa: E731

    def summary():
        status = word()
        tail = d.pick(["", " - AssertionError: 1 == 2", " - " + d.words() + " - " + d.words(), ": reason"])
        return f"{status} {d.pick(['', '[2] ']) if status == 'SKIPPED' else ''}{d.node()}{tail}"

    def progress():
        return d.pick([f"{d.node()} {word()}", f"{d.node()} {word()} [ {d.number()}%]", f"[gw{d.number(0, 3)}] [ {d.number()}%] {word()} {d.node()} ", f"[gw{d.number(0, 9)}] {word()} {d.node()}",
                       f"{d.node()} {word()} [ 50%] in 0.{d.number()}s", f"{word()}   {d.node()} in {d.number()}s", f"\x1b[32m{word()}\x1b[0m {d.node()}", f"[31m{word()}[0m {d.node()}", f"{d.node()} \x1b[32m{word()}\x1b[0m"])
    lines = ["===== test session starts =====", "collected 3 items", ""]
    lines += d.lines(d.pick([summary, progress, lambda: d.pick([summary, progress])()]))
    if d.chance(0.5):
        lines += ["=================================== FAILURES ===================================", f"___________________________ {d.ident()} ___________________________"]
    if d.chance(0.7):
        lines += [d.pick(["=========================== short test summary info ============================", "== SHORT TEST SUMMARY INFO ==", "= short  test summary info ="])] + d.lines(summary)
    return lines + ["==== 2 failed, 3 passed in 0.12s ===="]


def django_log(d):
    def line():
        test = f"test_{d.ident()} ({d.ident()}.Test{d.pick(PLAIN).title()})"
        return d.pick([f"{test} ... ok", f"{test} ... FAIL", f"{test} ... ERROR", f"{test} ... skipped 'no {d.words(2)}'", f"{d.words()} ... ok", f"{test} ...  OK", f"{test} ... OK", f"FAIL: {test}", f"ERROR: {test}",
                       f"{test} ... Internal Server Error: /{d.ident()}/\nok", f"{test} ... System check identified no issues (0 silenced)\nok", f"{test} ... Testing against Django installed in '/a' with up to 2 processes\nmore\nSystem check identified no issues (0 silenced).\nok",
                       f"{test} ... printed\nok", "ok", "--version is equivalent to version", f"Applying sites.0002_alter_domain_unique...{test} ... ok", f"{d.words()} ... expected failure", f"{test}\n{d.words()} ... ok", "Applying sites.0002_alter_domain_unique...test_no_migrations (a.B) ... ok"])
    return d.lines(line, 5, 11) + ["-" * 20, f"Ran {d.number()} tests in 0.1s", "", "FAILED (failures=1)"]


def sympy_log(d):
    def line():
        return d.pick([f"test_{d.ident()} ok", f"test_{d.ident()} F", f"test_{d.ident()} E", f"test_{d.ident()} f", f"test_{d.ident()} s", f"test_{d.ident()} ok [OK]", f"test_{d.ident()} F   [FAIL]", f"________ sympy/core/tests/{d.ident()}.py:test_{d.ident()} ________", f"__ {d.ident()}.py:{d.words()} __ b.py:c __", f"test_{d.ident()}.py:test_x F"])
    return ["============================= test process starts ==============================", f"sympy/core/tests/test_{d.ident()}.py[{d.number()}] "] + d.lines(line, 5, 10)


def rules(*templates, low=4, high=9, head=(), tail=()):
    """Logs of lines that are drawn among templates, whose placeholders are drawn anew."""
    def log(d):
        def line():
            text = d.pick(templates)
            for key, value in [("IDENT", d.ident), ("WORDS", d.words), ("MS", d.ms), ("NUM", lambda: str(d.number())), ("FILE", lambda: d.file("")), ("SP", lambda: " " * d.number(0, 12))]:
                while "{" + key + "}" in text:
                    text = text.replace("{" + key + "}", value(), 1)
            return text
        return list(head) + d.lines(line, low, high) + list(tail)
    return log


def xml_log(d):
    def case():
        attributes = [f'name="{d.ident()}"', f'classname="{d.ident()}.{d.ident()}"', f'time="0.{d.number()}"']
        d.rng.shuffle(attributes)
        attributes = attributes[: d.number(1, 3)]
        inside = d.pick(["", "<failure message='x'>no</failure>", '<error type="E"/>', "<skipped/>", "<system-out>a &amp; b</system-out>", "<failure/><error/>", "<skipped/><failure/>", "<![CDATA[<failure]]>", "<!-- <error -->"])
        return f"<testcase {' '.join(attributes)}/>" if not inside else f"<testcase {' '.join(attributes)}>{inside}</testcase>"
    lines = [d.words()]
    for _ in range(d.number(1, 3)):
        lines.append(d.pick(['<?xml version="1.0" encoding="UTF-8"?>', "<?xml version='1.0'?>", '<?xml version="1.0" ?>'] + [' <?xml version="1.0"?>'] * d.chance(0.2)))
        outer = d.chance(0.6)
        if outer:
            lines.append("<testsuites xmlns='u'>" if d.chance(0.1) else "<testsuites>")
        for _ in range(d.number(1, 2) if outer else 1):
            lines += [f'<testsuite name="{d.ident()}">'] + d.lines(case, 1, 3) + [d.pick(["</testsuite>"] * 8 + ["</testsuite", ""])]
        if outer:
            lines.append("</testsuites>")
        lines.append(d.words())
    return lines


def doctest_log(d):
    def expression():
        return f'<Expression success="{d.pick(["true", "true", "true", "false"])}" type="CHECK"><Original>a &lt; b</Original></Expression>'

    def subcase(depth=0):
        inner = "".join(d.pick([expression, lambda: subcase(depth + 1)] if depth < 2 else [expression])() for _ in range(d.number(0, 2)))
        name = d.pick([f' name="{d.ident()}"', f' name="{d.words(2)}"', ""])
        return f"<SubCase{name}>{inner}</SubCase>"

    def case():
        return f'<TestCase name="{d.ident()}">' + "".join(subcase() for _ in range(d.number(0, 3))) + expression() + "</TestCase>"
    return [d.words(), '<doctest binary="t">', "<TestSuite>"] + d.lines(case, 2, 4) + ["</TestSuite>", d.pick(["</doctest>", "</doctest>", "</doctest>", "</doctest>", "<OverallResultsAsserts/></doctest>", "</TestSuite></doctest>", ""])] + [d.words()]


def indented_log(d, marks, head=(), tail=(), ms=True):
    lines, depth = list(head), 1
    for _ in range(d.number(5, 10)):
        if d.chance(0.35):
            depth = max(1, depth + d.pick([-1, 0, 1]))
            lines.append("  " * depth + d.words(3))
        else:
            lines.append("  " * (depth + 1) + d.pick(marks).replace("{N}", str(d.number(1, 9))) + " " + d.words(4) + (d.pick(["", f" ({d.number()}ms)", f"({d.number()}ms)", " (1 s)"]) if ms else ""))
    return lines + list(tail)


def json_run(d, command, spaced=True):
    def test():
        return {"title": d.ident(), "fullTitle": d.words(3), "duration": d.number()}
    report = {"stats": {"tests": 3}, "tests": [test()], "pending": [], "failures": [test() for _ in range(d.number(0, 2))], "passes": [test() for _ in range(d.number(0, 3))]}
    if d.chance(0.05):
        report.pop("passes")
    return [d.words(), command] + json.dumps(report, indent=2, ensure_ascii=d.chance(0.5)).split("\n")


def prism_log(d):
    return sum((json_run(d, "> ./node_modules/.bin/mocha tests/run.js --reporter json") for _ in range(d.number(1, 2))), []) + ([d.words()] if d.chance(0.5) else [])


def lighthouse_log(d):
    kind = d.number(0, 3)
    if kind == 0:
        return sum((["running 3 test files"] + indented_log(d, ["✔", "✔", "{N})"]) + [f"  {d.number()} passing (3s)", "  1) x"] for _ in range(d.number(1, 2))), [])
    if kind == 1:
        return sum((json_run(d, "+ ./node_modules/.bin/mocha --reporter json lighthouse-core") for _ in range(d.number(1, 2))), [])
    return FILES(d)


def next_log(d):
    if d.chance(0.5):
        lines = []
        for _ in range(d.number(1, 3)):
            lines += [f"  Running:  {d.ident()}.js       (1 of {d.number()})", "", "", f"  {d.words(2)}"] + d.lines(lambda: d.pick([f"    ✓ {d.words(3)} ({d.number()}ms)", f"    {d.number(1, 9)}) {d.words(3)}", f"      ✓ {d.words(2)} (1ms)"]), 2, 5)
        return lines
    return sum(([f"+ xvfb-run {d.ident()}", "Starting browser Chrome"] + indented_log(d, ["✓", "✗", "\x1b[32m✓\x1b[0m"]) + d.pick([["AssertionError:  #1 x", "y", ""], ["ERROR x"], ["  in a.js"], []]) + ["TOTAL: 3 SUCCESS"] for _ in range(d.number(1, 2))), [])


def cypress_log(d):
    return sum((json_run(d, d.words()) + ["../.."] for _ in range(d.number(1, 3))), []) + [d.words()]


def p5_log(d):
    def failure():
        depth = d.number(1, 3)
        lines = [f"  {d.number(1, 9)}) {d.words(2)}"] + ["       " + "  " * step + d.words(2) for step in range(depth)]
        lines[-1] += ":"
        return "\n".join(lines + ["     AssertionError: x"])
    extra = lambda: d.pick(["<div>a<div>b</div>", "<p>x</p>", "</q>", "<q>", "{ a: 1 }", "[1]", "{\n  1) a:\n}", "[\n1) b:\n]", "<a>\n 1) c\n</a>", "\x1b[31m1) d:\x1b[0m", "text {"])  # noqa: E731
    return d.lines(lambda: d.pick([failure, failure, extra])(), 3, 7)


def haskell_tree(d):
    lines = ["Building x", f"Test suite {d.ident()}: RUNNING...", ""] if d.chance(0.7) else [f"Data.{d.ident()}"]
    depth = 0
    for _ in range(d.number(5, 10)):
        depth = max(0, depth + d.pick([-1, 0, 1, 1]))
        lines.append("  " * depth + d.words(3) + d.pick(["", "", "", f" FAILED [{d.number(1, 3)}]", " # PENDING: no", " SKIPPED"]))
        if d.chance(0.1):
            lines.append("Golden and Actual output didn't change")
    if d.chance(0.6):
        lines += ["", "Failures:", "", f"  1) {d.ident()}, {d.ident()}, {d.words(3)}", "     x", "", "To rerun use: --match x", "Finished in 0.1 seconds"]
    return lines


def julia_log(d):
    header = d.pick(["Test Summary: | Pass  Total  Time", "Test Summary:    | Pass  Fail  Total   Time", "Test Summary: | Pass  Error  Total", "Test Summary: | Pass  Fail  Error  Broken  Total  Time", "Test Summary: | Error  Total"])
    return [d.words(), header] + d.lines(lambda: " " * d.number(0, 4) + f"{d.words(3)} | " + " " * d.number(0, 12) + "  ".join(str(d.number(0, 3)) for _ in range(d.number(1, 6))) + d.pick(["", "  0.3s", "  1m02.5s"]), 3, 7)


def dart_json(d):
    lines, known = [], []
    for _ in range(d.number(4, 8)):
        if d.chance(0.5) or not known:
            known.append(d.number(1, 9))
            lines.append(json.dumps({"test": {"id": known[-1], "name": d.pick(["loading /a.dart", d.words(3), ""]), "suiteID": 0}, "type": "testStart", "time": 1}))
        else:
            lines.append(json.dumps({"testID": d.pick(known + [99]), "result": d.pick(["success", "success", "failure", "error", "odd"]), "skipped": d.chance(0.3), "hidden": d.chance(0.1), "type": "testDone"}))
    return lines + ["[" + lines[-1] + ", 3]", "{bad json", "5"]


def maven_log(d):
    return d.lines(lambda: d.pick([f"+ mvn test -B -Dtest={d.ident()}#{d.ident()} -q", f"[INFO] BUILD {d.pick(['SUCCESS', 'FAILURE'])}", f"+ mvn -Dtest={d.ident()}", f"[INFO] Running a.b.{d.ident()}", f"[ERROR] a.b.{d.ident()}.{d.ident()}:12 expected", f"[ERROR] a.{d.ident()}.{d.ident()} NullPointerException", f"Tests run: {d.number(0, 3)}, Failures: {d.number(0, 1)}, Errors: {d.number(0, 1)}, Skipped: {d.number(0, 2)}" + d.pick(["", f", Time elapsed: 0.1 s - in a.{d.ident()}", f" -- in b.{d.ident()}."]), f"[INFO] Piranha - {d.ident()} ......... {d.pick(['SUCCESS [ 1.2 s]', 'FAILURE', 'SKIPPED'])}", f"Running a.{d.ident()}", f"{d.ident()}(a.b.{d.ident()})  Time elapsed: 0.00{d.number()} sec", f"[INFO] {d.ident()} -- Time elapsed: 0.1 s", f"[ERROR] {d.words(2)} -- Time elapsed: 0.1 s <<< FAILURE!", f'<testcase name="{d.ident()}" classname="c"/>']), 5, 11)


def karma_log(d):
    return [d.words(), "INFO [launcher]: Starting browser Chrome"] + indented_log(d, ["✔", "✖"], ms=False) + [d.pick(["SUMMARY:", "", "Executed 7 of 9 SUCCESS", "Executed 4 of 5 (2 FAILED)", "Executed 3 of 5 (1 skipped) SUCCESS"]), "✔ 3 tests completed", f"Executed {d.number(0, 9)} of {d.number()} SUCCESS"]


FILES = rules("PASS {FILE}.test.js", "PASS {FILE}.js (5.2 s)", "FAIL {FILE}.js (31ms)", "FAIL {FILE}.js", "PASS {FILE}.js (5.1s)", "PASS {WORDS} (2 s) x", "FAIL {FILE} (1.2 s)", "pass x", " FAIL y")
BROWSERS = rules("Chrome 99.0.1 (Linux x86_64) {WORDS} FAILED", "HeadlessChrome 88.0.4 (Linux 0.0.0) {WORDS} FAILED", "Chrome Headless 99.0 (Linux x86_64) {WORDS} FAILED", "Chrome Headless 1.2 (Linux 5.4_x) {WORDS} FAILED", "\x1b[2KPhantomJS 2.1.1 (Linux 0.0.0) {WORDS} FAILED", "2KPhantomJS 2.1.1 (Linux x86_64) {WORDS}FAILED", "\x1b[31mChrome 100.1 (Linux) {WORDS} FAILED\x1b[0m", "  1) {WORDS}\n     {WORDS}\n  AssertionError: no", "case {IDENT}: mismatch x", "{IDENT}': ok", "Executed {NUM} of 9 SUCCESS", "Executed 5 of 9 (3 FAILED)", "  {NUM}) {WORDS}\n      TypeError: x", "{NUM} specs, {NUM} failures", "{NUM} specs, 1 failure, 2 pending specs", "1) {WORDS}")

# What is drawn, and for whom; `+name` are SWE-bench's names in both of its versions.
CORPORA = {
    "pytest": (pytest_log, ["+parse_log_pytest", "+parse_log_pytest_options", "+parse_log_pytest_v2", "+parse_log_matplotlib", "+parse_log_seaborn", "r:parse_log_pytest", "r:parse_log_pytest_options", "r:parse_log_pytest_v2", "r:parse_log_pytest_nebo", "r:parse_log_cpp", "s:parse_log_pytest", "s:parse_log_paramiko", "s:parse_log_autograd", "s:parse_log_mypy", "e:parse_log_pytest", "t:pytest"]),
    "unittest": (django_log, ["5:parse_log_django", "s:parse_log_python_slugify", "s:parse_log_tornado"]),
    "sympy": (sympy_log, ["5:parse_log_sympy", "r:parse_log_sympy"]),
    "cargo": (rules("test {IDENT}::{IDENT} ... ok", "test {IDENT} ... FAILED", "test {IDENT} ... ignored", "test src/a.rs - {IDENT} (line {NUM}) ... ok", "test  {IDENT}  ...  ok", "test {IDENT} - should panic ... ok", "test result: ok. 3 passed", "failures:", "    {IDENT}", "test {WORDS} ... FAILED", head=["running 3 tests"]), ["5:parse_log_cargo", "s:parse_log_cargo"]),
    "go": (rules("--- PASS: Test{IDENT} (0.00s)", "--- FAIL: Test{IDENT} (0.{NUM}s)", "--- SKIP: Test{IDENT} (0.00s)", "    --- PASS: Test{IDENT}/{WORDS} (0.00s)", "=== RUN   Test{IDENT}", "FAIL\tgithub.com/a/{IDENT}\t0.1s", "ok  \tgithub.com/a/b\t0.01s", "FAIL", "FAIL: {WORDS} x", "--- PASS: {WORDS} (cached) (1)", "PASS"), ["5:parse_log_gotest", "s:parse_log_gotest"]),
    "redis": (rules("[ok]: {WORDS} (12 ms)", "[err]: {WORDS} in tests/unit/{IDENT}.tcl", "[skip]: {WORDS}", "[ignore]: {WORDS} in x", "[ok]: {WORDS}", "[ok]: {WORDS} (3s)", "[exception]: {WORDS}", "[ok]:{WORDS}", "  [err]: {WORDS} in a in b "), ["5:parse_log_redis", "s:parse_log_redis"]),
    "automake": (rules("PASS: tests/{IDENT}", "FAIL: tests/{IDENT}", "  PASS: {WORDS}", "XFAIL: {IDENT}", "# PASS:  3", "FAIL: {WORDS}", "SKIP: a", "PASS:{IDENT}", "pass  {FILE}.py", "FAIL  {FILE}.py", "skip  {FILE}.py", "pass {WORDS}", "PASS   : T::{IDENT}()", "FAIL!  : T::{IDENT}() Compared", "SKIP   : T::{IDENT}() no", "PASS   : T::{IDENT}(a b)", "Totals: 3 passed"), ["5:parse_log_jq", "s:parse_log_jq", "5:parse_log_micropython_test", "s:parse_log_qtest"]),
    "gtest": (rules("[ RUN      ] A.{IDENT}", "[       OK ] A.{IDENT} (0 ms)", "[  FAILED  ] A.{IDENT} (3 ms)", "[  FAILED  ] A.{IDENT}", "[  SKIPPED ] A/{IDENT}/0", "[  PASSED  ] {NUM} tests.", "[  FAILED  ] {NUM} tests, listed below:", "1: [       OK ] B.{WORDS} (1 ms)", "[==========] {NUM} tests from 2 test suites ran. (3 ms total)", "[ DISABLED ] A.{IDENT}", "[  PASSED  ] 1 test."), ["5:parse_log_googletest", "s:parse_log_gtest"]),
    "gtest_counts": (rules("[==========] {NUM} tests from 2 test suites ran. (3 ms total)", "[  PASSED  ] 3 tests.", "[  FAILED  ] 2 tests, listed below:", "{WORDS}"), ["s:parse_log_gtest"]),
    "native": (rules("Test {WORDS}     passed", "Test {IDENT}  failed", "Test {IDENT} skipped", "[{NUM}/414] {WORDS}... OK", "[3/4] {IDENT}... FAILED", "{WORDS} ... SKIPPED", "AES-128 ran {NUM} tests in 34.33 msec all ok", "{WORDS} ran 3 tests in 1.2 sec 1 tests failed", "{NUM}/70 Test #{NUM}: {IDENT}.x ......   Passed  1.1 sec", " 3/70 Test  #9: {IDENT} .........***Failed    0.1 sec", "4/70 Test #4: {IDENT} ....  Failed 2 sec", "5/70 Test #5: {WORDS} ..  Timeout 9 sec", "The following tests FAILED:\n\t  3 - {IDENT} (Failed)\n\t  9 - {IDENT} (Timeout)", "{NUM}% tests passed, {NUM} tests failed out of 12", "Failure in {WORDS}", "{IDENT}...... odd", "{WORDS} ...passed", "Test case: {WORDS} ... PASSED"), ["r:parse_log_cpp_v2", "r:parse_log_cpp_v3", "r:parse_log_cpp_v4", "s:parse_log_ctest", "s:parse_log_catch2"]),
    "ctest_counts": (rules("{NUM}% tests passed, {NUM} tests failed out of 14", "{WORDS}", "100% tests passed, 0 tests failed out of 12"), ["s:parse_log_ctest"]),
    "catch2": (rules('<TestCase name="{WORDS}" tags="[a]" filename="b"><OverallResult success="true"/>', '<TestCase name="{IDENT}">\n<Expression success="false"/>\n<OverallResult success="false" durationInSeconds="1"/></TestCase>', "{WORDS} ... PASSED", "{IDENT}... failed", "3: {IDENT} ... PASSED", "<TestCase name=\"x\">"), ["s:parse_log_catch2"]),
    "catch2_counts": (rules("test cases: {NUM} | 7 passed | 2 failed", "All tests passed ({NUM} assertions in {NUM} test cases)", "{IDENT}", "test cases:   3 |  3 passed", low=2, high=4), ["s:parse_log_catch2"]),
    "boost": (rules('a.cpp(3): error: in "suite/{IDENT}": check x == y has failed', 'error in "s/{IDENT}": oops', 'Entering test case "{IDENT}"', 'Entering test suite "{WORDS}"', 'Leaving test case "{IDENT}"', "*** No errors detected", "Running {NUM} test cases...", "{WORDS}"), ["s:parse_log_boost_test"]),
    "boost_counts": (rules("*** No errors detected", "*** 3 failures detected in the test module", "*** 1 failure detected", "{NUM} test cases out of 9 passed", "{NUM} test cases passed", "{WORDS}", low=1, high=4), ["s:parse_log_boost_test"]),
    "cppunit": (rules("OK ({NUM})", "FAILURES!!!\nTest Results:\nRun:  1   Failures: 1", "Tests run: {NUM},  Failures: 2", "FAILURES!!! Tests run: 7, Failures: 3", "Running {NUM} tests", "[  PASSED  ] A.{IDENT}", "[  FAILED  ]  {IDENT}", "[PASSED] x", "{WORDS}", low=1, high=4), ["s:parse_log_cppunit", "s:parse_log_airsim"]),
    "turbo": (rules("@a/b:test: {WORDS}", "pkg:test:unit: PASS", "drizzle-orm#test: ERROR: x", "x:build: ERROR", "test y: ERROR z: w", " Tasks:    3 successful, 5 total", "Tasks: {NUM} successful, {NUM} total", "{WORDS}", low=1, high=5), ["s:parse_log_drizzle_orm"]),
    "counts": (rules("  12 passing (3s)", "  3 passing", "  7 failing", "{IDENT}", low=1, high=3), ["s:parse_log_typescript"]),
    "node": (rules("✔ {WORDS} (1.5ms)", "✖ {WORDS} (12ms)", "  ✔ {WORDS} (0.3ms)", "ℹ tests 3", "✓ {WORDS} 12ms", "✗ {WORDS} 3ms x", "  ✓ {WORDS}", "✖ {WORDS}", "✓ {IDENT} 1 2ms", "▶ {IDENT}", "  {NUM}) {WORDS}"), ["s:parse_log_marked", "s:parse_log_react_pdf", "s:parse_log_typescript"]),
    "doctest": (doctest_log, ["5:parse_log_doctest"]),
    "maven": (maven_log, ["+parse_log_maven", "r:parse_java_mvn", "r:parse_java_mvn_v2", "r:parse_logs_kotlin_junit", "s:parse_log_maven_surefire"]),
    "surefire": (rules("Running a.b.{IDENT}\nTests run: 3, Failures: 0, Errors: 0, Skipped: 0", "Running {IDENT}\nTests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!", "Running {IDENT}\nTests run: 2, Failures: 0, Errors: 0, Skipped: 2", "[INFO] Running c.{IDENT}", "Tests run: {NUM}, Failures: 0, Errors: 1, Skipped: 0", "[ERROR] c.{IDENT}.{IDENT}:3 x", "[INFO] core ...... SUCCESS [1 s]"), ["r:parse_logs_kotlin_junit", "r:parse_java_mvn", "r:parse_java_mvn_v2"]),
    "dune": (rules("Running[3]: (cd _build/default/test && ./{IDENT}.exe -q)", "Running[12]: (exec ./bin/{IDENT}.exe)", "Running[07]: (env A=1 {IDENT})", "Output[3]:", "Output[12]:", "Output[7]: x", "OK", "Test skipped", "fatal error", "{WORDS}", head=["Running[3]: (./t.exe)", "Output[3]:"], low=6, high=12), ["r:parse_log_ocaml_v2"]),
    "junit": (xml_log, ["r:parse_combined_test_reports", "r:parse_log_junit", "r:parse_log_gradlew_v1", "r:parse_logs_r_junit", "s:parse_log_gradle_junit_xml", "r:parse_java_mvn"]),
    "ant": (rules("    [junit] [PASS] {IDENT}({WORDS})", "[junit] [FAIL] {IDENT}", "    [junit] [ERR]  {WORDS}", "    [junit] Tests run: 3", "[junit] [PASS]", "    [echo] [PASS] {IDENT}"), ["5:parse_log_ant"]),
    "gradle": (rules("a.b.{IDENT} > {IDENT} PASSED", "a.{IDENT} > {WORDS}() FAILED", "{IDENT} > {IDENT}", "PASSED", "FAILED", "{IDENT} > {IDENT} PASSED (1.2s)", "> Task :test FAILED", "{IDENT} > {IDENT} SKIPPED", "{IDENT} > {IDENT} STANDARD_OUT", "x > y FAILED (3s)"), ["+parse_log_gradle_custom", "r:parse_log_gradle_custom"]),
    "testdox": (rules("{IDENT} (Tests\\{IDENT})", " ✔ {WORDS} [1.34 ms]", " ✘ {WORDS}", " ↩ {WORDS} [3 s]", "   │ Failed asserting", " ✔ {WORDS}", "Foo Bar (A\\B)", "Time: 00:01.3 (x)", low=5), ["5:parse_log_phpunit", "r:parse_log_phpunit", "s:parse_log_phpunit"]),
    "pest": (rules("  ✓ {WORDS}                0.03s  ", "  ⨯ {WORDS}   0.{NUM}s", "  - {WORDS}    0.01s", "  ✓ {WORDS}", "   PASS  Tests\\{IDENT}", "   FAIL  Tests\\{IDENT}", "  x {WORDS} 1.5s", "  Tests:    1 failed, 2 passed", "  Duration: 0.3s", "  {WORDS} (skipped)", "  ─ {WORDS} SKIPPED", "  - {WORDS} → 1s"), ["r:parse_log_php_v1"]),
    "minitest": (rules("Test{IDENT}#test_{IDENT} = 0.01 s = .", "T#test_{WORDS} = 1.2 s = F", "T#t = 0.0 s = E", "T::U#test_x{NUM} = 0.1 s = S", "{WORDS}. it works = 0.0 s = .", "{IDENT}. = x = F tail", "  {IDENT}. a=b=E"), ["5:parse_log_minitest", "r:parse_log_ruby_v2", "5:parse_log_jekyll"]),
    "cucumber": (rules("{FILE}.feature ......F...", "features/{WORDS} ....", "{IDENT} F", "{IDENT} ....-..", "{NUM} scenarios (1 failed)", "{WORDS} . ..F"), ["5:parse_log_cucumber", "5:parse_log_jekyll"]),
    "test_unit": (rules("  test: {WORDS}:\t.: (0.001)", "  test_{IDENT}:  F", "{IDENT}: E", "{IDENT}:   O: (0.1)", "{WORDS}:  .", "test: {WORDS}:	E", "{IDENT}: Error", "{IDENT}: For", "  a: b: ."), ["5:parse_log_ruby_unit"]),
    "rspec": (rules("{WORDS} - passed", "{WORDS} - failed", "{WORDS} - pending", "a - passed - failed", "{WORDS} - passed x", "- passed", "  {IDENT} - failed"), ["5:parse_log_rspec_transformed_json"]),
    "rake": (rules("{IDENT}", "UnitTest{NUM}", "  test_{IDENT}      PASS (0.02s)", "  test_{IDENT} FAIL (0.1s)", "  test_{IDENT}   SKIP", "  test_a  ERROR (0.00s)", "  test_a PASS", "Finished in 0.3s", "  test {IDENT} x FAILURE", "Abc"), ["r:parse_log_ruby_v1"]),
    "jest": (lambda d: indented_log(d, ["✓", "✕", "○", "✓", "×", "↓", "❯", "✗", "✔", "✖", "-", "{N})"], head=["> yarn ./node_modules/.bin/jest x", "PASS a.test.js"] if d.chance(0.7) else ["x ./node_modules/.bin/jest a"], tail=["  ● Suite › t", "Test Suites: 1 failed"] if d.chance(0.5) else []), ["+parse_log_jest", "5:parse_log_vitest", "5:parse_log_calypso", "+parse_log_immutable_js", "s:parse_log_jest", "s:parse_log_vitest", "s:parse_log_mocha", "r:parse_log_js_4"]),
    "calypso": (lambda d: indented_log(d, ["✓", "✓", "✕"], head=["> FOO=1 ./node_modules/.bin/jest client"], tail=["Test Suites: 1 failed"] if d.chance(0.5) else []), ["5:parse_log_calypso"]),
    "vitest": (rules(" ✓ {FILE}.ts > {WORDS} > {WORDS}", " × {FILE}.ts > {WORDS} 12ms", " ↓ {FILE}.ts > {WORDS} [skipped]", "   ✓ {WORDS} 3 ms", " ❯ {FILE}.ts (9 tests | 5 failed) 22ms", " ✓ {FILE}.ts (9 tests) 4ms", "✗ {IDENT} (1.2ms)", "○ {WORDS}", " ✓ {WORDS} 7"), ["5:parse_log_vitest", "s:parse_log_vitest"]),
    "jest_json": (rules("[PASSED] {WORDS}", "[FAILED] {WORDS}", "[PENDING] {WORDS}", "  [PASSED] {IDENT}", "[PASSED]{IDENT}", "[FAILED]  {IDENT} "), ["5:parse_log_jest_json", "+parse_log_immutable_js"]),
    "jest_files": (FILES, ["r:parse_log_react_pdf", "5:parse_log_carbon", "5:parse_log_emotion", "5:parse_log_grommet"]),
    "karma": (karma_log, ["5:parse_log_karma", "s:parse_log_karma"]),
    "browsers": (BROWSERS, ["5:parse_log_chart_js", "5:parse_log_bpmn_js", "5:parse_log_openlayers", "5:parse_log_marked", "s:parse_log_karma", "s:parse_log_jasmine"]),
    "eslint": (rules("  {NUM}) {WORDS}\n       {WORDS}:\n\n      AssertionError [ERR]: x", "  1) {WORDS}:\n     TypeError: a", "    at Context ({FILE})", "  {NUM} passing", "{WORDS}", "      Error: y"), ["5:parse_log_eslint"]),
    "highlightjs": (lambda d: indented_log(d, ["✓", "✔", "{N})"], tail=[f"  {d.number()} passing (3s)", "  1 failing", "  1) x"] if d.chance(0.7) else []), ["5:parse_log_highlightjs", "r:parse_log_js", "r:parse_log_js_2", "r:parse_log_npx", "s:parse_log_mocha"]),
    "mocha": (rules("    ✔ {WORDS} (53ms)", "    - {WORDS}", "    {NUM}) {WORDS}", "    [W] {NUM}) {WORDS}:", "  {NUM}) {WORDS}:", "  ✔ {WORDS} 3 s", "  ✔ {WORDS}(1ms)", "    ✖ {WORDS}", "    ✓ {WORDS} (2 ms)", "  ○ [chrome]: {WORDS}", "  ✘ [x]:{WORDS}", "  {WORDS} [skipped]", "  ◌ : {WORDS}", "ok - {IDENT} [TODO]", "  {NUM}) {IDENT} (mod)"), ["r:parse_log_js", "r:parse_log_js_2", "r:parse_log_js_4", "r:parse_log_npx", "s:parse_log_mocha"]),
    "prism": (prism_log, ["5:parse_log_prismjs"]),
    "lighthouse": (lighthouse_log, ["5:parse_log_lighthouse"]),
    "next": (next_log, ["5:parse_log_next"]),
    "cypress": (cypress_log, ["5:parse_log_cypress"]),
    "plotly": (rules("{SP} - {WORDS} : 3 tests", "{SP} * {WORDS} : ok", "{SP} * {WORDS} : FAILED", "{SP} * {WORDS} : ok failed", "{SP} * {IDENT} :", "  - {IDENT} :", "    * {IDENT} : Ok"), ["5:parse_plotly_js"]),
    "quarto": (rules("[smoke] > {IDENT} ... \x1b[0m\x1b[32mok\x1b[0m (3s)", "[unit] {WORDS} ... \x1b[0m\x1b[31mFAILED\x1b[0m", "[smoke] > render /tmp/{IDENT}.qmd > x ...", "[unit] /tmp/{IDENT}/a.qmd ... 32mok", "[unit] x ... 34mINFO", "[smoke] a ... 3 passed (1 steps) 2 failed", "test result: ok", "{WORDS}", "[smoke] /tmp/a.qmd /tmp/b/ ... 32mok"), ["5:parse_log_quarto_cli"]),
    "p5": (p5_log, ["5:parse_log_p5js"]),
    "tap": (rules("ok {NUM} - {WORDS}", "not ok {NUM} - {WORDS}", "    ok 3 - {WORDS} # SKIP no", "ok 4 - {WORDS} # time=3ms {", "}", "not ok 5 - {WORDS} # TODO", "# Subtest: {IDENT}", "1..{NUM}", "ok 7 {WORDS}", "ok 8 - {IDENT} {", "    not ok 1 - {WORDS} 3ms", "}}", "ok 9 - a # b # c", low=6), ["5:parse_log_tap", "r:parse_log_js_3"]),
    "elixir": (rules("  * test {WORDS} (12.3ms) [L#42]", "  * test {WORDS} [L#{NUM}]", "  * test {WORDS} (skipped) [L#7]", "  {NUM}) test {WORDS} (Mod.Test)", "  * test {WORDS}", "  * test {IDENT} (excluded) [L#9]"), ["r:parse_log_elixir"]),
    "haskell": (rules("  {WORDS}: OK (0.01s)", "  {WORDS}: FAIL", "{IDENT}:  ERROR x", "  {WORDS}: SKIP", "  ✓ {WORDS} (3ms)", "  ✗ {WORDS}", "  {WORDS} [✔]", "  {WORDS} [✘]", "  {NUM}) {WORDS}", "### Failure in: {WORDS}", "### Error in: {IDENT}", "Test suite {IDENT}: RUNNING", "\x1b[32m{WORDS}: OK\x1b[0m", "  {WORDS}: PENDING later", "{IDENT}: OKAY"), ["r:parse_log_haskell"]),
    "hspec": (haskell_tree, ["r:parse_log_haskell_v2"]),
    "julia": (julia_log, ["r:parse_log_julia"]),
    "testthat": (rules("✔ | 60 | {IDENT}", "✖ | 2 2 9 | {WORDS} [0.3s]", "✔ |         3 | {IDENT} [ 1.2 s]", "── Failed tests ──────", "== Failed tests ==", "Failure ('test-a.R:8:5'): {WORDS}", "Error ('test-b.R:{NUM}:5'): {WORDS}", "[ FAIL 1 | WARN 0 ]", "══ Results ══", "✔ | {IDENT}", "Error (x): {IDENT} [0.1s]"), ["r:parse_log_r"]),
    "r_check": (rules("* checking {WORDS} ... OK", "* checking {WORDS} ... WARNING", "* checking {IDENT} ...", "* checking {IDENT} ... NOTES", " OK", "ERROR: x", "  skipped.", "* checking {IDENT} ... DONE", "{WORDS}", "note"), ["r:parse_log_r_v2"]),
    "lein": (rules("lein test a.b.{IDENT}", "lein test :only a.{IDENT}/{IDENT}", "FAIL in ({IDENT}) (a.clj:3)", "ERROR in ({IDENT})", "lein test {IDENT} {IDENT}", "lein test :only", "lein test :only /x", "Ran {NUM} tests", "lein test :only {IDENT} {IDENT}"), ["r:parse_log_lein"]),
    "dart_json": (dart_json, ["r:parse_log_dart"]),
    "dart": (rules("00:01 +{NUM}: /a/{IDENT}_test.dart: {WORDS}", "00:02 +88 -1: /a/{IDENT}.dart: {WORDS} [E]", "00:06 +200 -3: loading /a/{IDENT}.dart [E]", "[pkg_a]: 00:01 +3: /a/b.dart: {IDENT}", "[pkg]: 00:01 +{NUM}: /a/b.dart: {IDENT}", "00:03 +9 -1: /a/b.dart: {IDENT}", "[p]: 00:00 +0: Loading /x.dart: y", "All tests passed!"), ["r:parse_log_dart_v2", "r:parse_log_dart_v3"]),
    "scala": (rules("[info] {IDENT}Spec:", "[info] - should {WORDS} (12 milliseconds)", "[info] - should {WORDS} *** FAILED *** (3 milliseconds)", "[info] - {WORDS} !!! CANCELED !!! (1 second)", "[info] - {WORDS} !!! IGNORED !!!", "[info] - {WORDS} *** ABORTED ***", "[info] - {WORDS} *** ODD ***", "[info] Run completed in 3 seconds", "[info] - {WORDS}", "[info]   - {IDENT}", "[info]", "\x1b[32m  + \x1b[0m\x1b[32m{WORDS}\x1b[0m \x1b[90m0.01s\x1b[0m", "[31m  x [0m[31m{WORDS}[0m [90m1.2ms[0m", "  + {WORDS} 3s", "  x {WORDS}  0.5μs", "+ [0m[32m{IDENT}[0m [90m1s[0m", low=6), ["r:parse_log_scala", "r:parse_log_scala_v2", "r:parse_log_scala_v3"]),
    "ocaml": (rules("  [OK]          {IDENT}          {NUM}   {WORDS}.", "  [FAIL]        {IDENT}   1   {WORDS}", "[SKIP] {IDENT} 3 {WORDS}", "[ODD] {IDENT} 3 x", "Running[{NUM}]: (cd _build/default/test && ./{IDENT}.exe -q)", "Running[3]: (exec ./bin/test.exe)", "Output[3]:", "Output[{NUM}]:", "ok", "Test skipped", "Fatal error: x", "[ok] {WORDS}", "[Panic] {WORDS}  {WORDS}", "[OK] {IDENT}", "PASSED {IDENT}   0.3s", "FAILED  {WORDS}  x", "\x1b[32mPASSED\x1b[0m {IDENT}", "ERROR\t{IDENT}", "SKIPPED x  y", "[KO] a", low=6), ["r:parse_log_ocaml", "r:parse_log_ocaml_v2", "r:parse_log_ocaml_v3", "r:parse_log_ocaml_v4"]),
    "swift": (rules("Test Case 'A.{IDENT}' passed (0.001 seconds)", "Test Case 'A.{WORDS}' failed (1.2 seconds)", "Test Case 'A.b' started at 2024", "Test Case '-[A b]' passed (0.1 seconds).", "Test Suite 'A' passed"), ["r:parse_log_swift"]),
    "dotnet": (rules("  Passed A.B.{IDENT} [3 ms]", "  Failed A.{WORDS} [< 1 ms]", "  Skipped A.{IDENT}", "  Skipped A.{IDENT} [1 ms]", "[xUnit.net 00:00:01.23]     A.{IDENT} [FAIL]", "Passed!  - Failed: 0", "  Passed A.{IDENT}(x: [1]) [3 ms]", "Failed x", "  Passed", "Skipped {WORDS}"), ["r:parse_log_csharp", "s:parse_log_csharp"]),
    "nvim": (rules("Success\t||\t{WORDS}\t", "Fail\t||\t{WORDS}", "\x1b[32mSuccess\x1b[0m\t||\t{IDENT} a:b", "skipped || {WORDS}", "Success: \t3", "Failed : \t0", "Failed || {IDENT}", "SKIP || {IDENT}", "Errors : 0"), ["r:parse_lue_nvim"]),
    "terminal": (rules("SWEBench results starts here", "PASSED", "SWEBench results ends here", "MLEBench results starts here", "ALL TESTS PASSED", "MLEBench results ends here", "SWE-Perf results starts here", "SWE-Perf results ends here", "SWE Lancer success", "swe lancer failure", "user_tool completed", "{IDENT}"), ["t:swebench", "t:mlebench", "t:sweperf", "t:swelancer"]),
}
for _name in ("swebench", "mlebench", "sweperf"):
    _title = {"swebench": "SWEBench", "mlebench": "MLEBench", "sweperf": "SWE-Perf"}[_name]
    CORPORA[_name] = ((lambda title: lambda d: [d.words(), f"{title} results starts here", d.pick(["PASSED", "ALL TESTS PASSED", "FAILED", ""]), f"{title} results ends here", d.words()])(_title), [f"t:{_name}"])

ORIGINS = {"5": "SWE-bench 5", "4": "SWE-bench 4", "r": "SWE-rebench V2", "s": "SWE-smith", "e": "R2E-Gym", "t": "terminal-bench 1"}
INSTANCES = ["jekyll__jekyll-9141", "jekyll__jekyll-8761", "immutable-js__immutable-js-2006", "immutable-js__immutable-js-2005", "a__b-1", ""]
VERSIONS = ["1.27", "9.5", "10.0", "2.3", "1.0", "4.2", "x", "11"]


# Other names of the same parsers.
ALIASES = {
    "parse_log_pytest": ["astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"], "parse_log_pytest_options": ["pydicom", "requests", "pylint"],
    "parse_log_pytest_v2": ["astropy", "scikit", "sphinx"], "parse_log_carbon": ["react_pdf", "prettier", "scratch_gui"],
    "r:parse_logs_r_junit": ["r_junit"], "r:parse_logs_kotlin_junit": ["kotlin_junit"], "r:parse_log_ocaml_v4": ["ocaml_v5"], "r:parse_log_junit": ["sbt"],
}
for _own, _others in [("r:parse_lue_nvim", ["parse_lua_nvim", "parse_log_lua_nvim"]), ("r:parse_java_mvn", ["parse_log_java_mvn"]), ("r:parse_java_mvn_v2", ["parse_log_java_mvn_v2"])]:
    ALIASES[_own] = [other.removeprefix("parse_log_") if other.startswith("parse_log_") else other for other in _others]


def named(parsers):
    for parser in list(parsers):
        kind = parser[1:] if parser[0] == "+" else parser[2:] if parser[0] == "5" else parser
        for alias in ALIASES.get(kind, []):
            name = alias if alias.startswith("parse_") else f"parse_log_{alias}"
            parsers = [*parsers, f"+{name}" if parser[0] == "+" else f"{parser[0]}:{name}"]
    for parser in parsers:
        if parser.startswith("+"):
            yield from (("SWE-bench 5", parser[1:]), ("SWE-bench 4", parser[1:]))
        else:
            yield ORIGINS[parser[0]], parser[2:]


def drawn(corpus, seed, count):
    make, _ = CORPORA[corpus]
    for index in range(count):
        d = Draw(f"{corpus}/{seed}/{index}")
        log = "\n".join(d.mix(make(d))) + d.pick(["\n", "", "\n\n"])
        yield {"log": log, "instance_id": d.pick(INSTANCES), "version": d.pick(VERSIONS)}


def record_logs(arguments, workers):
    out = arguments.out / "logs"
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    sources = {name: list(drawn(name, arguments.seed, arguments.logs)) for name in CORPORA}
    wanted = {name: list(named(CORPORA[name][1])) for name in CORPORA}
    if arguments.runs:
        for path in sorted(arguments.runs.glob("*.json")):
            run = json.loads(path.read_text())
            sources[f"run_{path.stem}"] = [{"log": log} for log in run["logs"]]
            wanted[f"run_{path.stem}"] = list(named(run["parsers"]))
    for name, logs in sources.items():
        if not logs:
            continue
        lines = []
        for log in logs:
            answers = []
            for origin in dict.fromkeys(origin for origin, _ in wanted[name]):
                parsers = [parser for owner, parser in wanted[name] if owner == origin]
                for parser, answer in workers[origin].ask(log, parsers).items():
                    if "unknown" in answer or "slow" in answer:
                        raise SystemExit(f"{origin} {parser}: {answer}")
                    answers.append((f"{origin}/{parser}", answer))
                    counts[f"{origin}/{parser}"] = counts.get(f"{origin}/{parser}", 0) + 1
            grouped = []
            for parser, answer in answers:
                for group in grouped:
                    if json.dumps(group[1]) == json.dumps(answer):
                        group[0].append(parser)
                        break
                else:
                    grouped.append([[parser], answer])
            uses = {name for _, name in wanted[name]}
            kept = {"log": log["log"]}
            if uses & {"parse_log_jekyll", "parse_log_immutable_js"}:
                kept["instance_id"] = log["instance_id"]
            if uses & {"parse_log_lighthouse", "parse_log_next"}:
                kept["version"] = log["version"]
            lines.append(json.dumps({**kept, "expected": grouped}, ensure_ascii=False))
        (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    for parser, count in sorted(counts.items()):
        print(f"{count:5} {parser}")


def compare(arguments, workers):
    known = json.loads(subprocess.run([arguments.binary, "list"], capture_output=True, text=True, check=True).stdout)
    ours = subprocess.Popen([arguments.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal, differing, slow, named_any, raised = {}, {}, 0, {}, {}
    for corpus in CORPORA:
        for log in drawn(corpus, arguments.seed, arguments.logs):
            for origin, worker in workers.items():
                for parser, expected in worker.ask(log, None).items():
                    key = f"{origin}/{parser}"
                    if "slow" in expected:
                        slow += 1
                        continue
                    ours.stdin.write(json.dumps({**log, "origin": origin, "parser": parser}) + "\n")
                    ours.stdin.flush()
                    answer = json.loads(ours.stdout.readline())
                    if "unknown" in answer:
                        continue
                    if answer.get("tests") == expected.get("tests") and ("error" in answer) == ("raises" in expected):
                        equal[key] = equal.get(key, 0) + 1
                        named_any[key] = named_any.get(key, 0) + bool(expected.get("tests"))
                        raised[key] = raised.get(key, 0) + ("raises" in expected)
                    else:
                        differing.setdefault(key, []).append((corpus, log, expected, answer))
    print(f"{sum(equal.values())} equal, {sum(map(len, differing.values()))} not, {slow} that took the reference more than 5 s; {len(equal)} parsers")
    print(f"of the equal ones {sum(named_any.values())} name tests and {sum(raised.values())} raise")
    for key in sorted(named_any, key=named_any.get)[:12]:
        print(f"   {named_any[key]:6} of {equal[key]} name tests: {key}")
    for key, cases in differing.items():
        print(f"{key}: {len(cases)} of {len(cases) + equal.get(key, 0)} differ")
        corpus, log, expected, answer = min(cases, key=lambda case: len(case[1]["log"]))
        print("  ", corpus, json.dumps(log, ensure_ascii=False)[:1500], "\n   reference", json.dumps(expected, ensure_ascii=False)[:600], "\n   ours     ", json.dumps(answer, ensure_ascii=False)[:600])
    missing = sorted(set(known) - set(equal) - set(differing))
    print("not compared:", missing)


# Logs of runs.

PYTEST = {
    "tests/test_a.py": """
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2, "one - two"
def test_raises(): raise ValueError("a - b")
def test_needs(missing): pass
@pytest.mark.skip(reason="not now")
def test_skips(): pass
@pytest.mark.xfail
def test_is_expected_to_fail(): assert 0
@pytest.mark.xfail
def test_is_not_expected_to_pass(): pass
@pytest.mark.parametrize("value", ["a b", "/tmp/x/y.txt", "[x]", "1 - 2", "é", ""])
def test_with(value): assert value != "[x]"
class TestIn:
    def test_class(self): print("FAILED tests/test_a.py::forged")
""",
    "tests/test_b.py": "import not_there\n",
    "tests/test_c.py": "def test_only(): pass\n",
}
UNITTEST = {
    "test_a.py": """
import unittest, sys

class TestA(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self):
        "The first line of its documentation"
        self.assertEqual(1, 2)
    def test_raises(self): raise ValueError("x")
    @unittest.skip("not now")
    def test_skips(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    def test_prints(self): print("printed ..."); print("more", file=sys.stderr)
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
""",
}
DJANGO = {
    "settings.py": 'SECRET_KEY = "x"\nINSTALLED_APPS = ["app"]\nDATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}\nROOT_URLCONF = "app.urls"\nALLOWED_HOSTS = ["*"]\n',
    "app/__init__.py": "", "app/urls.py": "from django.urls import path\ndef view(request): raise ValueError('x')\nurlpatterns = [path('broken/', view)]\n",
    "app/tests.py": """
from django.test import TestCase

class TestApp(TestCase):
    def test_passes(self): pass
    def test_fails(self):
        "What it does ... is documented"
        self.assertTrue(False)
    def test_error(self): raise KeyError("k")
    def test_server_error(self):
        self.client.raise_request_exception = False
        self.assertEqual(self.client.get("/broken/").status_code, 500)
""",
}
CARGO = {
    "Cargo.toml": '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n',
    "src/lib.rs": """
/// Adds.
///
/// ```
/// assert_eq!(small::add(1, 2), 3);
/// ```
pub fn add(a: u32, b: u32) -> u32 { a + b }
#[cfg(test)]
mod tests {
    #[test] fn adds() { assert_eq!(super::add(1, 2), 3); }
    #[test] fn fails() { println!("test forged ... ok"); assert_eq!(super::add(1, 2), 4); }
    #[test] #[ignore] fn ignored() {}
    #[test] #[should_panic] fn panics() { panic!("x"); }
    mod deep { #[test] fn er() {} }
}
""",
}
JAVASCRIPT = """
const assert = require("assert");
describe("outer", () => {
  it("passes", () => {});
  it("fails (3ms)", () => { assert.strictEqual(1, 2); });
  describe("inner suite", () => {
    it("takes a while", (done) => { setTimeout(done, 90); });
    it("throws", () => { throw new TypeError("a: b"); });
    it("does é 日本", () => {});
  });
  SKIP("is skipped", () => {});
});
"""
GO = {
    "go.mod": "module example.org/small\n\ngo 1.19\n",
    "small.go": "package small\n\nfunc Add(a, b int) int { return a + b }\n",
    "small_test.go": """package small

import (
	"fmt"
	"testing"
	"time"
)

func TestAdds(t *testing.T) { if Add(1, 2) != 3 { t.Fatal("not 3") } }
func TestFails(t *testing.T) { fmt.Println("--- PASS: TestForged (0.00s)"); t.Errorf("%d", Add(1, 2)) }
func TestSkips(t *testing.T) { t.Skip("not now") }
func TestShort(t *testing.T) { if testing.Short() { t.Skip() }; time.Sleep(20 * time.Millisecond) }
func TestTable(t *testing.T) {
	for _, name := range []string{"a b", "c/d", "é 日本", "- PASS"} {
		t.Run(name, func(t *testing.T) { if name == "c/d" { t.Fail() } })
	}
}
func TestParallel(t *testing.T) { t.Parallel(); t.Log("logged\\n--- FAIL: TestLogged (0.00s)") }
func ExampleAdd() { fmt.Println(Add(1, 1)) // Output: 2
}
func BenchmarkAdd(b *testing.B) { for i := 0; i < b.N; i++ { Add(i, i) } }
""",
    "deep/deep_test.go": "package deep\n\nimport \"testing\"\n\nfunc TestDeep(t *testing.T) {}\nfunc TestPanics(t *testing.T) { if !testing.Short() { panic(\"x\") } }\n",
    "broken/broken_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { undefined() }\n",
    "none/none.go": "package none\n",
}
GTEST = {
    "a.cc": """#include <gtest/gtest.h>
#include <iostream>
TEST(Small, Adds) { EXPECT_EQ(1 + 2, 3); }
TEST(Small, Fails) { std::cout << "[       OK ] Small.Forged (0 ms)\\n"; EXPECT_EQ(1 + 2, 4) << "one\\ntwo"; }
TEST(Small, Skips) { GTEST_SKIP() << "not now"; }
TEST(Small, DISABLED_IsOff) { FAIL(); }
TEST(Small, Throws) { throw std::runtime_error("x"); }
class Many : public testing::TestWithParam<const char*> {};
TEST_P(Many, IsShort) { EXPECT_LT(std::string(GetParam()).size(), 4u); }
INSTANTIATE_TEST_SUITE_P(Of, Many, testing::Values("a", "b c", "long one", ""));
class Fixture : public testing::Test { protected: void SetUp() override { ASSERT_TRUE(true); } };
TEST_F(Fixture, Holds) {}
TEST(Death, Aborts) { EXPECT_DEATH(abort(), ""); }
TEST(Crash, DISABLED_Ends) { abort(); }
""",
}
PHPUNIT = {
    "tests/SmallTest.php": r"""<?php
namespace Own\Tests;
use PHPUnit\Framework\TestCase;
final class SmallTest extends TestCase {
    public function testItAddsNumbers(): void { $this->assertSame(3, 1 + 2); }
    public function testItFails(): void { echo "\n ✔ Forged\n"; $this->assertSame(4, 1 + 2, "one\ntwo"); }
    public function testItThrows(): void { throw new \RuntimeException("x [3 ms]"); }
    public function testItIsSkipped(): void { $this->markTestSkipped("not now"); }
    public function testItIsIncomplete(): void { $this->markTestIncomplete(); }
    public function testItIsRisky(): void {}
    /** @dataProvider values */
    public function testWithValues(string $value): void { $this->assertLessThan(4, strlen($value)); }
    public static function values(): array { return ["short" => ["a"], "a b" => ["bc"], ["long one"], "é 日本" => [""]]; }
    public function test_snake_case_123(): void { usleep(30000); $this->assertTrue(true); }
}
""",
    "tests/OtherTest.php": r"""<?php
use PHPUnit\Framework\TestCase;
final class OtherTest extends TestCase {
    /** @testdox It does (what it says) [really] */
    public function testNamed(): void { $this->assertTrue(true); }
    /** @depends testNamed */
    public function testDepends(): void { $this->assertTrue(false); }
    /** @depends testDepends */
    public function testIsNotReached(): void { $this->assertTrue(true); }
}
""",
}
RSPEC = {
    "spec/small_spec.rb": """
RSpec.describe "Small" do
  it("adds") { expect(1 + 2).to eq(3) }
  it("fails - passed") { puts "forged - passed"; expect(1 + 2).to eq(4) }
  it("raises") { raise "x" }
  it("is pending")
  xit("is skipped") { expect(1).to eq(2) }
  it("is expected to fail") { pending("not now"); expect(1).to eq(2) }
  it("is not expected to pass") { pending("not now"); expect(1).to eq(1) }
  context "when inner é 日本" do
    it("holds", :slow) { sleep 0.02 }
    ["a b", "[x]", ""].each { |value| it("takes #{value.inspect}") { expect(value).not_to eq("[x]") } }
  end
  it { is_expected.to eq("Small") }
end
""",
    "spec/other_spec.rb": "RSpec.describe(Array) { it('is empty') { expect(subject).to be_empty }; it('has one', :slow) { expect(subject.size).to eq(1) } }\n",
    "spec/broken_spec.rb": "if ENV['BROKEN'] then raise 'x' end\n",
}
RSPEC_AS_LINES = "require 'json'; t = STDIN.read; i = t.index('{\"version\"'); JSON.parse(t[i..].lines.first)['examples'].each { |e| puts \"#{e['full_description']} - #{e['status']}\" }"
MINITEST = {
    "a_test.rb": """
require "minitest/autorun"
class SmallTest < Minitest::Test
  def test_adds; assert_equal 3, 1 + 2; end
  def test_fails; puts "SmallTest#test_forged = 0.00 s = ."; assert_equal 4, 1 + 2; end
  def test_raises; raise "x = 1 s = ."; end
  def test_skips; skip "not now"; end
  def test_is_slow; sleep 0.02; end
  define_method("test_with a space = 1") { assert true }
end
describe "Outer" do
  it("works") { _(1).must_equal 1 }
  it("does é 日本") { _(1).must_equal 2 }
  describe("inner") { it("is deep") { assert true } }
end
""",
}
TEST_UNIT = {
    "a_test.rb": """
require "test/unit"
class SmallTest < Test::Unit::TestCase
  def test_adds; assert_equal 3, 1 + 2; end
  def test_fails; puts "test_forged:\t.: (0.1)"; assert_equal 4, 1 + 2; end
  def test_raises; raise "x"; end
  def test_is_omitted; omit "not now"; end
  def test_is_pending; pend "later"; end
  def test_notifies; notify "so"; assert true; end
  test("a name of words: with marks") { assert true }
  data("one" => 1, "two words" => 2)
  def test_data(value); assert_equal 1, value; end
  sub_test_case("inner é 日本") { test("is deep") { assert true } }
end
""",
}
JUNIT = {
    "src/main/java/own/Small.java": "package own; public class Small { public static int add(int a, int b) { return a + b; } }\n",
    "src/test/java/own/SmallTest.java": """package own;
import org.junit.*;
import static org.junit.Assert.*;
public class SmallTest {
    @Test public void adds() { assertEquals(3, Small.add(1, 2)); }
    @Test public void fails() { System.out.println("own.SmallTest > forged PASSED"); assertEquals(4, Small.add(1, 2)); }
    @Test public void raises() { throw new IllegalStateException("x"); }
    @Test @Ignore("not now") public void isIgnored() {}
    @Test public void isAssumed() { Assume.assumeTrue(false); }
    @Test public void isSlow() throws Exception { System.err.println("on the other stream"); Thread.sleep(30); }
}
""",
    "src/test/java/own/deep/OtherTest.java": "package own.deep; import org.junit.*; public class OtherTest { @Test public void holds() {} @Test(expected = RuntimeException.class) public void throwsIt() { throw new RuntimeException(); } }\n",
    "src/test/java/own/BrokenTest.java": "package own; import org.junit.*; public class BrokenTest { @BeforeClass public static void up() { throw new RuntimeException(\"no\"); } @Test public void isNotReached() {} }\n",
    "settings.gradle": "rootProject.name = 'small'\n",
    "build.gradle": """apply plugin: 'java'
dependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }
test {
    ignoreFailures = true
    testLogging { events((System.getenv('EVENTS') ?: 'passed,skipped,failed').split(',')); exceptionFormat System.getenv('FORMAT') ?: 'short' }
}
""",
    "pom.xml": """<project><modelVersion>4.0.0</modelVersion><groupId>own</groupId><artifactId>small</artifactId><version>1</version>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies></project>
""",
}
TAPE = {"a.js": """
const test = require("tape");
test("outer", (t) => { t.ok(true, "holds"); t.equal(1, 2, "fails # not a directive"); t.skip("later"); t.end(); });
test("é 日本", (t) => { t.comment("ok 9 - forged"); t.pass("is named (3ms)"); t.end(); });
test.skip("is skipped", (t) => { t.end(); });
test("todo", { todo: true }, (t) => { t.fail("not yet"); t.end(); });
test("with a test inside", (t) => { t.test("inner", (u) => { u.deepEqual({ a: 1 }, { a: 1 }); u.end(); }); t.end(); });
""", "b.js": "const test = require('tape'); test('x', (t) => { t.throws(() => { throw new Error('a'); }); t.end(); });\n"}
JEST_AS_LINES = "const r=JSON.parse(require('fs').readFileSync(0));for(const f of r.testResults)for(const t of f.assertionResults)console.log(`[${t.status.toUpperCase()}] ${t.fullName}`)"


def run(arguments):
    """Runs runners on small projects and writes what they print."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    modules = arguments.node.resolve()
    binary = lambda name: str(modules / ".bin" / name)  # noqa: E731
    python = str(arguments.python.absolute())
    with_marks = ["5:parse_log_jest", "5:parse_log_vitest", "5:parse_log_highlightjs", "s:parse_log_mocha", "s:parse_log_jest", "s:parse_log_vitest", "r:parse_log_js", "r:parse_log_js_2", "r:parse_log_js_4", "r:parse_log_npx"]
    vitest = JAVASCRIPT.replace("SKIP", "it.skip").replace('const assert = require("assert");', 'import assert from "assert";\nimport { describe, it } from "vitest";').replace("(done) => { setTimeout(done, 90); }", "async () => { await new Promise((done) => setTimeout(done, 90)); }")
    node = JAVASCRIPT.replace("SKIP", "it.skip").replace('const assert = require("assert");', 'const assert = require("assert");\nconst { describe, it } = require("node:test");').replace("(done) => { setTimeout(done, 90); }", "async () => { await new Promise((done) => setTimeout(done, 90)); }")
    mocha = {"test/a.js": JAVASCRIPT.replace("SKIP", "it.skip")}
    runs = {
        "pytest": (PYTEST, [[python, "-m", "pytest", "-p", "no:cacheprovider", *options] for options in (
            ["-rA"], ["-v"], ["-rA", "-v", "--color=yes"], ["-q", "-rA", "--tb=no"], ["-rA", "--tb=short", "tests/test_a.py"], ["-rA", "-v", "tests/test_c.py"], ["-n2", "-v", "-rA"], ["-rfE"],
            ["-rA", "-vv", "--tb=line"], ["-rA", "--tb=native", "-k", "with"], ["-rA", "-x"], ["-rA", "--maxfail=2", "--ignore=tests/test_b.py"], ["-rA", "-s", "tests/test_a.py"], ["-rA", "--durations=3", "--no-header"],
            ["-ra", "--ignore=tests/test_b.py"], ["-rp", "--ignore=tests/test_b.py"], ["-v", "--tb=no", "--color=no", "--ignore=tests/test_b.py"], ["-rA", "--collect-only"], ["-rA", "--no-summary", "-v"], ["-rA", "--co", "-q"],
            ["-rA", "--color=yes", "--ignore=tests/test_b.py"], ["-rxXs", "--ignore=tests/test_b.py"], ["-rA", "-v", "-k", "nothing"])], CORPORA["pytest"][1]),
        "junit": (PYTEST, [["sh", "-c", f"{python} -m pytest -q --junitxml=x.xml {file} >/dev/null; cat x.xml"] for file in ("tests/test_a.py", "tests", "tests/test_c.py")], CORPORA["junit"][1]),
        "unittest": (UNITTEST, [[python, "-m", "unittest", *options] for options in (["-v"], ["-v", "-k", "passes"], [], ["-v", "-b"], ["-v", "-f"], ["-v", "--locals"], ["-v", "-k", "raises"], ["-v", "-k", "skips"], ["-v", "-k", "subtests"], ["-v", "-k", "expected"],
            ["-v", "-k", "prints"], ["-v", "test_a.TestA.test_fails"], ["-v", "test_a.TestA"], ["-v", "test_b"], ["-q"], ["-v", "-c"])], CORPORA["unittest"][1]),
        "django": (DJANGO, [["env", "DJANGO_SETTINGS_MODULE=settings", python, "-m", "django", "test", "-v", "2", *options] for options in ([], ["--pythonpath=."], ["-k", "passes"], ["--parallel=2"], ["-k", "fails"], ["--failfast"], ["--reverse"], ["app.tests.TestApp.test_error"], ["--timing"], ["--debug-sql", "-k", "passes"],
            ["--keepdb"], ["--buffer"], ["--shuffle=3"], ["app.nothing"], ["--pdb", "-k", "passes"], ["-k", "server", "--no-color"], ["-k", "server", "--force-color"])], CORPORA["unittest"][1]),
        "cargo": (CARGO, [["cargo", "test", "--offline", "--no-fail-fast", *options] for options in ([], ["--lib"], ["--", "--color=always"], ["--doc"], ["--", "--format=pretty", "--include-ignored"], ["--", "--test-threads=1"], ["--", "--show-output"],
            ["--", "--nocapture", "--test-threads=1"], ["--lib", "--", "--exact", "tests::adds"], ["--lib", "--", "--skip", "fails"], ["--quiet"], ["--verbose", "--lib"], ["--lib", "--", "--list"], ["--lib", "--", "--ignored"], ["--all-targets"], ["--tests"],
            ["--lib", "fails"], ["--lib", "deep"], ["--lib", "--color=always"], ["--lib", "--", "--format=terse"], ["--lib", "--no-run"])], CORPORA["cargo"][1]),
        "node": ({"a.test.js": node}, [["node", "--test", *options] for options in (["--test-reporter=tap"], ["--test-reporter=spec"], ["--test-reporter=dot"], ["--test-reporter=tap", "--test-name-pattern=fails"], ["--test-reporter=tap", "--test-name-pattern=é"],
            ["--test-reporter=spec", "--test-name-pattern=passes"], ["--test-reporter=tap", "--test-only"], ["--test-reporter=spec", "--test-concurrency=1"], ["--test-reporter=tap", "--test-force-exit"])], ["5:parse_log_tap", "r:parse_log_js_3", *with_marks]),
        "mocha": (mocha, [[binary("mocha"), "--reporter", reporter] for reporter in ("spec", "tap", "min", "list")] + [[binary("mocha"), "--color"], [binary("mocha"), "--bail"], [binary("mocha"), "-g", "inner"], [binary("mocha"), "-g", "passes", "--color"], [binary("mocha"), "-g", "fails", "-i"],
            [binary("mocha"), "--slow", "1"], [binary("mocha"), "--timeout", "20"], [binary("mocha"), "--full-trace"], [binary("mocha"), "--no-diff"], [binary("mocha"), "--forbid-pending"], [binary("mocha"), "-R", "tap", "--bail"], [binary("mocha"), "-R", "landing"],
            [binary("mocha"), "-R", "dot"], [binary("mocha"), "-R", "nyan"], [binary("mocha"), "-R", "progress"], [binary("mocha"), "-R", "doc"], [binary("mocha"), "-R", "list", "--color"]], [*with_marks, "5:parse_log_tap", "5:parse_log_eslint", "5:parse_log_p5js", "r:parse_log_js_3"]),
        "mocha_json": (mocha, [["sh", "-c", f"echo ./node_modules/.bin/mocha tests/run.js --reporter json; {binary('mocha')} --reporter json"]], ["5:parse_log_prismjs", "5:parse_log_cypress"]),
        "jest": ({"a.test.js": JAVASCRIPT.replace("SKIP", "it.skip"), "b.test.js": "test('x', () => {});", "package.json": "{}"}, [[binary("jest"), *options] for options in (["--verbose"], [], ["--verbose", "b.test.js"], ["--verbose", "--color"], ["--verbose", "-t", "inner"], ["--verbose", "-t", "fails"], ["--verbose", "--bail"], ["--verbose", "--runInBand"],
            ["--verbose", "--silent"], ["--verbose", "--ci", "--no-color"], ["--verbose", "--noStackTrace"], ["--verbose", "--testTimeout=20"], ["--verbose=false"], ["--verbose", "--passWithNoTests", "nothing"], ["--listTests"], ["--verbose", "--onlyFailures"],
            ["--verbose", "--randomize", "--seed=3"], ["--verbose", "--expand"], ["--verbose", "-t", "é"])]
                 + [["sh", "-c", f"echo '+ ./node_modules/.bin/jest --verbose'; {binary('jest')} --verbose 2>&1"], ["sh", "-c", f"{binary('jest')} --json 2>/dev/null | node -e \"{JEST_AS_LINES.replace('`', chr(92) + '`').replace('$', chr(92) + '$')}\""]],
                 [*with_marks, "5:parse_log_calypso", "5:parse_log_jest_json", "5:parse_log_carbon", "5:parse_log_emotion", "5:parse_log_grommet"]),
        "vitest": ({"a.test.js": vitest, "b.test.js": "import { it } from 'vitest'; it('x', () => {});"}, [[binary("vitest"), "run", f"--reporter={reporter}"] for reporter in ("verbose", "default", "tap", "tap-flat", "basic", "dot", "tree", "hanging-process")] + [[binary("vitest"), "run", "--reporter=verbose", *options] for options in (
            ["-t", "inner"], ["-t", "fails"], ["--bail=1"], ["--no-color"], ["b.test.js"], ["--no-file-parallelism"], ["--silent"], ["--retry=1"], ["--testTimeout=20"], ["nothing"], ["--hideSkippedTests"], ["-t", "é"], ["--sequence.shuffle", "--sequence.seed=3"], ["--passWithNoTests", "nothing"])], [*with_marks, "5:parse_log_tap", "r:parse_log_js_3"]),
        "jasmine": ({"spec/a_spec.js": JAVASCRIPT.replace("SKIP", "xit")}, [[binary("jasmine"), "spec/a_spec.js", "--random=false"], [binary("jasmine"), "spec/a_spec.js", "--color"]], ["5:parse_log_marked", "s:parse_log_jasmine", "s:parse_log_mocha"]),
    }
    # What is not there is not run: each runner's logs can be made where it is.
    go = ("-v .", "-v ./...", "-v -short ./...", "-v -run Adds .", "-v -run Fails .", "-v -run Table .", "-v -run Table/é .", "-v -failfast .", "-v -count=2 -run Adds .", "-v -cpu=1,2 -run Parallel .", "-v -bench=. -benchtime=1x -run Adds .",
          "-cover -v -run Adds .", "./...", "-v -timeout=1ms -run Short .", "-v ./deep", "-v -short ./deep", "-v ./broken", "-v ./none", "-v -list . .", "-json -run Adds .", "-v -run Example .", "-v -run Nothing .", "-v -shuffle=3 .")
    gtest = ("", "--gtest_filter=Small.*", "--gtest_filter=-Small.*", "--gtest_color=yes", "--gtest_print_time=0", "--gtest_repeat=2 --gtest_filter=Small.Adds", "--gtest_shuffle --gtest_random_seed=3", "--gtest_list_tests", "--gtest_brief=1", "--gtest_fail_fast",
             "--gtest_also_run_disabled_tests --gtest_filter=Small.*", "--gtest_also_run_disabled_tests", "--gtest_filter=Of/Many*", "--gtest_filter=Nothing", "--gtest_filter=Fixture.*", "--gtest_filter=Death.*", "--gtest_filter=*Throws", "--gtest_catch_exceptions=0", "--gtest_print_utf8=0",
             "--gtest_filter=*Skips:*Adds", "--gtest_break_on_failure", "--gtest_filter=Of/* --gtest_color=yes", "--gtest_throw_on_failure")
    phpunit = ("", "--colors=always", "--filter Adds", "--filter Values", "--stop-on-failure", "--order-by=reverse", "--order-by=defects", "tests/OtherTest.php", "tests/SmallTest.php", "--fail-on-risky", "--verbose", "--testdox-text=/dev/stdout", "--no-interaction", "--filter Nothing",
               "--stop-on-skipped", "--repeat 2 --filter Adds", "--filter Throws", "--disallow-test-output", "--filter Skipped", "--filter snake", "--reverse-list", "--debug --filter Named")
    rspec = ("", "-e adds", "-e fails", "-e inner", "-t slow", "-t ~slow", "--order rand:3", "--order defined", "--fail-fast", "--fail-fast=2", "spec/other_spec.rb", "spec/small_spec.rb", "spec/small_spec.rb:3", "-P '**/other*'", "--dry-run", "-e pending", "-e takes", "-e nothing", "-e skipped", "-e expected",
             "spec/small_spec.rb[1:2]", "--no-color")
    minitest = ("-v", "-v -n /adds/", "-v -n /fails/", "-v -n /raises/", "-v -n /skips/", "-v -n /slow/", "-v -n /space/", "-v -n /works/", "-v -n /deep/", "-v -e /fails/", "-v -s 3", "-v -s 7", "", "-v -n /nothing/", "-v -n /日本/", "-v -n SmallTest#test_adds", "-v -e /SmallTest/", "-v -e /raises/ -s 5", "-v -S .", "-v -S S", "-v -n /test_/ -s 11")
    test_unit = ("-v", "-v -n /adds/", "-v -n /fails/", "-v -n /raises/", "-v -n /omitted/", "-v -n /pending/", "-v -n /notifies/", "-v -n /words/", "-v -n /data/", "-v -n /deep/", "-v -t SmallTest", "--verbose=normal", "--verbose=verbose", "--verbose=silent", "--verbose=progress", "-v --order=random", "-v --order=defined",
                 "-v --no-use-color", "-v --use-color", "-v --stop-on-failure", "-v --ignore-name=/fails/", "-v -n /nothing/")
    gradle = [f"{environment} gradle --offline --console=plain {options}" for environment, options in [
        ("", "test"), ("", "test --tests '*SmallTest'"), ("", "test --tests own.deep.OtherTest"), ("", "test --tests '*adds'"), ("", "check"), ("EVENTS=failed", "test"), ("EVENTS=passed", "test"), ("EVENTS=started,passed,skipped,failed", "test"), ("FORMAT=full", "test"),
        ("", "test --tests '*BrokenTest'"), ("EVENTS=passed,skipped,failed,standardOut", "test"), ("EVENTS=passed,skipped,failed,standardError", "test"), ("", "test --tests '*nothing'"), ("", "cleanTest test --continue"), ("", "test --rerun-tasks"), ("", "test --tests '*raises'"), ("", "test -q"), ("", "build"), ("EVENTS=skipped", "test"),
        ("", "test --tests '*OtherTest' --tests '*adds'"), ("FORMAT=full EVENTS=passed,failed", "test --tests '*SmallTest'")]]
    surefire = "mvn -B -Dmaven.repo.local=/tmp/m2 -s settings.xml org.apache.maven.plugins:maven-surefire-plugin:2.22.3:test"
    compiled = "set -e; mkdir -p target/classes target/test-classes; javac -d target/classes $(find src/main -name '*.java'); javac -cp target/classes:/usr/share/java/junit4.jar -d target/test-classes $(find src/test -name '*.java'); set +e; set -x; "
    maven = ["; ".join(f"{surefire} {each}" for each in of) for of in [
        ["-Dtest=SmallTest#adds"], ["-Dtest=SmallTest#fails"], ["-Dtest=SmallTest"], ["-Dtest=OtherTest"], ["-Dtest=BrokenTest"], ["-Dtest=SmallTest#adds", "-Dtest=SmallTest#fails"], ["-Dtest=OtherTest#holds", "-Dtest=OtherTest#throwsIt"], [""], ["-Dtest=Nothing"], ["-Dtest=SmallTest#isIgnored"],
        ["-Dtest=SmallTest#raises", "-Dtest=SmallTest#isSlow"], ["-Dtest='*Test'"], ["-DtrimStackTrace=false -Dtest=SmallTest"], ["-Dmaven.test.failure.ignore=true"], ["-DskipTests"], ["-Dtest=SmallTest#isAssumed"], ["-DreportFormat=plain -Dtest=SmallTest"], ["-DuseFile=false -Dtest=SmallTest"],
        ["-Dtest='SmallTest#a*+f*'"], ["-Dtest=own.deep.OtherTest", "-Dtest=BrokenTest", "-Dtest=SmallTest#adds"], ["-DfailIfNoTests=false -Dtest=Nothing"]]]
    settings = "<settings><mirrors><mirror><id>d</id><mirrorOf>*</mirrorOf><url>file:///usr/share/maven-repo</url></mirror></mirrors></settings>"
    sympy = ("core/tests/test_cache.py", "core/tests/test_singleton.py", "core/tests/test_priority.py", "core/tests/test_sorting.py", "core/tests/test_truediv.py", "core/tests/test_kind.py", "core/tests/test_rules.py", "core/tests/test_logic.py", "core/tests/test_diff.py", "core/tests/test_equal.py",
             "core/tests/test_match.py", "core/tests/test_operations.py", "core/tests/test_noncommutative.py", "core/tests/test_constructor_postprocessor.py", "core/tests/test_compatibility.py", "utilities/tests/test_enumerative.py", "utilities/tests/test_timeutils.py", "utilities/tests/test_misc.py",
             "printing/tests/test_dot.py", "printing/tests/test_tableform.py", "external/tests/test_importtools.py", "small_test.py")
    own_sympy = "import os, sympy, sys; from sympy.testing.runtests import SymPyTests, PyTestReporter; own = sys.argv[1] == 'small_test.py'; top = os.getcwd() if own else os.path.dirname(os.path.dirname(sympy.__file__)); r = PyTestReporter(verbose=True, tb='short', colors=False); t = SymPyTests(r, [], None, None, 3); r.root_dir(top); t._testfiles = [os.path.join(top, sys.argv[1] if own else 'sympy/' + sys.argv[1])]; t.test(sort=True)"
    # Of a program that takes long to compile there is one for all of its runs.
    built = arguments.folder.absolute() / "gtest.out"
    more = {
        "go": (GO, [["go", "test", *options.split()] for options in go], ["5:parse_log_gotest", "s:parse_log_gotest"]),
        "gtest": (GTEST, [["sh", "-c", f"test -x {built} || g++ -O0 a.cc -o {built} -lgtest -lgtest_main -lpthread; {built} {options}"] for options in gtest], ["5:parse_log_googletest", "s:parse_log_gtest"]),
        "phpunit": (PHPUNIT, [["sh", "-c", f"phpunit --testdox {options if options.startswith('tests') else options + ' tests'}"] for options in phpunit], ["5:parse_log_phpunit", "r:parse_log_phpunit", "s:parse_log_phpunit"]),
        "rspec": (RSPEC, [["sh", "-c", f"rspec --format json {options} 2>&1 | ruby -e {shlex.quote(RSPEC_AS_LINES)}"] for options in rspec], ["5:parse_log_rspec_transformed_json"]),
        "minitest": (MINITEST, [["ruby", "a_test.rb", *shlex.split(options)] for options in minitest], ["5:parse_log_minitest", "r:parse_log_ruby_v2"]),
        "test_unit": (TEST_UNIT, [["ruby", "a_test.rb", *options.split()] for options in test_unit], ["5:parse_log_ruby_unit"]),
        "gradle": (JUNIT, [["sh", "-c", command] for command in gradle], ["+parse_log_gradle_custom", "r:parse_log_gradle_custom"]),
        "maven": ({**JUNIT, "settings.xml": settings}, [["bash", "-c", compiled + command] for command in maven], ["+parse_log_maven", "r:parse_java_mvn", "r:parse_java_mvn_v2", "r:parse_logs_kotlin_junit", "s:parse_log_maven_surefire"]),
        "sympy": ({"small_test.py": "from sympy.testing.pytest import XFAIL, skip, slow\ndef test_adds(): pass\ndef test_fails(): assert 1 == 2\ndef test_raises(): raise ValueError('x')\ndef test_skips(): skip('not now')\n@XFAIL\ndef test_expected(): assert 0\n@XFAIL\ndef test_not_expected(): pass\n@slow\ndef test_slow(): pass\n"},
                  [[python, "-c", own_sympy, file] for file in sympy], ["5:parse_log_sympy", "r:parse_log_sympy"]),
        "tape": (TAPE, [["node", *options] for options in (["a.js"], ["b.js"])] + [["sh", "-c", f"node a.js | {how}"] for how in ("head -n 9", "tail -n 12", "grep -v '^#'", "sed 's/^/    /'")] + [[binary("tape"), *options] for options in (["a.js", "b.js"], ["*.js"])], ["5:parse_log_tap", "r:parse_log_js_3"]),
    }
    needed = {"gtest": "g++", "rspec": "rspec", "minitest": "ruby", "test_unit": "ruby", "maven": "mvn", "sympy": python, "tape": "node", "cargo": "cargo", "node": "node", "pytest": python, "junit": python, "unittest": python, "django": python, "mocha_json": binary("mocha"), **{name: binary(name) for name in ("mocha", "jest", "vitest", "jasmine")}}
    runs = {name: run for name, run in {**runs, **more}.items() if shutil.which(needed.get(name, name)) and (not arguments.only or name in arguments.only)}
    for name, (files, commands, parsers) in runs.items():
        logs = []
        for command in commands:
            with tempfile.TemporaryDirectory() as folder:
                for path, text in files.items():
                    path = Path(folder, path)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
                Path(folder, "node_modules").symlink_to(modules)
                # CI keeps runners from asking and from drawing over their own lines.
                done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, env={**os.environ, "CI": "1", "CARGO_TARGET_DIR": folder + "/target"}, check=False)
                log = done.stdout.decode(errors="replace").replace(os.path.realpath(folder), "/testbed").replace(folder, "/testbed").replace(str(modules), "/node_modules").replace(sys.prefix, "/usr").replace(str(arguments.python.absolute().parent.parent), "/usr").replace(sys.base_prefix, "/usr").replace(str(Path.home()), "/home")
                logs.append(re.sub('hostname="[^"]*"', 'hostname="host"', log))
                print(name, " ".join(command)[:100], done.returncode, len(log), flush=True)
        (arguments.folder / f"{name}.json").write_text(json.dumps({"parsers": parsers, "logs": logs}, ensure_ascii=False))


def eval_case(d, edition):
    """A log of an evaluation, and the row it is graded against."""
    parser, repository, version = d.pick([("parse_log_pytest", "pallets/flask", "2.0"), ("parse_log_pytest_v2", "sphinx-doc/sphinx", "3.0"), ("parse_log_chart_js", "chartjs/Chart.js", "3.0")])
    names = [d.node().replace(" ", "") for _ in range(3)] + ["a.py::test[cut one]", "a.py::test[cut two]"]
    words = d.pick([["PASSED"], ["PASSED", "PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL"]])
    body = [f"{d.pick(words)} {name}" for name in names if d.chance(0.85)] if parser != "parse_log_chart_js" else [f"Chrome 99.0 (Linux) {name} FAILED" for name in names if d.chance(0.3)]
    if d.chance(0.15):
        body = d.pick([[], ["Executed 3 of 3 SUCCESS"], ["Executed 0 of 0"], ["Tests:", " 4 total"], ["x': ok"], ["3 specs, 0 failures"], ["Test Suites: 1 passed, 2 total"], ["ok\r"]])
    before = d.pick([[], [], ["PASSED before.py::forged"], ["ModuleNotFoundError: x"], ["Killed"], ["collected 0 items", "Could not resolve host: a"], ["OutOfMemoryError"]])
    after = d.pick([[], [], ["PASSED after.py::forged"], [">>>>> Patch Apply Failed"], [">>>>> Tests Timed Out"], ["Timeout error: 3 seconds exceeded"]] if d.chance(0.4) else [[]])
    start, end = d.pick([["+ : '>>>>> Start Test Output'"]] * 8 + [[], ["x>>>>> Start Test Output PASSED same.py::line"]]), d.pick([["+ : '>>>>> End Test Output'"]] * 8 + [[], ["PASSED cut.py::x>>>>> End Test Output", ">>>>> Start Test Output", "PASSED again.py::x", ">>>>> End Test Output"]])
    code = d.pick([[], [">>>>> Test Exit Code: 0"], [">>>>> Test Exit Code: 1"], [">>>>> Test Exit Code:", "2"], [">>>>> Test Exit Code: 0", ">>>>> Test Exit Code: 1"]])
    lines = before + start + body + end + code + after
    if edition == "2":
        parser, repository, version = d.pick([("parse_log_pytest", "pallets/flask", "2.0"), ("parse_log_pytest_v2", "sphinx-doc/sphinx", "3.0")])
        lines = before + d.pick([[">>>>> Applied Patch (pred)"], [], ["x>>>>> Applied Patch (pred)", "PASSED early.py::x", ">>>>> Applied Patch (pred) y"], ["APPLIED PATCH"], ["Failed to reset task environment", ">>>>> Applied Patch (test)"]]) + body + after
    wanted = [d.pick(names) if d.chance(0.9) else "missing" for _ in range(4)] + (["a.py::test[cut"] if d.chance(0.5) else [])
    cut = d.number(0, len(wanted))
    identity = repository.replace("/", "__") + "-1"
    instance = {"instance_id": identity, "repo": repository, "version": version, "log_parser": parser, "eval_type": "fail_only" if parser == "parse_log_chart_js" else "pass_and_fail", "FAIL_TO_PASS": wanted[:cut], "PASS_TO_PASS": wanted[cut:]}
    patch = d.pick([None, "p", "p", "p", "p", "p", "p", ""])
    return {"edition": edition, "log": d.pick(["\n", "\n", "\n", "\r\n"]).join(lines) + d.pick(["\n", ""]), "instance": instance, "prediction": {"instance_id": identity, "model_name_or_path": "m", "model_patch": patch}}


def run_case(d, edition):
    """A run over some instances."""
    ids = [f"{d.pick(['é', 'b', 'a'])}__{index}-{index}" for index in range(7)]
    predictions, files = {}, {}
    for identity in ids + ["other__x-1"]:
        if d.chance(0.15):
            continue
        predictions[identity] = {"instance_id": identity, "model_name_or_path": "org/model", "model_patch": d.pick(["p", "p", "p", "", None])}
        files[identity] = {}
        if d.chance(0.8):
            files[identity]["report.json"] = json.dumps({identity: {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": d.chance(0.7), "resolved": d.chance(0.4)}})
        for name in ("test_output.txt", "run_instance.log"):
            if d.chance(0.7):
                files[identity][name] = d.pick(["fine", "Killed", "x\ncollected 0 items\n", "Cannot find module 'a'", "Error response from daemon"])
    if not predictions:
        return run_case(d, edition)
    return {"edition": edition, "instances": ids, "predictions": predictions, "files": files}


def record_grades(arguments):
    lines = []
    for edition in ("5", "4", "3", "2"):
        worker = Worker("", arguments.references / f"swebench{edition}", "serve-grades")
        for kind, make, count in [("instance", eval_case, {"5": 33, "4": 19, "3": 17, "2": 16}[edition]), ("run", run_case, 4)]:
            if kind == "run" and edition in "32":
                continue
            for index in range(count):
                case = make(Draw(f"{kind}/{edition}/{arguments.seed}/{index}"), edition)
                answer = worker.ask(case)
                lines.append(json.dumps({**case, "expected": answer}, ensure_ascii=False))
    (arguments.out / "grades.jsonl").write_text("\n".join(lines) + "\n")


def record_similarity(arguments):
    """Pairs of texts with Python's ratio and diff."""
    d = Draw(f"similarity/{arguments.seed}")
    alphabet = ["a", "b", "c", " ", "\n", "é", "日", "+", "-", "@", "\r", "\u2028"]
    lines = []
    for index in range(504):
        if index % 4 == 3:
            # Enough lines that frequent ones are left out of the search for matches.
            a = [d.pick(["x", "y", "", str(d.number())]) for _ in range(d.number(190, 230))] if index % 80 == 3 else [d.ident() for _ in range(d.number(0, 12))]
            b = [line for line in a if not d.chance(0.1)]
            for _ in range(d.number(0, 6)):
                b.insert(d.number(0, len(b)), d.pick(["x", d.ident()]))
            a, b = "\n".join(a), "\n".join(b)
        else:
            letters = alphabet[: d.number(2, len(alphabet))]
            a = "".join(d.pick(letters) for _ in range(d.number(0, 60)))
            b = "".join(d.pick(letters) for _ in range(d.number(0, 60))) if d.chance(0.5) else "".join(letter for letter in a if not d.chance(0.2))
        diff = list(difflib.unified_diff(a.splitlines(), b.splitlines(), lineterm="", n=3))[2:]
        lines.append(json.dumps({"a": a, "b": b, "ratio": difflib.SequenceMatcher(None, a, b, autojunk=False).ratio(), "diff": "\n".join(diff)}, ensure_ascii=False))
    (arguments.out / "similarity.jsonl").write_text("\n".join(lines) + "\n")


def patch(d):
    """A patch as git or diff writes it, perhaps spoiled."""
    lines = []
    for _ in range(d.number(1, 3)):
        old, new = f"a/{d.file('.py')}", None
        new = "b/" + (old[2:] if d.chance(0.8) else d.file(".py"))
        kind = d.pick(["modified"] * 5 + ["new", "deleted", "binary", "bare", "git binary", "mode", "prefix"])
        if kind == "prefix":
            old, new = old[2:], new[2:]
        if kind != "bare":
            lines.append(f"diff --git {old} {new}")
        if kind == "new":
            lines.append("new file mode 100644")
            old = "/dev/null"
        if kind == "deleted":
            lines.append("deleted file mode 100644")
            new = "/dev/null"
        if kind == "mode":
            lines += ["old mode 100644", "new mode 100755"]
        if old[2:] != new[2:] and kind == "modified":
            lines += ["similarity index 90%", f"rename from {old[2:]}", f"rename to {new[2:]}"]
        if kind in ("modified", "new"):
            lines.append("index 1a2b3c4..5d6e7f8 100644")
        if kind == "binary":
            lines.append(d.pick([f"Binary files {old} and {new} differ", "Binary file x has changed"]))
            continue
        if kind == "git binary":
            lines += ["GIT binary patch", "literal 3", "zcmXx", ""]
            continue
        lines += [f"--- {old}" + d.pick(["", "", "\t2024-01-01"]), f"+++ {new}"]
        for _ in range(d.number(1, 2)):
            body = [d.pick([" ", " ", "-", "+"]) + d.words(3).replace("\u00a0", " ") for _ in range(d.number(1, 6))]
            if d.chance(0.2):
                body.insert(d.number(0, len(body)), "")
            before = sum(line[:1] in ("-", " ", "") for line in body) + d.chance(0.03)
            after = sum(line[:1] in ("+", " ", "") for line in body)
            start = d.number(1, 99)
            lines.append(f"@@ -{start}{'' if before == 1 and d.chance(0.5) else f',{before}'} +{start},{after} @@{d.pick(['', ' def f():', ' ' + d.words(2)])}")
            lines += body
            if d.chance(0.2):
                lines.append("\\ No newline at end of file")
        if d.chance(0.2):
            lines.append(d.pick(["", "-- ", "2.34.1", "Only in a: b", "@@ -1 +1 @@", "+++ b/odd"]))
    return "\n".join(lines) + d.pick(["\n", "\n", ""])


def record_patches(arguments):
    """Patches with SWE-RL's reward."""
    sys.path.insert(0, str(arguments.references / "unidiff"))
    scope = {"__name__": "reward"}
    exec(compile((arguments.references / "swe_rl/src/swerl/core/reward.py").read_text(), "reward.py", "exec"), scope)
    lines = []
    for index in range(60):
        d = Draw(f"patches/{arguments.seed}/{index}")
        oracle = patch(d)
        predicted = patch(d) if d.chance(0.3) else "\n".join(line[: d.number(2, 12)] if line[:1] == "+" and line[:3] != "+++" and d.chance(0.9) else line for line in oracle.split("\n"))
        reward, _ = scope["calculate_reward_unidiff"]([oracle], [predicted])
        lines.append(json.dumps({"oracle": oracle, "predicted": predicted, "changes": scope["get_filelevel_diff"](oracle), "reward": reward}, ensure_ascii=False))
    (arguments.out / "patch_similarity.jsonl").write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "serve-grades":
        return serve_grades(Path(sys.argv[2]))
    if len(sys.argv) > 1 and sys.argv[1] == "serve":
        return serve(sys.argv[3], Path(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("references", type=Path)
    record.add_argument("out", type=Path)
    record.add_argument("--seed", default="5")
    record.add_argument("--logs", type=int, default=22)
    record.add_argument("--runs", type=Path)
    check = commands.add_parser("compare")
    check.add_argument("references", type=Path)
    check.add_argument("binary")
    check.add_argument("--seed", default="7")
    check.add_argument("--logs", type=int, default=200)
    runner = commands.add_parser("run")
    runner.add_argument("folder", type=Path)
    runner.add_argument("--python", type=Path, required=True)
    runner.add_argument("--node", type=Path, required=True)
    runner.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    if arguments.command == "run":
        return run(arguments)
    workers = {origin: Worker(origin, arguments.references) for origin in ORIGINS.values()}
    if arguments.command == "compare":
        return compare(arguments, workers)
    record_logs(arguments, workers)
    if arguments.logs:
        record_grades(arguments)
        record_similarity(arguments)
        record_patches(arguments)


if __name__ == "__main__":
    main()
