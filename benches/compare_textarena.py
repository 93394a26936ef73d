#!/usr/bin/env python3
"""Steps a second of spar's games beside those of TextArena 0.7.4, in one run, with their ratio.

    PYTHONHASHSEED=0 benches/compare_textarena.py [--seconds 1] [--json FILE]

needs Python 3.11 or later with `pip install textarena==0.7.4`, and builds `games/benches/steps.rs` by cargo. Both sides
carry out moves on one thread; moves of TextArena are those that `scripts/record_textarena.py` draws, chosen
while the clock stands. What everybody gets to see is read on both sides.
"""

import argparse
import importlib.util
import json
import random
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def recorder():
    spec = importlib.util.spec_from_file_location("record_textarena", ROOT / "scripts/record_textarena.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.textarena()
    return module


def package_steps(recorder, game, seconds):
    make, movers, players, settings = recorder.GAMES[game]
    settings = settings[0]
    players = players(settings) if callable(players) else players
    steps, spent, seed = 0, 0.0, 0
    while spent < seconds:
        env = make(settings, seed)
        rng = random.Random(seed)
        env.reset(num_players=players, seed=seed)
        done, made = False, 0
        while not done and made < 200:
            action = movers[0](env, rng)
            begun = time.process_time()
            try:
                done, _ = env.step(action)
            except AttributeError:
                done = True
            for player in range(players):
                env.state.observations[player] = []
            spent += time.process_time() - begun
            made += 1
        steps += made
        seed += 1
    return steps / spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    module = recorder()
    command = ["cargo", "bench", "--offline", "-p", "spar-games", "--bench", "steps"]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = []
    print(f"{'game':<18} {'spar steps/s':>14} {'TextArena':>12} {'ratio':>8} {'fork, ns':>9}")
    for line in told.splitlines():
        fields = line.split()
        if len(fields) != 4 or fields[0] not in module.GAMES:
            continue
        game, own, fork = fields[0], float(fields[1]), float(fields[3])
        other = package_steps(module, game, arguments.seconds)
        print(f"{game:<18} {own:>14,.0f} {other:>12,.0f} {own / other:>8.0f} {fork:>9.0f}")
        found.append({"game": game, "spar": own, "textarena": other, "ratio": own / other, "fork_ns": fork})
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
