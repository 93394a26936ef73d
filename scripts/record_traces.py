#!/usr/bin/env python3
"""Plays household games in ALFWorld's own engine and records what it answers.

    python3 -m venv venv && venv/bin/pip install textworld alfworld
    cargo run -p spar-envs --example export_games -- FOLDER/games dev 12 1
    venv/bin/python scripts/record_traces.py FOLDER/games FOLDER/traces

Each game is played twice: along its walkthrough, and at random with a liking for commands that
change something and a few that are not possible. The reference needs about a second per game and
a tenth of one per step. `envs/tests/reference_traces.rs` replays the result.
"""

import argparse
import json
import pathlib
import random

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

IMPOSSIBLE = ["dance", "go to nowhere 1", "take mug 99 from desk 1", "Look", "open fridge 9"]


def start(game):
    infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
    return textworld.start(str(game), infos, wrappers=[AlfredDemangler(shuffle=False), AlfredInfos])


def record(state, command, reward, done):
    return {
        "cmd": command,
        "obs": state.feedback,
        "adm": state["admissible_commands"],
        "reward": reward,
        "done": done,
        "won": bool(state["won"]),
    }


def weight(command):
    verb = command.split()[0]
    return {"go": 1, "examine": 1, "look": 1, "inventory": 1, "help": 0.3, "close": 1}.get(verb, 6)


def play(env, commands):
    """Plays until `commands`, a function of the admissible ones, returns nothing."""
    state = env.reset()
    steps = [record(state, None, 0, False)]
    while (command := commands(state["admissible_commands"])) is not None:
        state, reward, done = env.step(command)
        steps.append(record(state, command, reward, bool(done)))
    return steps


def follower(plan):
    rest = list(plan)
    return lambda _: rest.pop(0) if rest else None


def wanderer(rng, num_steps):
    left = [num_steps]

    def choose(admissible):
        left[0] -= 1
        if left[0] < 0:
            return None
        if rng.random() < 0.08:
            return rng.choice(IMPOSSIBLE)
        return rng.choices(admissible, [weight(command) for command in admissible])[0]

    return choose


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", type=pathlib.Path)
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=16, help="length of the random walks")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.traces.mkdir(parents=True, exist_ok=True)
    for path in sorted(arguments.games.rglob("game.tw-pddl")):
        name = path.parent.relative_to(arguments.games).as_posix()
        plan = json.loads(path.read_text())["walkthrough"]
        rng = random.Random(f"{arguments.seed} {name}")
        env = start(path)
        players = {"walkthrough": follower(plan), "wander": wanderer(rng, arguments.steps)}
        lines = []
        for policy, commands in players.items():
            trace = {"game": name, "fmt": "v213", "policy": policy, "err": None}
            trace["steps"] = play(env, commands)
            lines.append(json.dumps(trace, separators=(",", ":")))
        env.close()
        target = arguments.traces / (name.replace("/", "__") + ".jsonl")
        target.write_text("\n".join(lines) + "\n")
        print(target, flush=True)


if __name__ == "__main__":
    main()
