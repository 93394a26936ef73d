#!/usr/bin/env python3
"""How many puzzles per second spar makes of each dataset, and how many reasoning-gym makes: in turns, on this machine.

    venv/bin/python benches/compare_reasoning_gym.py [--seconds 0.5] [--names gcd lcm]

Needs `pip install reasoning-gym==0.1.25` in that Python, and cargo. Processor time of both is one core's.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measured(command):
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return {row["dataset"]: row["per_second"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--names", nargs="*", default=[])
    parser.add_argument("--profile", default="bench")
    arguments = parser.parse_args()
    bench = ["cargo", "bench", "-q", "-p", "spar-puzzles", "--bench", "items", "--profile", arguments.profile, "--"]
    names = arguments.names or list(measured([*bench, "0.0"]))
    ratios = {}
    print("| dataset | spar, per second | reasoning-gym, per second | ratio |\n| --- | --- | --- | --- |")
    for name in names:
        ours = measured([*bench, str(arguments.seconds), name])[name]
        package = [sys.executable, "scripts/record_reasoning_gym.py", "--bench", str(arguments.seconds), "--datasets", name]
        theirs = measured(package)[name]
        ratios[name] = ours / theirs
        print(f"| `{name}` | {ours:.0f} | {theirs:.0f} | {ratios[name]:.1f} |", flush=True)
    least = min(ratios, key=ratios.get)
    print(f"\nmedian {statistics.median(ratios.values()):.1f}, least {ratios[least]:.1f} (`{least}`)")


main()
