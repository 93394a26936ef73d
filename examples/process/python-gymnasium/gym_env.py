"""Any environment of gymnasium with numbered actions whose state can be told in text.

A task names the environment (`id`), its `options`, words for its `actions` by number, and the reward of a step from
which on the task counts as solved (`success_at`, default above 0). The state is what the environment draws as text
where it can (render_mode "ansi"), or else its observation.
"""

import re

import gymnasium
from spar_env import Env, serve

# What is told by colour, as marks that can be read: where one is, who waits there, where they want to go.
COLOURED = re.compile(r"\x1b\[([0-9;]*)m(.*?)\x1b\[0m")
MARKS = {"41": "[]", "42": "[]", "43": "[]", "34;1": "()", "35": "{}"}


def readable(drawn):
    def mark(found):
        left, right = MARKS.get(found[1], "") or ("", "")
        return left + found[2] + right

    return COLOURED.sub(mark, drawn).strip()


class Gym(Env):
    def reset(self, task, seed):
        options = dict(task.get("options", {}))
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
        observation, _ = self.env.reset(seed=(task["seed"] * 1_000_003 + seed) % 2**31)
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


serve(Gym)
