#!/usr/bin/env python3
"""Compares the speed of `spar-grids` with that of the package `minigrid`, in one run on one core.

    pip install minigrid==3.2.0
    python3 benches/compare_minigrid.py [SECONDS] [BENCH]

Both play levels with actions that are drawn, see the view as codes after every step, and begin again with the next seed when an episode is over,
all of which counts. BENCH is the program of `cargo bench -p spar-grids --bench steps --no-run`; without it cargo builds and runs that.
"""
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import time

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import gymnasium
import minigrid  # noqa: F401, registers the levels


def package(name, seconds):
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    draw = random.Random(1)
    seed = steps = 0
    with contextlib.redirect_stdout(io.StringIO()):
        env.reset(seed=seed)
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            _, _, terminated, truncated, _ = env.step(env.actions(draw.randrange(7)))
            steps += 1
            if terminated or truncated:
                seed += 1
                env.reset(seed=seed)
    return steps / (time.perf_counter() - start)


seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
program = sys.argv[2:3] or ["cargo", "bench", "-q", "-p", "spar-grids", "--bench", "steps", "--"]
out = subprocess.run([*program, "--json"], check=True, capture_output=True, text=True).stdout
print(f"{'level':36} {'minigrid/s':>11} {'spar/s':>12} {'times':>7} {'fork ns':>8}")
for line in out.splitlines():
    if line.startswith("{"):
        own = json.loads(line)
        theirs = package(own["level"], seconds)
        print(f"{own['level']:36} {theirs:11.0f} {own['steps']:12.0f} {own['steps'] / theirs:7.0f} {own['fork_ns']:8.0f}")
