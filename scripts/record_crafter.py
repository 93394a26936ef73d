#!/usr/bin/env python3
"""Records episodes of `crafter` 1.8.3, and noise of `opensimplex` 0.4.5.1, for the crate `spar-grids`.

    pip install crafter==1.8.3 opensimplex==0.4.5.1
    python3 scripts/record_crafter.py traces.jsonl --first 1000 --seeds 4 --steps 400
    python3 scripts/record_crafter.py --noise grids/tests/fixtures/opensimplex.json
    spar conformance crafter --traces traces.jsonl

An episode a line: seed, size, a letter a cell as it begins, and of every step the action, health's part of the reward, what is unlocked, and what the
world looks like as sums. Actions are drawn, most of them from those that have an effect, so that much happens.

Which of several creatures of a part of the world vanishes depends on their addresses in the package, since it keeps them in a set; here the
sets are kept in order of arrival, which is what spar does.
"""
import argparse
import collections
import json
import random
import zlib

import crafter
import numpy
import opensimplex
from crafter import engine, objects

MATERIALS = "~.#,:T!cidtf"


class Ordered(dict):
    """A set in order of arrival."""

    def add(self, item):
        self[item] = None

    def remove(self, item):
        del self[item]


class World(engine.World):
    def reset(self, seed=None):
        super().reset(seed)
        self._chunks = collections.defaultdict(Ordered)


engine.World = World


def creatures(env):
    """A line for each creature: kind, column, row, health, and what only it has."""
    lines = []
    for it in env._world.objects:
        x, y = (int(n) for n in it.pos)
        if isinstance(it, objects.Player):
            continue
        if isinstance(it, objects.Cow):
            kind, more = "cow", 0
        elif isinstance(it, objects.Zombie):
            kind, more = "zombie", it.cooldown
        elif isinstance(it, objects.Skeleton):
            kind, more = "skeleton", it.reload
        elif isinstance(it, objects.Arrow):
            kind, more = "arrow", int(it.facing[0]) * 3 + int(it.facing[1])
        else:
            kind, more = "plant", it.grown
        lines.append(f"{kind} {x} {y} {int(it.health)} {int(more)}\n")
    return "".join(lines)


def letters(env):
    return "".join(MATERIALS[int(number) - 1] for number in env._world._mat_map.flatten())


def shown(env):
    player = env._player
    x, y = (int(n) for n in player.pos)
    facing = [(-1, 0), (1, 0), (0, -1), (0, 1)].index(tuple(int(n) for n in player.facing))
    has = [int(n) for n in player.inventory.values()]
    return [x, y, facing, int(player.sleeping), has, zlib.crc32(letters(env).encode()), zlib.crc32(creatures(env).encode())]


def choose(draw, env):
    """Mostly walks and does things, strikes at what it faces, and makes things where it has placed some."""
    names = env.action_names
    player = env._player
    faced = env._world[player.pos + numpy.array(player.facing)][1]
    if faced is not None and draw.random() < 0.8:
        return names.index("do")
    near = env._world.nearby(player.pos, 1)[0]
    if "table" in near and draw.random() < 0.85:
        rest = [name for name in names if name.startswith("make_")] + ["place_furnace"]
        return names.index(draw.choice(rest))
    number = draw.random()
    if number < 0.45:
        return names.index(draw.choice(["move_left", "move_right", "move_up", "move_down"]))
    if number < 0.7:
        return names.index("do")
    return draw.randrange(len(names))


def beside_a_skeleton(env):
    for it in env._world.objects:
        if isinstance(it, objects.Skeleton):
            for x, y in [(2, 0), (-2, 0), (0, 2), (0, -2), (3, 0), (0, 3)]:
                place = [int(it.pos[0]) + x, int(it.pos[1]) + y]
                if env._player.is_free(place, ["path", "grass", "sand"]):
                    return place
    return None


def record(seed, size, steps):
    env = crafter.Env(area=(size, size), seed=seed)
    env.reset()
    draw = random.Random(seed)
    trace = {"seed": seed, "size": size, "cells": letters(env), "start": shown(env), "steps": []}
    if seed % 2:
        # So that what is made and placed is seen in a short time.
        for item in list(env._player.inventory)[4:10]:
            env._player.inventory[item] = 9
        trace["given"] = True
    if seed % 3 == 2:
        # Beside a skeleton, since caves are far from where episodes begin.
        place = beside_a_skeleton(env)
        if place:
            env._world.move(env._player, place)
            trace["moved"] = place
    done = set()
    for _ in range(steps):
        action = choose(draw, env)
        _, _, over, info = env.step(action)
        unlocked = {name for name, count in info["achievements"].items() if count > 0}
        trace["steps"].append([action, sorted(unlocked - done), *shown(env)])
        done = unlocked
        if over:
            break
    return trace


def noise(path):
    draw = random.Random(1)
    values = []
    for number in range(400):
        seed = draw.choice([0, 1, 123456, 2**31 - 2])
        if number % 2:
            place = [draw.randrange(64) / draw.choice([3, 5, 7, 15]), draw.randrange(64) / draw.choice([3, 6, 8]), float(draw.randrange(9))]
        else:
            place = [draw.uniform(-30, 30) for _ in range(3)]
        values.append([seed, place, float(opensimplex.OpenSimplex(seed).noise3(*place))])
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(value) for value in values) + "\n]\n")


parser = argparse.ArgumentParser()
parser.add_argument("path", nargs="?")
parser.add_argument("--noise")
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--seeds", type=int, default=4)
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--size", type=int, default=64)
arguments = parser.parse_args()
if arguments.noise:
    noise(arguments.noise)
if arguments.path:
    numpy.seterr(all="ignore")
    with open(arguments.path, "w") as file:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            file.write(json.dumps(record(seed, arguments.size, arguments.steps), separators=(",", ":")) + "\n")
