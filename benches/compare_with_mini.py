#!/usr/bin/env python3
"""Plays the same instances with spar and with mini-swe-agent, both asking the same scripted model, and prints grades, seconds and ratio.

    benches/compare_with_mini.py --spar target/release/spar --mini PYTHON --suite FOLDER [--count 8] [--workers 2]
                                 [--rounds 3] [--backend local] [--image IMAGE] [--python PYTHON] [--json FILE]

FOLDER is a suite of `spar tasks make repair`. `--mini` is an interpreter that has mini-swe-agent 2.4.6 (scripts/test.sh sets one up), `--python` one that
has pytest and what the package needs, for the original's side (default that of `--mini`); spar's runs in IMAGE.

The model is a server of OpenAI's interface in this program. It answers by a script: three looks at the repository, then for every other instance the right
change and for the others a wrong one, then a look at the change and its submission. So grades are known beforehand, and a side that differs from them ends the
program with an error.

mini-swe-agent plays in copies of the repository on this machine, by its own configuration for SWE-bench, agents side by side in threads as its own batches
are. It has no grader: its patches are graded by the row's script in another copy, as SWE-bench's harness does. spar plays in sandboxes and grades in fresh
ones, which is more work. A round runs one side after the other; seconds are by the clock, from the start of each process to its end, grading included. The
ratio is the median over the rounds, with the smallest and the largest.
"""

import argparse
import http.server
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORKDIR = "/testbed"
LOOKS = ["ls -la", "git status --short && git log --oneline | head -3", "find . -name '*.py' | head -20"]
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/patch-{name}.txt"


def rows_of(suite, count):
    text = (Path(suite) / "swe_bench.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()][:count]


def is_right(number):
    """Whether the script mends the instance of this number."""
    return number % 2 == 0


def commands(number, row):
    change = row["patch"]
    if is_right(number):
        act = f"git apply --whitespace=nowarn - <<'EOF_CHANGE'\n{change}EOF_CHANGE"
    else:
        act = "echo 'nothing to see' > notes.txt"
    name = f"{number}"
    show = f"git add -A && git diff --cached > /tmp/patch-{name}.txt && wc -l /tmp/patch-{name}.txt"
    return [*LOOKS, act, show, SUBMIT.format(name=name)]


class Model:
    """A server whose answers follow from the conversation that it is sent."""

    def __init__(self, rows):
        scripts = [(row["problem_statement"].strip(), commands(number, row)) for number, row in enumerate(rows)]
        # The longest first: an issue's text may be the beginning of another's.
        scripts.sort(key=lambda it: -len(it[0]))
        model = self
        self.requests = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.answer({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.requests += 1
                said = " ".join(text_of(it) for it in body["messages"] if it["role"] in ("system", "user"))
                # Whether it answers is asked without a task.
                script = next((script for problem, script in scripts if problem in said), LOOKS)
                turn = sum(it["role"] == "assistant" for it in body["messages"])
                arguments = json.dumps({"command": script[min(turn, len(script) - 1)]})
                call = {"id": f"call_{turn}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
                message = {"role": "assistant", "content": "I go on.", "tool_calls": [call]}
                choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                self.answer({"id": "x", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice], "usage": usage})

            def answer(self, value):
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def git(folder, *arguments, **kwargs):
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True, **kwargs)


def copy_of(suite, row, folder):
    """A working copy of an instance's repository at its base commit, without what came later."""
    git(suite, "-c", "protocol.file.allow=always", "clone", "-q", "--no-hardlinks", "repository.git", folder)
    git(folder, "checkout", "-q", row["base_commit"])


def statuses(log):
    """Tests by the words of pytest's summary."""
    inside = log.split(">>>>> Start Test Output", 1)[-1].split(">>>>> End Test Output", 1)[0]
    found = {}
    for line in inside.splitlines():
        match = re.match(r"(PASSED|FAILED|ERROR|XFAIL|SKIPPED) (\S.*)", line)
        if match:
            found[match[2].split(" - ")[0].strip() if match[1] != "PASSED" else match[2].strip()] = match[1]
    return found


def graded(suite, row, patch, environment):
    """Whether a patch resolves an instance, by the row's script in a copy in which nobody has worked."""
    with tempfile.TemporaryDirectory() as folder:
        work = f"{folder}/testbed"
        copy_of(suite, row, work)
        if patch.strip():
            applied = subprocess.run(["git", "-C", work, "apply", "-"], input=patch, text=True, capture_output=True)
            if applied.returncode:
                return False
        script = Path(folder, "eval.sh")
        script.write_text(row["eval_script"].replace(WORKDIR, work))
        env = {**environment, "HOME": folder}
        ran = subprocess.run(["bash", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        found = statuses(ran.stdout)
        # SWE-bench's rows have lists as JSON in texts, those that are made here as lists.
        wanted = [json.loads(row[name]) if isinstance(row[name], str) else row[name] for name in ("FAIL_TO_PASS", "PASS_TO_PASS")]
        return all(found.get(name) in ("PASSED", "XFAIL") for names in wanted for name in names)


def peer(arguments):
    """mini-swe-agent's side, in a process of its own."""
    os.environ["MSWEA_SILENT_STARTUP"] = "1"
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.config import builtin_config_dir
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel

    config = yaml.safe_load((builtin_config_dir / "benchmarks" / "swebench.yaml").read_text())
    config["model"].pop("model_class", None)
    rows = rows_of(arguments.suite, arguments.count)
    with tempfile.TemporaryDirectory() as folder:
        # The interpreter is `python` to the agent and to the tests; no link, since an environment knows itself by what it is called by.
        program = Path(folder, "python")
        program.write_text(f"#!/bin/sh\nexec {shlex.quote(arguments.python)} \"$@\"\n")
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

        def play(numbered):
            number, row = numbered
            with tempfile.TemporaryDirectory() as place:
                work = f"{place}/testbed"
                copy_of(arguments.suite, row, work)
                settings = {**config["model"], "model_name": "openai/scripted", "cost_tracking": "ignore_errors"}
                settings["model_kwargs"] = {"api_base": arguments.url, "api_key": "none", "drop_params": True}
                agent = DefaultAgent(
                    LitellmModel(**settings),
                    LocalEnvironment(cwd=work, env=environment, timeout=60),
                    **config["agent"],
                )
                ended = agent.run(row["problem_statement"])
            patch = ended.get("submission") or ""
            return row["instance_id"], graded(arguments.suite, row, patch, environment)

        with ThreadPoolExecutor(arguments.workers) as pool:
            resolved = dict(pool.map(play, enumerate(rows)))
    Path(arguments.out).write_text(json.dumps(resolved))


def spar(arguments, url, folder):
    """spar's side: which instances are resolved."""
    out = f"{folder}/run.json"
    command = [arguments.spar, "eval", "--suite", arguments.part, "--split", "test", "--endpoint", url, "--model", "scripted", "--scaffold", "mini"]
    command += ["--backend", arguments.backend, "--concurrency", str(arguments.workers), "--out", out, "--json"]
    command += ["--image", arguments.image] if arguments.image else []
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode not in (0,):
        sys.exit(f"spar ended with {ran.returncode}:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
    report = json.loads(Path(f"{folder}/run.report.json").read_text())
    ids = report["resolved_ids"]
    return {row["instance_id"]: row["instance_id"] in ids for row in rows_of(arguments.suite, arguments.count)}


def mini(arguments, url, folder):
    """mini-swe-agent's side: which instances are resolved."""
    out = f"{folder}/mini.json"
    command = [arguments.mini, __file__, "--peer", "--suite", arguments.suite, "--count", str(arguments.count), "--workers", str(arguments.workers)]
    command += ["--python", arguments.python, "--url", url, "--out", out]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"mini-swe-agent ended with {ran.returncode}:\n{ran.stderr[-4000:]}")
    return json.loads(Path(out).read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spar", default="target/release/spar")
    parser.add_argument("--mini", default=sys.executable)
    parser.add_argument("--python")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backend", default="local")
    parser.add_argument("--image")
    parser.add_argument("--json")
    for hidden in ("--url", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.suite = str(Path(arguments.suite).resolve())
    # As it is named: an environment's interpreter is a link to another one.
    arguments.python = os.path.abspath(arguments.python or arguments.mini)
    if arguments.peer:
        return peer(arguments)

    rows = rows_of(arguments.suite, arguments.count)
    model = Model(rows)
    wanted = {row["instance_id"]: is_right(number) for number, row in enumerate(rows)}
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        # A suite of these rows alone.
        part = Path(folder, "part")
        part.mkdir()
        (part / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        repository = json.dumps(str(Path(arguments.suite) / "repository"))
        (part / "swe.toml").write_text(f'tasks = "rows.jsonl"\nname = "part"\nrepository = {repository}\n')
        arguments.part = str(part)
        for number in range(arguments.rounds):
            seconds = {}
            for name, side in (("spar", spar), ("mini", mini)):
                place = Path(folder, f"{number}-{name}")
                place.mkdir()
                began = time.monotonic()
                resolved = side(arguments, model.url, place)
                seconds[name] = time.monotonic() - began
                wrong = {key for key in wanted if resolved.get(key) != wanted[key]}
                if wrong:
                    sys.exit(f"{name} grades otherwise than the script has it: {sorted(wrong)}")
            rounds.append(seconds)
            print(f"round {number + 1}: spar {seconds['spar']:.1f} s, mini-swe-agent {seconds['mini']:.1f} s, ratio {seconds['mini'] / seconds['spar']:.2f}")
    ratios = sorted(it["mini"] / it["spar"] for it in rounds)
    right = sum(wanted.values())
    print(
        f"{len(rows)} instances, {right} resolved and {len(rows) - right} not by both, {arguments.workers} at one time: "
        f"spar takes 1/{statistics.median(ratios):.2f} of the time (1/{ratios[0]:.2f} to 1/{ratios[-1]:.2f})"
    )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"rounds": rounds, "ratios": ratios, "instances": len(rows)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
