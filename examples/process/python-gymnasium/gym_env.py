"""Any environment of gymnasium with numbered actions whose state can be told in text.

A task names the environment (`id`), its `options`, words for its `actions` by number, and the reward of a step from
which on the task counts as solved (`success_at`, default above 0); `map_size` draws a frozen lake of its own. The state is what the environment draws as text
where it can (render_mode "ansi"), or else its observation.
"""

import re
from collections import deque

import gymnasium
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from gymnasium.utils import seeding
from spar_env import Env, serve

# What is told by colour, as marks that can be read: where one is, who waits there, where they want to go.
MARKS = {"41": "[]", "42": "[]", "43": "[]", "34": "()", "35": "{}"}
ESCAPE = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|.?)", re.DOTALL)


def readable(drawn):
    """A drawing without its escapes. A colour lasts until all are taken back, whichever others come in between."""
    shown, marks, at = [], [], 0
    for escape in ESCAPE.finditer(drawn):
        shown.append(drawn[at : escape.start()])
        at = escape.end()
        for code in (escape[1] or "0").split(";") if escape[2] == "m" else []:
            if code in ("", "0"):
                shown.extend(mark[1] for mark in reversed(marks))
                marks.clear()
            elif code in MARKS:
                marks.append(MARKS[code])
                shown.append(MARKS[code][0])
    shown.append(drawn[at:])
    shown.extend(mark[1] for mark in reversed(marks))
    return "".join(shown).strip()


def best_action(env, success_at):
    """The first action of a shortest way to success, for environments that tell all their transitions (`P`) and leave
    nothing to chance; None for others."""
    transitions, start = getattr(env, "P", None), getattr(env, "s", None)
    if transitions is None or start is None:
        return None
    reached, ways = {start}, deque([(start, None)])
    while ways:
        state, first = ways.popleft()
        for action, outcomes in transitions[state].items():
            if len(outcomes) != 1:
                return None
            _, found, reward, is_over = outcomes[0]
            opening = action if first is None else first
            if is_over and reward >= success_at:
                return opening
            if not is_over and found not in reached:
                reached.add(found)
                ways.append((found, opening))
    return None


class Gym(Env):
    def reset(self, task, seed):
        options = dict(task.get("options", {}))
        if "map_size" in task:
            options["desc"] = generate_random_map(size=task["map_size"], seed=task["seed"])
        self.env = gymnasium.make(task["id"], **options)
        if "ansi" in self.env.metadata.get("render_modes", []):
            self.env = gymnasium.make(task["id"], render_mode="ansi", **options)
        self.success_at = task.get("success_at", 1e-9)
        count = getattr(self.env.action_space, "n", None)
        if count is None:
            raise ValueError(f"{task['id']} has no numbered actions")
        words = task.get("actions") or [str(number) for number in range(count)]
        self.numbers = {word: number for number, word in zip(range(count), words)}
        # The task's seed makes the task; the episode's is for luck within it.
        observation, _ = self.env.reset(seed=task["seed"])
        self.env.unwrapped.np_random = seeding.np_random(seed)[0]
        return self.told(observation)

    def step(self, text):
        number = self.numbers.get(text.strip())
        if number is None:
            self.invalid()
            return "Nothing happens. Actions: " + ", ".join(self.numbers)
        observation, reward, terminated, truncated, _ = self.env.step(number)
        success = terminated and reward >= self.success_at
        if terminated or truncated:
            self.end(success=success)
        # Solving pays 1 in all, whatever scale the environment has.
        if success:
            self.reward(1.0)
        return self.told(observation)

    def told(self, observation):
        drawn = self.env.render() if self.env.render_mode == "ansi" else None
        return readable(drawn) if drawn else str(observation)

    def admissible(self):
        return list(self.numbers)

    def oracle(self):
        number = best_action(self.env.unwrapped, self.success_at)
        return next((word for word, its in self.numbers.items() if its == number), None)


serve(Gym)
