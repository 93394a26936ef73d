#!/usr/bin/env python3
"""Grades the same predictions with spar and with SWE-bench's own harness, and prints grades, seconds and ratio.

    benches/compare_with_swebench.py --spar target/release/spar --swebench PYTHON --suite FOLDER [--count 8] [--workers 2]
                                     [--rounds 3] [--base spar-base] [--json FILE]

FOLDER is a suite of `spar tasks make repair`. `--swebench` is an interpreter that has swebench 5.0.2. Needs Docker with the image of `--base`, which has git
and what the package's tests need (`docker/build-images.sh base`).

An image is built for each instance, with its repository at the base commit in /testbed, as SWE-bench's own have; both sides take these. Of every four
predictions two are the right change, one is a wrong one, and one does not apply. Which of them resolve their instance is known beforehand, and a side that differs
from that ends the program with an error, as does any test of which the two sides tell another status in their reports.

A round runs one side after the other; seconds are by the clock, from the start of each process to its end. spar grades by `spar tasks grade`: as the harness, it
makes a container for each instance, applies the patch, runs the script and reads its log; beyond that it cuts the repository's history, limits what tests may use
up, and doubts what looks forged. The ratio is the median over the rounds, with the smallest and the largest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKDIR = "/testbed"
MODEL = "scripted"
WRONG = """diff --git a/notes.txt b/notes.txt
new file mode 100644
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1 @@
+nothing to see
"""
UNFIT = """diff --git a/no/such/file.py b/no/such/file.py
--- a/no/such/file.py
+++ b/no/such/file.py
@@ -1,2 +1,2 @@
-what is nowhere
+is not changed
 at all
"""


def rows_of(suite, count):
    text = (Path(suite) / "swe_bench.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()][:count]


def patch_of(number, row):
    return [row["patch"], WRONG, row["patch"], UNFIT][number % 4]


def run(command, **options):
    ran = subprocess.run(command, capture_output=True, text=True, **options)
    if ran.returncode:
        sys.exit(f"{command[0]} ended with {ran.returncode}:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
    return ran.stdout


def build(suite, row, base):
    """Builds the image of an instance, which is called as its row calls it."""
    with tempfile.TemporaryDirectory() as folder:
        work = f"{folder}/testbed"
        run(["git", "-C", suite, "-c", "protocol.file.allow=always", "clone", "-q", "--no-hardlinks", "repository.git", work])
        run(["git", "-C", work, "checkout", "-q", row["base_commit"]])
        Path(folder, "Dockerfile").write_text(
            f"FROM {base}\nRUN command -v python || ln -s \"$(command -v python3)\" /usr/local/bin/python\n"
            f"COPY testbed {WORKDIR}\nWORKDIR {WORKDIR}\n"
        )
        run(["docker", "build", "-q", "-t", row["image"], folder])


def spar(arguments, folder):
    """spar's side: the statuses of the tests by instance, and which instances are resolved."""
    base = f"{folder}/spar"
    command = [arguments.spar, "tasks", "grade", arguments.rows, arguments.predictions, "--backend", "docker"]
    run([*command, "--concurrency", str(arguments.workers), "--out", base, "--json"])
    report = json.loads(Path(f"{base}.report.json").read_text())
    instances = json.loads(Path(f"{base}.instances.json").read_text())
    return {key: one.get("tests_status") for key, one in instances.items()}, set(report["resolved_ids"])


def swebench(arguments, folder):
    """The harness's side."""
    command = [arguments.swebench, "-m", "swebench.harness.run_evaluation", "--dataset_name", arguments.rows]
    command += ["--predictions_path", arguments.predictions, "--max_workers", str(arguments.workers), "--run_id", "compared"]
    run(command, cwd=folder, env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})
    report = json.loads(Path(folder, f"{MODEL}.compared.json").read_text())
    statuses = {}
    for path in Path(folder, "logs/run_evaluation/compared", MODEL).glob("*/report.json"):
        statuses[path.parent.name] = json.loads(path.read_text())[path.parent.name].get("tests_status")
    return statuses, set(report["resolved_ids"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spar", default="target/release/spar")
    parser.add_argument("--swebench", default=sys.executable)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--base", default="spar-base")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.suite = str(Path(arguments.suite).resolve())
    arguments.spar = os.path.abspath(arguments.spar)
    # As it is named: an environment's interpreter is a link to another one.
    arguments.swebench = os.path.abspath(arguments.swebench)

    rows = rows_of(arguments.suite, arguments.count)
    for number, row in enumerate(rows):
        row["image"] = f"spar-compared/{number}:latest"
    patches = {row["instance_id"]: patch_of(number, row) for number, row in enumerate(rows)}
    wanted = {row["instance_id"] for row in rows if patches[row["instance_id"]] == row["patch"]}
    applied = {key for key, patch in patches.items() if patch != UNFIT}
    rounds = []
    try:
        for row in rows:
            build(arguments.suite, row, arguments.base)
        with tempfile.TemporaryDirectory() as folder:
            arguments.rows, arguments.predictions = f"{folder}/rows.jsonl", f"{folder}/predictions.jsonl"
            Path(arguments.rows).write_text("".join(json.dumps(row) + "\n" for row in rows))
            made = [{"instance_id": key, "model_name_or_path": MODEL, "model_patch": patch} for key, patch in patches.items()]
            Path(arguments.predictions).write_text("".join(json.dumps(one) + "\n" for one in made))
            for number in range(arguments.rounds):
                seconds, statuses = {}, {}
                for name, side in (("spar", spar), ("swebench", swebench)):
                    place = Path(folder, f"{number}-{name}")
                    place.mkdir()
                    began = time.monotonic()
                    statuses[name], resolved = side(arguments, place)
                    seconds[name] = time.monotonic() - began
                    if resolved != wanted:
                        sys.exit(f"{name} grades otherwise than the predictions are: {sorted(resolved ^ wanted)}")
                for key in sorted(applied):
                    mine, theirs = (statuses[name].get(key) for name in ("spar", "swebench"))
                    if mine is None or mine != theirs:
                        sys.exit(f"`{key}`: spar tells {mine}, the harness {theirs}")
                rounds.append(seconds)
                ratio = seconds["swebench"] / seconds["spar"]
                print(f"round {number + 1}: spar {seconds['spar']:.1f} s, swebench {seconds['swebench']:.1f} s, ratio {ratio:.2f}", flush=True)
    finally:
        for row in rows:
            subprocess.run(["docker", "rmi", "-f", row["image"]], capture_output=True)
    ratios = sorted(it["swebench"] / it["spar"] for it in rounds)
    print(
        f"{len(rows)} predictions, {len(wanted)} resolved by both and {len(rows) - len(wanted)} by neither, the same status of every test of {len(applied)} that apply, "
        f"{arguments.workers} at one time: spar takes 1/{statistics.median(ratios):.2f} of the time (1/{ratios[0]:.2f} to 1/{ratios[-1]:.2f})"
    )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"rounds": rounds, "ratios": ratios, "instances": len(rows)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
