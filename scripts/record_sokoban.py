#!/usr/bin/env python3
"""Records rooms of `gym-sokoban` 0.0.6 and of TextArena 0.7 as a fixture of the crate `spar-grids`.

    pip install --no-deps gym-sokoban textarena && pip install numpy
    python3 scripts/record_sokoban.py grids/tests/fixtures/sokoban.jsonl [SEEDS [FIRST]]

A room a line: whose rules, size, boxes, seed, what never changes and what stands there, a digit a cell. Only the files
that generate rooms are loaded, since the packages around them need more than is installed.
"""
import contextlib
import importlib.util
import io
import json
import random
import sys
import sysconfig
from pathlib import Path

import numpy

SITE = Path(sysconfig.get_paths()["purelib"])


def module(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), SITE / path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


GYM = module("gym_sokoban/envs/room_utils.py")
TEXTARENA = module("textarena/envs/Sokoban/utils.py")
SETTINGS = [(6, 1), (6, 2), (6, 3), (7, 2), (8, 5)]


def gym_room(size, boxes, seed):
    random.seed(seed)
    numpy.random.seed(seed)
    while True:
        try:
            return GYM.generate_room((size, size), num_steps=int(1.7 * 2 * size), num_boxes=boxes)[:2]
        except (RuntimeError, RuntimeWarning):
            continue


def textarena_room(size, boxes, seed):
    for attempt in range(50):
        try:
            return TEXTARENA.generate_room((size, size), num_steps=int(1.7 * 2 * size), num_boxes=boxes, seed=seed + attempt)[:2]
        except (RuntimeError, RuntimeWarning):
            continue
    return None


def digits(cells):
    return "".join(str(int(cell)) for cell in cells.flatten())


seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
count = 0
with open(sys.argv[1], "w") as out:
    for number, (size, boxes) in enumerate(SETTINGS):
        # Large rooms take Python minutes.
        for seed in range(first, first + (seeds if size < 8 else max(1, seeds // 4))):
            for rules, make in (("gym", gym_room), ("textarena", textarena_room)):
                with contextlib.redirect_stdout(io.StringIO()):
                    room = make(size, boxes, seed)
                if room is None:
                    continue
                record = {"rules": rules, "size": size, "boxes": boxes, "seed": seed,
                          "fixed": digits(room[0]), "state": digits(room[1])}
                out.write(json.dumps(record, separators=(",", ":")) + "\n")
                count += 1
print(f"numpy {numpy.__version__}: {count} rooms")
