"""Environments for spar in Python, without the protocol: copy this file beside your program.

    from spar_env import Env, serve, tool

    class Guess(Env):
        def reset(self, task, seed):
            self.secret = task["seed"] % 9 + 1
            return "Guess a number from 1 to 9."

        def step(self, text):
            if text == str(self.secret):
                self.end(success=True, reward=1.0)
                return "Right."
            return "No."

    serve(Guess)

Needs Python 3.8 or later and nothing else. The protocol is in spar's docs/process-environments.md.
"""

import copy
import inspect
import json
import os
import sys
import traceback
import typing

PROTOCOL = 1
SCHEMAS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
TYPES = {name: kind for kind, name in SCHEMAS.items()}


def tool(method):
    """Lets the policy call a method: its schema comes from the signature, its description from the docstring. Arguments
    are held to annotations that SCHEMAS has; any others are the method's own to check."""
    method.is_tool = True
    return method


class Env:
    """One episode. Everything that is to be kept apart between episodes belongs into `self`."""

    concurrent = 64  # episodes at one time in this program; 1 where they would share anything
    forks = True  # whether copy.deepcopy copies all of an episode

    def reset(self, task, seed):
        """Begins the episode of `task`, a dict; `seed` is for luck within it. Returns a text, or a dict of the
        fields of an observation."""
        raise NotImplementedError

    def step(self, text):
        """Carries out an action in words. Returns as `reset` does."""
        self.invalid()
        return "Nothing happens: call a tool."

    def admissible(self):
        """The actions in words that can be executed now; None where any can be tried."""
        return None

    def state_key(self):
        """A name of the situation as the policy can know it; None for the text."""
        return None

    def oracle(self):
        """What a player who sees all would do next: a text, or calls as `call` makes them. None where there is no such player."""
        return None

    def expert(self):
        """What a good player would do next who knows only what was shown."""
        return None

    def tags(self):
        """Labels of the task, told once behind `reset`."""
        return []

    def reward(self, value, name="success"):
        """Pays a part of this step's reward."""
        self._rewards[name] = self._rewards.get(name, 0.0) + float(value)

    def end(self, success=False, reward=0.0):
        """Ends the episode with this step."""
        self._ended, self._success = True, bool(success)
        if reward:
            self.reward(reward)

    def invalid(self):
        """Says that the action could not be executed."""
        self._valid = False

    # What follows is for `serve`.

    def _begin(self):
        self._rewards, self._ended, self._success, self._valid = {}, False, False, True

    def _shown(self, told, **more):
        shown = dict(told) if isinstance(told, dict) else {"text": str(told or "")}
        for name, value in (("admissible", self.admissible()), ("state_key", self.state_key())):
            if value is not None:
                shown.setdefault(name, value)
        answer = {"observation": shown, **more}
        if not self._ended:
            for name, value in (("oracle", self.oracle()), ("expert", self.expert())):
                if value is not None:
                    answer[name] = value
        return answer

    def _step(self, action):
        self._begin()
        calls = action.get("calls")
        if calls:
            told = {"text": "", "results": [self._call(call) for call in calls]}
        else:
            told = self.step(action.get("text", ""))
        return self._shown(
            told, rewards=self._rewards, terminated=self._ended, success=self._success, valid=self._valid
        )

    def _call(self, call):
        method = self._tools().get(call["name"])
        try:
            if method is None:
                raise TypeError(f"there is no tool {call['name']}, only {', '.join(self._tools()) or 'none'}")
            _check_arguments(method, call["arguments"])
        except TypeError as error:
            self.invalid()
            return {"text": str(error), "is_error": True}
        told = method(**call["arguments"])
        return dict(told) if isinstance(told, dict) else {"text": str(told)}

    def _tools(self):
        return {name: getattr(self, name) for name in _tool_names(type(self))}

    def _specs(self):
        return [_spec(name, method) for name, method in self._tools().items()]


def call(name, **arguments):
    """A call of a tool, for `oracle` and `expert`."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def _tool_names(kind):
    """The tools of a class, those that it inherits among them."""
    found = ((name, inspect.getattr_static(kind, name)) for name in dir(kind) if not name.startswith("_"))
    return [name for name, method in found if getattr(method, "is_tool", False)]


def _parameters(method):
    """The parameters that have names, each with its type in JSON; None for one that can be anything."""
    hints = typing.get_type_hints(method)
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            hint = hints.get(parameter.name)
            # Of `List[int]` it is `list` that counts.
            hint = typing.get_origin(hint) or hint
            yield parameter, SCHEMAS.get(hint) if isinstance(hint, type) else None


def _fits(value, kind):
    if kind is None:
        return True
    # To Python, True is 1.
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, (int, float) if kind == "number" else TYPES[kind])


def _check_arguments(method, arguments):
    """Raises TypeError for what the method cannot be called with: the policy's mistake, which is no error of the program."""
    inspect.signature(method).bind(**arguments)
    for parameter, kind in _parameters(method):
        value = arguments.get(parameter.name, parameter.default)
        is_left_out = value is parameter.default or value is None and parameter.default is None
        if not is_left_out and not _fits(value, kind):
            raise TypeError(f"argument {parameter.name} is to be of type {kind}, not {json.dumps(value)[:100]}")


def _spec(name, method):
    properties, required = {}, []
    for parameter, kind in _parameters(method):
        properties[parameter.name] = {"type": kind} if kind else {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": inspect.getdoc(method) or "", "parameters": schema}


def _answer(kind, sessions, request):
    what = request["call"]
    if what == "hello":
        return {
            "protocol": PROTOCOL, "name": kind.__name__, "concurrent": kind.concurrent,
            "fork": kind.forks and kind.concurrent > 1, "tools": bool(_tool_names(kind)),
        }
    number = request["env"]
    if what == "reset":
        session = kind()
        session._begin()
        told = session.reset(request["task"], request["seed"])
        sessions[number] = session
        return session._shown(told, tags=list(session.tags()))
    if what == "close":
        sessions.pop(number, None)
        return {}
    if number not in sessions:
        raise LookupError(f"there is no session {number}")
    session = sessions[number]
    if what == "step":
        return session._step(request["action"])
    if what == "tools":
        return {"tools": session._specs()}
    if what == "fork":
        sessions[request["to"]] = copy.deepcopy(session)
        return {}
    raise LookupError(f"there is no call {what}")


def serve(kind):
    """Answers spar until standard input ends, with an episode of `kind` for each session."""
    # What is printed, by whatever library, goes to standard error.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sessions = {}
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
            number, _ = request["id"], request["call"]
        except (ValueError, TypeError, KeyError):
            continue  # what is no request is not answered
        try:
            answer = _answer(kind, sessions, request)
            text = json.dumps({"id": number, **answer}, allow_nan=False)
        except Exception as error:
            # What is shown of it is the beginning.
            said = "".join(traceback.format_exception_only(type(error), error))
            text = json.dumps({"id": number, "error": said + traceback.format_exc(limit=-4)})
        out.write(text + "\n")
        out.flush()
