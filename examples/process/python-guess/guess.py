"""Guess a number from 1 to 9: an environment for spar, from nothing but the standard library."""

import json
import sys

NUMBERS = [str(number) for number in range(1, 10)]
sessions = {}  # the secret number of each session, by its `env`


def show(secret, text, **more):
    return {"observation": {"text": text, "admissible": NUMBERS}, "oracle": str(secret), **more}


def answer(call, request):
    if call == "hello":
        return {"protocol": 1, "name": "python-guess", "concurrent": 64, "fork": True}
    env = request["env"]
    if call == "reset":
        sessions[env] = request["task"]["seed"] * 7919 % 9 + 1
        return show(sessions[env], "Guess a number from 1 to 9.")
    if call == "close":
        sessions.pop(env, None)
        return {}
    secret = sessions[env]
    if call == "fork":
        sessions[request["to"]] = secret
        return {}
    if call != "step":
        return {"error": f"there is no call {call}"}
    guess = request["action"]["text"].strip()
    if guess not in NUMBERS:
        return show(secret, "Nothing happens.", valid=False)
    if int(guess) != secret:
        return show(secret, "More." if int(guess) < secret else "Less.")
    return show(secret, "Right.", rewards={"success": 1.0}, success=True, terminated=True)


for line in sys.stdin.buffer:
    try:
        request = json.loads(line)
        number, call = request["id"], request["call"]
    except (ValueError, TypeError, KeyError):
        continue  # what is no request is not answered
    try:
        told = answer(call, request)
    except Exception as error:
        told = {"error": repr(error)}
    print(json.dumps({"id": number, **told}), flush=True)
