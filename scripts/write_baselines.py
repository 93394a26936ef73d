#!/usr/bin/env python3
"""Writes docs/baselines.md: what doing nothing, chance and the environment's own player reach on every suite that ships.

    scripts/write_baselines.py [--spar target/release/spar] [--limit 100] [--seed 1] [--backend NAME] [SUITE...]

Each suite's test splits are played with `spar eval --policy no-op`, `random` and `oracle`; without names, all that `spar list suites`
tells. What cannot be played here (a server or a sandbox is lacking, actions cannot be listed for a random player) is a dash, with the
reason below the table. `--json FILE` keeps the figures as they come: a run that was broken off goes on from them.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAYERS = ["no-op", "random", "oracle"]


def play(arguments, suite, player):
    """The scores of the test splits, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [
            arguments.spar, "eval", "--policy", player, "--suite", suite, "--limit", str(arguments.limit),
            "--seed", str(arguments.seed), "--out", str(out),
        ]
        if arguments.backend:
            command += ["--backend", arguments.backend]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout, cwd=folder)
        except subprocess.TimeoutExpired:
            return None, f"not played to its end in {arguments.timeout} s"
        if done.returncode or not out.exists():
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            told = [line for line in lines if line.startswith(("error", "Error", "caused by"))] or lines[-1:]
            return None, " ".join(told[:2]) or f"it ended with {done.returncode}"
        return [one["overall"] for one in json.loads(out.read_text())["evaluations"]], None


def pooled(scores):
    """Episodes, success in percent and reward of several splits."""
    episodes = sum(score["episodes"] for score in scores)
    if not episodes:
        return None
    success = sum(score["successes"] for score in scores) / episodes
    reward = sum(score["mean_reward"] * score["episodes"] for score in scores) / episodes
    turns = sum(score["mean_turns"] * score["episodes"] for score in scores) / episodes
    return {"episodes": episodes, "success": success, "reward": reward, "turns": turns}


def cell(result):
    return "-" if result is None else f"{100 * result['success']:.1f} %, {result['reward']:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--spar", default=os.environ.get("SPAR", str(ROOT / "target/release/spar")))
    parser.add_argument("--limit", type=int, default=100, help="tasks of each split")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", help="where suites that need sandboxes get them; left out, these are left out")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one player on one suite")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/baselines.md")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.spar = str(Path(arguments.spar).resolve())
    listed = subprocess.run([arguments.spar, "list", "suites", "--json"], capture_output=True, text=True, check=True)
    names = [row["name"] for row in json.loads(listed.stdout)["suites"]]
    unknown = [name for name in arguments.suites if name not in names]
    if unknown:
        parser.error(f"no suite is called {', '.join(unknown)}; there are {', '.join(names)}")
    settings = {name: getattr(arguments, name) for name in ("limit", "seed", "backend")}
    kept = {"settings": settings, "suites": {}}
    if arguments.json and arguments.json.exists():
        kept = json.loads(arguments.json.read_text())
        if kept["settings"] != settings:
            parser.error(f"{arguments.json} is of other settings: {kept['settings']}")
    rows, reasons = {}, []
    for suite in arguments.suites or names:
        rows[suite] = {}
        played = kept["suites"].setdefault(suite, {})
        for player in PLAYERS:
            if player not in played:
                scores, why = play(arguments, suite, player)
                played[player] = {"result": pooled(scores) if scores else None, "why": why}
                if arguments.json:
                    # Whole or not at all, whenever this ends.
                    part = arguments.json.with_suffix(".part")
                    part.write_text(json.dumps(kept, indent=1) + "\n")
                    part.replace(arguments.json)
            rows[suite][player], why = played[player]["result"], played[player]["why"]
            if why:
                reasons.append((suite, player, why))
            print(f"{suite}, {player}: {why or cell(rows[suite][player])}", file=sys.stderr)
    lines = [
        "# Baselines",
        "",
        "What a player earns for doing nothing, by chance, and who sees the whole state, on the test splits of the suites that ship: success and mean",
        "reward of an episode. A trained policy has to be held against the first two. In games of several, the player sits at every seat, so that",
        "shares are of all seats: what they reach against others is in [games.md](games.md). Written by `scripts/write_baselines.py`",
        f"on {datetime.date.today()}, {arguments.limit} tasks of each split at most, seed {arguments.seed}.",
        "",
        "| suite | episodes | does nothing | by chance | oracle | turns of the oracle |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for suite, results in rows.items():
        if not any(results.values()):
            continue
        episodes = max(result["episodes"] for result in results.values() if result)
        turns = f"{results['oracle']['turns']:.1f}" if results["oracle"] else "-"
        lines.append(f"| `{suite}` | {episodes} | " + " | ".join(cell(results[p]) for p in PLAYERS) + f" | {turns} |")
    if reasons:
        lines += ["", "Not played:", ""]
        home = str(Path.home())
        lines += [f"- `{suite}`, {player}: {why.replace(home, '~')}" for suite, player, why in reasons]
    left_out = [name for name in names if name not in rows]
    if left_out:
        lines += ["", "Not asked for here: " + ", ".join(f"`{name}`" for name in left_out) + "."]
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
