"""OSWorld (arXiv 2404.07972), over the HTTP interface of the server in its virtual machine (`desktop_env/server/main.py` in its repository).

A task is one of OSWorld's own, as its files have it: `instruction`, `config` (what is done on the computer before) and `evaluator` (how
it is judged). Settings beside these are in SETTINGS. What of a task cannot be carried out over the interface is told before anything
is done on the computer, and fails the episode. Where the computer is stands in the variable OSWORLD; see `env.toml` for the others.
"""

import base64
import hashlib
import os
import tempfile
import time
from pathlib import Path

import actions
import judge
import steps
import tree
from machine import Machine, MachineError, Refused
from spar_env import Env, serve

# Settings of a task with their defaults, and which values they can have.
SETTINGS = {
    "action_space": ("pyautogui", tuple(actions.ABOUT)),
    "observation": ("screenshot", ("screenshot", "a11y_tree", "screenshot_a11y_tree")),
    # What stands in the terminal in front, beside the screen.
    "terminal": (False, (False, True)),
    # Answers until the task is judged, whether the policy has ended it or not.
    "max_steps": (15, range(1, 1001)),
    # Seconds behind an action, behind the steps before the task, and before it is judged.
    "pause": (2.0, (0, 60)), "start_pause": (60.0, (0, 600)), "end_pause": (20.0, (0, 600)),
    "tree_bytes": (40_000, range(1_000, 1_000_001)),
}
# What else is in OSWorld's files, and plays no part here.
OTHER_FIELDS = {"id", "instruction", "config", "evaluator", "snapshot", "source", "trajectory", "related_apps", "proxy", "fixed_ip",
                "possibility_of_env_change", "os_type", "seed"}
MACHINE = Machine(
    os.environ.get("OSWORLD", "http://localhost:5000"),
    float(os.environ.get("OSWORLD_WAIT_SECS", "300")),
    float(os.environ.get("OSWORLD_RETRY_SECS", "5")),
)


def settings_of(task):
    """The settings of a task, checked."""
    found = {}
    for name, (default, allowed) in SETTINGS.items():
        value = task.get(name, default)
        if isinstance(default, float):
            is_right = isinstance(value, (int, float)) and not isinstance(value, bool) and allowed[0] <= value <= allowed[1]
            told = f"from {allowed[0]} to {allowed[1]}"
        else:
            is_right = type(value) is type(default) and value in allowed
            told = f"from {allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else "one of " + ", ".join(map(str, allowed))
        if not is_right:
            raise ValueError(f"{name} is {value!r}, must be {told}")
        found[name] = value
    return found


class OsWorld(Env):
    # There is one computer.
    concurrent = 1
    forks = False

    def reset(self, task, seed):
        unknown = set(task) - OTHER_FIELDS - set(SETTINGS)
        wrong = [f"it has `{name}`, which is not known" for name in sorted(unknown)] + judge.problems(task)
        if wrong:
            raise ValueError("the task cannot be played over the interface of OSWorld's server: " + "; ".join(wrong))
        self.settings, self.task, self.answers = settings_of(task), task, 0
        self.machine, self.password = MACHINE, os.environ.get("OSWORLD_PASSWORD", "password")
        # Goes with the session.
        self.folder = tempfile.TemporaryDirectory(prefix="spar-osworld-")
        self.platform = self.machine.begin(os.environ.get("OSWORLD_REVERT"), os.environ.get("OSWORLD_REUSE") == "yes")
        self.size = self.machine.screen_size()
        steps.carry_out(self, task.get("config") or [], "step")
        time.sleep(self.settings["start_pause"])
        about = actions.ABOUT[self.settings["action_space"]]
        head = f"The screen has {self.size[0]} by {self.size[1]} pixels; the computer's password is {self.password!r}.\n{about}"
        return {**self.screen(f"{task['instruction']}\n\n{head}"), "instruction": task["instruction"]}

    def path(self, name):
        """A file in the episode's folder on this machine."""
        if Path(name).name != name:
            raise MachineError(f"`{name}` is to be the name of a file, without a folder")
        return Path(self.folder.name) / name

    def screen(self, text):
        """What is shown."""
        shown, texts = self.settings["observation"], [text] if text else []
        if "a11y_tree" in shown:
            texts.append(tree.text_of(self.machine.accessibility(), self.platform, self.settings["tree_bytes"]))
        if self.settings["terminal"]:
            texts.append("Terminal:\n" + self.machine.terminal())
        told = {"text": "\n\n".join(texts)}
        picture = b""
        if "screenshot" in shown:
            media_type, picture = self.machine.screenshot()
            told["media"] = [{"media_type": media_type, "base64": base64.b64encode(picture).decode()}]
        self.key = hashlib.sha256(picture + b"\0" + told["text"].encode(errors="replace")).hexdigest()[:16]
        return told

    def step(self, text):
        self.answers += 1
        told, last = [], None
        try:
            found = actions.read(text, self.settings["action_space"], self.size)
        except actions.Wrong as wrong:
            self.invalid()
            found, told = [], [f"Nothing was done: {wrong}."]
        for last in found:
            if last not in ("DONE", "FAIL"):
                told += self.act(last)
        if last in ("DONE", "FAIL") or self.answers >= self.settings["max_steps"]:
            return self.judged(last == "FAIL", told)
        return self.screen("\n".join(told))

    def act(self, action):
        """Carries out an action; what there is to say of it."""
        told = []
        if action == "WAIT":
            time.sleep(self.settings["pause"])
        else:
            try:
                done = self.machine.execute(["python", "-c", action])
                if done["returncode"]:
                    self.invalid()
                    told = ["The program failed: " + (done["error"].strip().splitlines() or [f"it exited with {done['returncode']}"])[-1][:500]]
            except Refused as refused:
                # The server could not start it, or has ended it: the computer is not to blame.
                self.invalid()
                told = [f"The program was not run to its end: {refused}"[:500]]
        time.sleep(self.settings["pause"])
        return told

    def judged(self, has_failed, told):
        time.sleep(self.settings["end_pause"])
        score = judge.judge(self, self.task["evaluator"], has_failed, told.append)
        if score:
            self.reward(score)
        self.end(success=score >= 1.0)
        self.key = "over"
        return "\n".join(["The task is over.", *told])

    def state_key(self):
        return self.key

    def tags(self):
        apps = self.task.get("related_apps") or []
        return [str(app)[:64] for app in apps if isinstance(app, str) and app][:32] + ["no oracle"]


if __name__ == "__main__":
    serve(OsWorld)
