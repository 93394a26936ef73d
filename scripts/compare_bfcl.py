#!/usr/bin/env python3
"""Calls and resets per second of the reference and of this program on the same entries, in turns; medians of three rounds.

Both sides count the time they had a processor, so that other work on the machine counts for neither.

    python3.12 scripts/compare_bfcl.py REFERENCE [PROFILE]

REFERENCE is the folder `berkeley-function-call-leaderboard` of a checkout of ShishirPatil/gorilla; mpmath has to be
installed. PROFILE is cargo's, by default `release`. A reset of the reference makes the objects of an entry from its
configuration, as its helper does for every new entry.
"""
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

REFERENCE = Path(sys.argv[1]).resolve()
PROFILE = sys.argv[2] if len(sys.argv) > 2 else "release"
DATA = REFERENCE / "bfcl_eval" / "data"
SECONDS = 5.0
ROUNDS = 3

sys.path.insert(0, str(REFERENCE))


def measure_reference():
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils

    name = "BFCL_v4_multi_turn_base.json"
    entries = [json.loads(line) for line in (DATA / name).open()]
    answers = [json.loads(line)["ground_truth"] for line in (DATA / "possible_answer" / name).open()]
    known = set(vars(multi_turn_utils))

    def forget():
        for made in set(vars(multi_turn_utils)) - known:
            del vars(multi_turn_utils)[made]

    def execute(entry, calls):
        multi_turn_utils.execute_multi_turn_func_call(
            calls, entry["initial_config"], entry["involved_classes"], "m", entry["id"]
        )

    calls = resets = 0
    call_time = reset_time = 0.0
    while call_time + reset_time < SECONDS:
        for entry, turns in zip(entries, answers):
            start = time.process_time()
            execute(entry, [])
            middle = time.process_time()
            for turn in turns:
                execute(entry, turn)
            end = time.process_time()
            reset_time += middle - start
            call_time += end - middle
            resets += 1
            calls += sum(map(len, turns))
        forget()
    return {"calls_per_second": calls / call_time, "resets_per_second": resets / reset_time}


def measure_own():
    """`resets` copy objects that were loaded once, `loads` make them from their configuration every time, as the reference does."""
    command = ["cargo", "run", "--quiet", "--profile", PROFILE, "-p", "spar-bfcl", "--example", "throughput", "--"]
    command.append(str(DATA / "BFCL_v4_multi_turn_base.json"))
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    rounds = [(measure_reference(), measure_own()) for _ in range(ROUNDS)]
    for what, of_reference in (("calls", "calls"), ("resets", "resets"), ("loads", "resets")):
        reference = statistics.median(one[f"{of_reference}_per_second"] for one, _ in rounds)
        own = statistics.median(other[f"{what}_per_second"] for _, other in rounds)
        ratio = statistics.median(other[f"{what}_per_second"] / one[f"{of_reference}_per_second"] for one, other in rounds)
        print(f"{what} per second: reference {reference:.0f}, own {own:.0f}, ratio {ratio:.0f}")
    forks = statistics.median(own["forks_per_second"] for _, own in rounds)
    print(f"a fork in the middle of an episode: {1e6 / forks:.2f} microseconds")


main()
