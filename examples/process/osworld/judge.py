"""How a task of OSWorld is judged: what has come of it is fetched from the computer and held against what was expected."""

import importlib
import sys

import getters
import metrics
import steps

# OSWorld's own package has the metrics that are not here.
PACKAGE = "desktop_env.evaluators.metrics"


def as_list(given, length):
    """A setting that stands once where there is one metric, and in a list where there are several."""
    return given if isinstance(given, list) else [given] * length


def parts(evaluator):
    """The metrics of an evaluator as (name, result, expected, options)."""
    names = evaluator["func"] if isinstance(evaluator["func"], list) else [evaluator["func"]]
    wrapped = isinstance(evaluator["func"], list)
    columns = [evaluator.get(name) or [None] * len(names) if wrapped else [evaluator.get(name) or None]
               for name in ("result", "expected", "options")]
    return list(zip(names, *columns)) if all(isinstance(column, list) and len(column) == len(names) for column in columns) else None


def metric_of(name):
    """A metric of ours, or OSWorld's own where its package is installed; None where there is none."""
    if name in metrics.METRICS:
        return metrics.METRICS[name][0]
    try:
        return getattr(importlib.import_module(PACKAGE), name, None)
    except Exception as error:
        # Of what it needs, anything can be missing.
        print(f"could not load {PACKAGE}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def problems(task):
    """Why a task cannot be played or judged here; nothing where it can."""
    evaluator = task.get("evaluator")
    if not isinstance(task.get("instruction"), str) or not isinstance(evaluator, dict) or "func" not in evaluator:
        return ["a task has `instruction` and an `evaluator` with `func`"]
    found = steps.problems(task.get("config") or [], "step")
    found += steps.problems(evaluator.get("postconfig") or [], "step before judging")
    if task.get("proxy"):
        found.append("it is to go through a proxy (`proxy`)")
    if evaluator["func"] == "infeasible":
        return found
    if evaluator.get("conj", "and") not in ("and", "or"):
        found.append(f"`conj` is `{evaluator['conj']}`, which is not known")
    judged = parts(evaluator)
    if not judged:
        return found + ["`func`, `result`, `expected` and `options` are not of one length"]
    for name, result, expected, options in judged:
        if metric_of(name) is None:
            found.append(f"metric `{name}` is not here, and OSWorld's package `desktop-env`, which may have it, cannot be loaded")
            continue
        found += getters.problems(result, f"the result of `{name}`")
        found += getters.problems(expected, f"what `{name}` expects") if expected else []
        if name in metrics.METRICS:
            found += problems_of_ours(name, expected, options or {})
    return found


def problems_of_ours(name, expected, options):
    found = [f"metric `{name}` has the option `{option}`, which is not known" for option in options if option not in metrics.OPTIONS.get(name, ())]
    needed = metrics.METRICS[name][1]
    rules = expected.get("rules") if isinstance(expected, dict) and expected.get("type") == "rule" else None
    if needed is not None and not isinstance(rules, dict):
        found.append(f"metric `{name}` needs an expected `rule`")
    elif needed is not None:
        found += [f"metric `{name}` needs `{key}` in its rules" for key in needed if key not in rules]
    if name == "check_direct_json_object" and isinstance(rules, dict) and isinstance(rules.get("expected"), dict) and "ignore_list_order" in rules["expected"]:
        found.append(f"metric `{name}` has `ignore_list_order`, which is not known")
    return found


def judge(here, evaluator, has_failed, note):
    """How far the task is done, from 0 to 1. `has_failed`: the policy said that it cannot be. What could not be done or read is told to `note`."""
    steps.carry_out(here, evaluator.get("postconfig") or [], "step before judging", note)
    if evaluator["func"] == "infeasible" or has_failed:
        return float(evaluator["func"] == "infeasible" and has_failed)
    conj, scores = evaluator.get("conj", "and"), []
    for name, result, expected, options in parts(evaluator):
        score = measure(here, name, result, expected, options or {}, note)
        if conj == "and" and score == 0.0 or conj == "or" and score == 1.0:
            return score
        scores.append(score)
    return sum(scores) / len(scores) if conj == "and" else max(scores)


def measure(here, name, result, expected, options, note):
    """One metric."""
    given = [getters.fetch(here, result)]
    if expected:
        given.append(getters.fetch(here, expected))
    if given[0] is None:
        note(f"metric `{name}`: there is nothing to judge")
        return 0.0
    # What OSWorld's own raise is their matter.
    unreadable = metrics.UNREADABLE if name in metrics.METRICS else Exception
    try:
        return min(1.0, max(0.0, float(metric_of(name)(*given, **options))))
    except unreadable as error:
        note(f"metric `{name}` could not read what is there: {type(error).__name__}: {error}")
        return 0.0
