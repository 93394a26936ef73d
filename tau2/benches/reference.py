"""Resets and calls per second of the reference: `reference.py CHECKOUT DOMAIN`.

Measures once for each line that comes in, and answers with a line: resets per second and calls per second.

Needs a checkout of tau2-bench with its data, and a Python with pydantic, loguru, addict, docstring-parser, deepdiff, PyYAML and toml.
Time is the processor's, so that other work on the machine does not count. A reset is what the reference does for a task: it
reads the domain's files, and sets up the task's initial state. Calls are the gold calls of all tasks, in worlds that were set up before
and from calls that were read before: from a name and arguments to the text of the answer.
"""

import importlib
import os
import sys
import time
import types

checkout, domain = sys.argv[1:]
source = os.path.join(checkout, "src")
sys.path.insert(0, source)
os.environ.setdefault("TAU2_DATA_DIR", os.path.join(checkout, "data"))
# The packages' own __init__ import models, voices and servers, which no domain needs.
for name in ["tau2", "tau2.domains", "tau2.environment", "tau2.data_model"]:
    package = types.ModuleType(name)
    package.__path__ = [os.path.join(source, *name.split("."))]
    sys.modules[name] = package

from loguru import logger  # noqa: E402

logger.remove()

environment = importlib.import_module(f"tau2.domains.{domain}.environment")
ToolCall = importlib.import_module("tau2.data_model.message").ToolCall
# Passes over all tasks go on until calls took so many seconds, or all of it did.
CALLS_SECONDS = 2.0
MOST_SECONDS = 20.0


def begin(task):
    env = environment.get_environment()
    state = task.initial_state
    env.set_state(
        state.initialization_data if state else None,
        state.initialization_actions if state else None,
        (state.message_history if state else None) or [],
    )
    return env


def gold_calls(task):
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    return [
        ToolCall(id=action.action_id, name=action.name, arguments=action.arguments, requestor=action.requestor)
        for action in actions
    ]


def measure(tasks):
    began = time.perf_counter()
    resets, resets_seconds, calls, calls_seconds = 0, 0.0, 0, 0.0
    while calls_seconds < CALLS_SECONDS and (resets == 0 or time.perf_counter() - began < MOST_SECONDS):
        for task in tasks:
            before = time.process_time()
            try:
                env = begin(task)
            except Exception:
                # A task whose history holds calls that nobody answered.
                continue
            resets_seconds += time.process_time() - before
            resets += 1
            made = gold_calls(task)
            before = time.process_time()
            for call in made:
                env.get_response(call)
            calls_seconds += time.process_time() - before
            calls += len(made)
    return resets / resets_seconds, calls / calls_seconds


tasks = environment.get_tasks(None)
# The first calls of a process are slow.
for task in tasks[:5]:
    env = begin(task)
    for call in gold_calls(task):
        env.get_response(call)
for _ in sys.stdin:
    print(*measure(tasks), flush=True)
