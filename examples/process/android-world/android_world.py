"""AndroidWorld (arXiv 2405.14573), over the HTTP interface of its own server (`server/android_server.py` in its repository).

A task names `kinds`, AndroidWorld's types of tasks, which take turns by seed; `suite_seed` and `combinations`, with which the server
draws the parameters of all tasks; and `scale`, by how much pictures are smaller than the screen (default 3). Places in
actions are pixels of the picture. Where the server is stands in the variable ANDROID_WORLD. An episode is judged by the server when the policy says
that it is done (`status`), as AndroidWorld has it; who never does earns nothing.
"""

import base64
import hashlib
import json
import os
import struct
import urllib.error
import urllib.parse
import urllib.request
import zlib

from spar_env import Env, serve

SERVER = os.environ.get("ANDROID_WORLD", "http://localhost:5000").rstrip("/")
# The screen comes as numbers in text: some 30 MB of them.
MOST_BYTES = 256 << 20
FIELDS = {
    "click": {"x", "y"}, "double_tap": {"x", "y"}, "long_press": {"x", "y"},
    "input_text": {"text", "x", "y", "clear_text"}, "scroll": {"direction", "x", "y"}, "swipe": {"direction", "x", "y"},
    "open_app": {"app_name"}, "keyboard_enter": set(), "navigate_back": set(), "navigate_home": set(), "wait": set(),
    "answer": {"text"}, "status": {"goal_status"},
}
NEEDED = {
    "click": {"x", "y"}, "double_tap": {"x", "y"}, "long_press": {"x", "y"}, "input_text": {"text"},
    "scroll": {"direction"}, "swipe": {"direction"}, "open_app": {"app_name"}, "answer": {"text"}, "status": {"goal_status"},
}
VALUES = {"direction": {"up", "down", "left", "right"}, "goal_status": {"complete", "infeasible"}}
# The server is spoken to directly, whatever proxy there is.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(method, path, body=None, **parameters):
    """What the server answers; an exception, which fails the episode, where it does not do its part."""
    query = urllib.parse.urlencode({name: str(value).lower() if isinstance(value, bool) else value
                                    for name, value in parameters.items()})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{SERVER}{path}?{query}", data=data, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with OPENER.open(request, timeout=300) as answer:
            text = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {path} was answered with {error.code}: {error.read(500)!r}") from error
    if len(text) > MOST_BYTES:
        raise RuntimeError(f"{method} {path} was answered with more than {MOST_BYTES} bytes")
    return json.loads(text)


def png(rows):
    """Rows of [red, green, blue] as a picture."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel[:3]) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


class AndroidWorld(Env):
    # There is one phone.
    concurrent = 1
    forks = False
    drawn = None
    open = None

    def reset(self, task, seed):
        kinds, scale = task["kinds"], task.get("scale", 3)
        if not isinstance(scale, int) or scale < 1:
            raise ValueError(f"scale is {scale}, must be a whole number from 1")
        combinations, drawn_by = task.get("combinations", 2), task.get("suite_seed", 42)
        kind = type(self)
        # What an episode before has left, whatever became of that.
        if kind.open:
            place, kind.open = kind.open, None
            ask("POST", "/task/tear_down", **place)
        if kind.drawn != (combinations, drawn_by):
            ask("GET", "/suite/reinitialize", n_task_combinations=combinations, seed=drawn_by)
            kind.drawn = (combinations, drawn_by)
        self.scale, self.name = scale, kinds[task["seed"] % len(kinds)]
        number = task["seed"] // len(kinds) % ask("GET", "/suite/task_length", task_type=self.name)["length"]
        self.place = {"task_type": self.name, "task_idx": number}
        ask("POST", "/reset", go_home=True)
        ask("POST", "/task/initialize", **self.place)
        kind.open = self.place
        goal = ask("GET", "/task/goal", **self.place)["goal"]
        return {**self.screen(goal), "instruction": goal}

    def screen(self, text):
        """What is shown, a pixel of every few."""
        pixels = ask("GET", "/screenshot", wait_to_stabilize=True)["pixels"]
        rows = [row[:: self.scale] for row in pixels[:: self.scale]]
        self.size, self.whole = (len(rows[0]), len(rows)), (len(pixels[0]), len(pixels))
        picture = png(rows)
        self.key = hashlib.sha256(picture).hexdigest()[:16]
        return {"text": text, "media": [{"media_type": "image/png", "base64": base64.b64encode(picture).decode()}]}

    def read(self, text):
        """The action in a text, or what is wrong with it."""
        try:
            action = json.loads(text)
        except ValueError:
            return None, "this is no JSON"
        if not isinstance(action, dict) or action.get("action_type") not in FIELDS:
            return None, f"action_type has to be one of {', '.join(sorted(FIELDS))}"
        kind = action["action_type"]
        given = {name: value for name, value in action.items() if name != "action_type" and value is not None}
        if set(given) - FIELDS[kind]:
            return None, f"{kind} has no {', '.join(sorted(set(given) - FIELDS[kind]))}"
        if NEEDED.get(kind, set()) - set(given):
            return None, f"{kind} needs {', '.join(sorted(NEEDED[kind] - set(given)))}"
        if ("x" in given) != ("y" in given):
            return None, "x and y are given together"
        for name, value in given.items():
            if name in ("x", "y"):
                most, all_of_it = self.size[name == "y"], self.whole[name == "y"]
                if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < most:
                    return None, f"{name} has to be a whole number from 0 to {most - 1}"
                given[name] = min(value * self.scale + self.scale // 2, all_of_it - 1)
            elif name == "clear_text":
                if not isinstance(value, bool):
                    return None, "clear_text has to be true or false"
            elif not isinstance(value, str) or len(value) > 10000:
                return None, f"{name} has to be a text of at most 10000 letters"
            elif value not in VALUES.get(name, {value}):
                return None, f"{name} has to be one of {', '.join(sorted(VALUES[name]))}"
        return {"action_type": kind, **given}, None

    def step(self, text):
        action, wrong = self.read(text)
        if wrong:
            self.invalid()
            return f"Nothing was done: {wrong}."
        ask("POST", "/execute_action", body=action)
        if action["action_type"] != "status":
            return self.screen("")
        score = min(1.0, max(0.0, float(ask("GET", "/task/score", **self.place)["score"])))
        place, type(self).open = type(self).open, None
        ask("POST", "/task/tear_down", **place)
        if score:
            self.reward(score)
        self.end(success=score >= 1.0)
        return "The task is over."

    def state_key(self):
        return self.key

    def tags(self):
        return [self.name, "no oracle"]


serve(AndroidWorld)
