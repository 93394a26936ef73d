#!/usr/bin/env python3
"""Records episodes of the package `minigrid` for `spar conformance minigrid`.

    pip install minigrid==3.2.0
    python3 scripts/record_minigrid.py OUT.jsonl [--levels NAME ...] [--first SEED] [--seeds N] [--steps N] [--plans FILE]

An episode a line: what it begins with, and of every step the action, the reward, the ends, and what is shown: column,
row and direction of the agent, what it carries, and sums of the grid's and the view's codes (zlib's crc32). Actions
are drawn, in manners that take turns by seed: any of the seven, walks that pick up and toggle what is in front, and for
BabyAI the package's own bot with slips. With --plans, the plans that `cargo run -p spar-grids --example plans` wrote are
played instead, which shows whether they win here as well. No level of wave function collapse is recorded.
"""
import argparse
import contextlib
import io
import json
import os
import random
import zlib

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import gymnasium
import minigrid  # noqa: F401, registers the levels
import numpy
from minigrid.utils.baby_ai_bot import BabyAIBot


def shown(env, image):
    carried = None if env.carrying is None else [int(it) for it in env.carrying.encode()]
    x, y = (int(it) for it in env.agent_pos)
    return [x, y, int(env.agent_dir), carried, zlib.crc32(env.grid.encode().tobytes()), zlib.crc32(image.tobytes())]


def manners(name, seed):
    return ["any", "busy", "bot" if name.startswith("BabyAI") else "busy"][seed % 3]


def actions_of(name, seed, env, steps):
    """Draws actions one by one; what is sent in is the action that was taken."""
    draw = random.Random(f"{name} {seed}")
    manner = manners(name, seed)
    bot = BabyAIBot(env) if manner == "bot" else None
    taken = None
    for _ in range(steps):
        if bot is not None:
            try:
                action = int(bot.replan(taken))
            except Exception:  # The bot gives up now and then; any action goes on.
                bot = None
                action = draw.randrange(7)
            if bot is not None and draw.random() < 0.03:
                action = draw.randrange(3)
        elif manner == "any":
            action = draw.randrange(7)
        else:
            front = env.grid.get(*env.front_pos)
            if front is None or front.type in ("goal", "lava"):
                action = draw.choices(range(7), [2, 2, 10, 0.3, 0.8, 0.3, 0.05])[0]
            else:
                action = draw.choices(range(7), [2, 2, 2, 4, 0.3, 4, 0.1])[0]
        taken = env.actions(action)
        yield action


def episode(name, seed, actions, steps):
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    with contextlib.redirect_stdout(io.StringIO()):
        first, _ = env.reset(seed=seed)
    record = {"level": name, "seed": seed, "mission": env.mission, "max_steps": int(env.max_steps),
              "start": shown(env, first["image"]), "steps": []}
    reward = 0
    for action in actions if actions is not None else actions_of(name, seed, env, steps):
        view, reward, terminated, truncated, _ = env.step(env.actions(action))
        record["steps"].append([action, float(reward), bool(terminated), bool(truncated), shown(env, view["image"])])
        if terminated or truncated:
            break
    return record, float(reward)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("out")
parser.add_argument("--levels", nargs="*")
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--plans")
arguments = parser.parse_args()
names = arguments.levels or [name for name in gymnasium.registry
                             if name.startswith(("MiniGrid-", "BabyAI-")) and "WFC" not in name]
if arguments.plans:
    jobs = [json.loads(line) for line in open(arguments.plans)]
    jobs = [(job["level"], job["seed"], job["plan"]) for job in jobs]
else:
    # Levels take turns in where the seeds begin, so that every manner comes to be seen of one seed each as well.
    jobs = [(name, arguments.first + number % 3 + seed, None)
            for number, name in enumerate(names) for seed in range(arguments.seeds)]
steps = won = 0
with open(arguments.out, "w") as out:
    for name, seed, plan in jobs:
        record, reward = episode(name, seed, plan, arguments.steps)
        steps += len(record["steps"])
        won += reward > 0
        out.write(json.dumps(record, separators=(",", ":")) + "\n")
print(f"minigrid {getattr(minigrid, '__version__', '?')}, numpy {numpy.__version__}: {len(jobs)} episodes, {steps} steps, {won} won")
