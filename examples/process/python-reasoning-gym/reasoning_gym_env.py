"""Puzzles of reasoning-gym by the package itself, for those of its datasets that spar does not make.

A task has `dataset`, its `options`, and `seed`; the puzzle is item 0 of that seed. See docs/reasoning-gym.md.
"""

import contextlib
import json
import sys

import reasoning_gym
from reasoning_gym.utils import extract_answer


class Session:
    def __init__(self, task):
        self.dataset = reasoning_gym.create_dataset(task["dataset"], seed=task["seed"], size=1, **task.get("options", {}))
        self.item = self.dataset[0]

    def oracle(self):
        answer = self.item["answer"]
        return None if answer is None else f"<answer>{answer}</answer>"

    def score(self, said):
        answer = extract_answer(said)
        try:
            return float(self.dataset.score_answer(said if answer is None else answer, self.item))
        except Exception:
            # Some scorers raise an exception for answers that they do not understand.
            return 0.0


def answer(request, sessions):
    call = request["call"]
    if call == "hello":
        return {"protocol": 1, "name": "reasoning-gym", "concurrent": 64}
    if call == "reset":
        session = sessions[request["env"]] = Session(request["task"])
        told = {"observation": {"text": session.item["question"]}, "tags": [request["task"]["dataset"]]}
        if session.oracle() is not None:
            told["oracle"] = session.oracle()
        return told
    if call == "step":
        score = min(1.0, max(0.0, sessions[request["env"]].score(request["action"].get("text", ""))))
        return {
            "observation": {"text": "The question was answered."},
            "rewards": {"score": score},
            "terminated": True,
            "success": score == 1.0,
        }
    if call == "close":
        sessions.pop(request["env"], None)
        return {}
    return {"error": f"there is no call `{call}`"}


def main():
    sessions = {}
    out = sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        try:
            # What datasets print is for people.
            with contextlib.redirect_stdout(sys.stderr):
                told = answer(request, sessions)
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **told}), file=out, flush=True)


main()
