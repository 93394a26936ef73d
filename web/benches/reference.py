"""Random clicks in MiniWoB++'s own Selenium environment; the other side of pages.rs, which starts it.

For every line `TASK SECONDS SEED` on standard input, one line of JSON: steps, episodes and the seconds they took. No screenshots. The browser of the
task before is closed where another one is asked for.
"""
import json
import random
import sys
import time

import gymnasium
import miniwob
from miniwob.action import ActionTypes

MOST_STEPS = 10
gymnasium.register_envs(miniwob)
open_envs = {}


def environment(task):
    if task not in open_envs:
        for name in list(open_envs):
            open_envs.pop(name).close()
        open_envs[task] = gymnasium.make(f"miniwob/{task}-v1").unwrapped
    return open_envs[task]


def play(task, seconds, seed):
    env = environment(task)
    draw = random.Random(seed)
    options = {"record_screenshots": False}
    env.reset(seed=seed, options=options)
    steps = episodes = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        obs, _ = env.reset(seed=seed + episodes, options=options)
        episodes += 1
        for _ in range(MOST_STEPS):
            leaves = [e["ref"] for e in obs["dom_elements"] if e["width"][0] > 0 and e["height"][0] > 0 and e["ref"] > 0]
            action = env.create_action(ActionTypes.CLICK_ELEMENT, ref=draw.choice(leaves))
            obs, _, done, _, _ = env.step(action)
            steps += 1
            if done:
                break
    return {"steps": steps, "episodes": episodes, "seconds": time.perf_counter() - began}


for line in sys.stdin:
    task, seconds, seed = line.split()
    print(json.dumps(play(task, float(seconds), int(seed))), flush=True)
for env in open_envs.values():
    env.close()
