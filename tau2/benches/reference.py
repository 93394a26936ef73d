"""Resets and calls per second of the reference: `reference.py CHECKOUT DOMAIN`.

Needs a checkout of tau2-bench with its data, and a Python with pydantic, loguru, addict, docstring-parser and deepdiff. A reset is
what the reference does for a task: it reads the domain's files, and sets up the task's initial state.
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
SECONDS = 2.0
MOST_TASKS = 10


def begin(task):
    env = environment.get_environment()
    state = task.initial_state
    env.set_state(
        state.initialization_data if state else None,
        state.initialization_actions if state else None,
        (state.message_history if state else None) or [],
    )
    return env


def is_possible(task):
    try:
        begin(task)
    except Exception:
        return False
    return True


tasks = environment.get_tasks(None)[:MOST_TASKS]
tasks = [task for task in tasks if is_possible(task)]
began, resets = time.perf_counter(), 0
while time.perf_counter() - began < SECONDS:
    begin(tasks[resets % len(tasks)])
    resets += 1
per_reset = (time.perf_counter() - began) / resets

calls, spent, at = 0, 0.0, 0
while spent < SECONDS and at < 2 * len(tasks):
    task = tasks[at % len(tasks)]
    at += 1
    env = begin(task)
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    began = time.perf_counter()
    for action in actions:
        env.get_response(
            ToolCall(id="1", name=action.name, arguments=action.arguments, requestor=action.requestor)
        )
    spent += time.perf_counter() - began
    calls += len(actions)
print(f"{domain}: reference: {1 / per_reset:.1f} resets/s, {calls / spent:.0f} calls/s without resets", flush=True)
