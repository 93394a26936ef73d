"""ScienceWorld (arXiv 2203.07540), by its own simulator: the jar in the package `scienceworld` of PyPI, which takes Java.

A task names the experiment (`task`), its `simplifications` (default "easy"), and of which `variations` it is (train, dev or test, as
ScienceWorld divides them); the seed chooses one of these. With `gold`, false by default, the oracle knows the way, which takes a while to find. What
ScienceWorld's score gains is the reward, as a share of what there was to gain; a failed experiment gives back what was earned.
"""

from scienceworld import ScienceWorldEnv
from spar_env import Env, serve


class ScienceWorld(Env):
    # A simulator is a Java process and plays one experiment at a time; there are as many programs as episodes.
    concurrent = 1
    forks = False
    simulator = None

    def reset(self, task, seed):
        kind = type(self)
        if kind.simulator is None:
            # The limit of turns is the task's, not the simulator's.
            kind.simulator = ScienceWorldEnv("", envStepLimit=1_000_000)
        self.world = kind.simulator
        name, split = task["task"], task.get("variations", "train")
        self.world.load(name, 0, "", False)
        choices = {
            "train": self.world.get_variations_train,
            "dev": self.world.get_variations_dev,
            "test": self.world.get_variations_test,
        }
        if split not in choices:
            raise ValueError(f"variations is {split}, allowed are train, dev and test")
        variations = list(choices[split]())
        variation = variations[task["seed"] % len(variations)]
        has_gold = bool(task.get("gold", False))
        self.world.load(name, variation, task.get("simplifications", "easy"), has_gold)
        self.world.reset()
        # Some goals are met where one begins, and counted with the first action: this one, so that doing nothing earns nothing.
        text, _, _, info = self.world.step("look around")
        self.way = list(self.world.get_gold_action_sequence()) if has_gold else None
        # What the house gives before anything is done is nobody's merit.
        self.start = self.earned = max(0.0, info["score"] / 100)
        self.info, self.name = info, name
        return {"text": text, "instruction": info["taskDesc"]}

    def step(self, text):
        action = " ".join(text.split())[:500]
        told, _, is_over, self.info = self.world.step(action)
        if told.startswith(("No known action matches that input", "Unknown action")):
            self.invalid()
        # Who leaves the way does not find back to it.
        if self.way is not None:
            self.way = self.way[1:] if self.way and self.way[0] == action else []
        now = max(0.0, self.info["score"] / 100)
        if now != self.earned:
            self.reward((now - self.earned) / (1 - self.start), name="score")
            self.earned = now
        if is_over:
            self.end(success=now >= 1.0)
        return told

    def admissible(self):
        return sorted(set(self.info["valid"]))

    def state_key(self):
        return f"{self.info['look']}\n{self.info['inv']}\n{self.info['score']}"

    def oracle(self):
        return self.way[0] if self.way else None

    def tags(self):
        return [self.name]


serve(ScienceWorld)
