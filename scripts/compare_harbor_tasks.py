#!/usr/bin/env python3
"""Holds what spar-swe accepts as a task folder of Harbor against what the models of the PyPI package `harbor` accept.

    python3.12 -m venv V && V/bin/pip install harbor==0.26.0 tomli-w
    V/bin/python scripts/compare_harbor_tasks.py target/debug/examples/instances FOLDER... [--mutants N] [--seed N]

Every task folder below the FOLDERs is read by both, and so are N mutants (default 500) of `task.toml` in copies of them:
fields removed, added, of other types and of other values. It prints how often both agree, and ends with 1 unless always.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
import typing
import warnings

if not hasattr(typing, "override"):  # Python 3.11 has its models but not this mark.
    import typing_extensions

    typing.override = typing_extensions.override

import tomli_w
from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task

warnings.simplefilter("ignore")

VALUES = [
    "", "x", "a/b", "1.0", "1.4", "linux", "Windows", "beos", "public", "no-network", "allowlist", "shared", "separate",
    "mean", "final", "512M", "2G", "2T", "G", "/app", "../x", "CON", "sse", "stdio", "http", "${X}", "600", "nan",
    0, 1, 2, -1, 600, 1.5, 2.0, 0.0, True, False, [], ["a"], ["example.com"], ["*.example.com", "10.0.0.0/8"],
    ["http://a.b"], [1], {}, {"a": "b"}, {"a": 1}, {"reward": 0.5}, [{}], [{"name": "a"}], [{"source": "/a"}],
    [{"name": "a", "transport": "stdio", "command": "b"}], [{"name": "a", "url": "http://b"}], [{"command": "c"}],
    [{"name": "a", "url": "http://b", "headers": {"Authorization": "Bearer x"}}],
    [{"name": "a", "url": "http://b", "headers": {"Authorization": "Bearer ${X}"}}],
    ["/a", {"source": "/b", "destination": "c"}], [{"source": "b", "service": "db"}], [{"source": "/b", "destination": "/c"}],
    {"command": "true"}, {"command": "true", "retries": 2}, {"interval_sec": 1}, {"network_mode": "no-network"},
    {"type": "v6e", "topology": "2x4"}, {"type": "", "topology": "2x4"}, {"type": "v4", "topology": "2"},
    {"name": "a/b"}, {"name": "a"}, {"name": "a/b", "version": ""}, {"name": "a/b", "authors": [{"name": "c"}]},
]
PLACES = [
    ("schema_version",), ("version",), ("source",), ("multi_step_reward_strategy",), ("artifacts",), ("task",), ("metadata",),
    ("task", "name"), ("task", "version"), ("task", "description"), ("task", "authors"), ("task", "keywords"),
    ("agent",), ("agent", "timeout_sec"), ("agent", "user"), ("agent", "network_mode"), ("agent", "allowed_hosts"),
    ("verifier",), ("verifier", "timeout_sec"), ("verifier", "env"), ("verifier", "user"), ("verifier", "environment_mode"),
    ("verifier", "environment"), ("verifier", "collect"), ("verifier", "network_mode"), ("verifier", "allowed_hosts"),
    ("environment",), ("environment", "build_timeout_sec"), ("environment", "docker_image"), ("environment", "os"),
    ("environment", "cpus"), ("environment", "memory_mb"), ("environment", "storage_mb"), ("environment", "memory"),
    ("environment", "storage"), ("environment", "gpus"), ("environment", "gpu_types"), ("environment", "tpu"),
    ("environment", "network_mode"), ("environment", "allowed_hosts"), ("environment", "mcp_servers"), ("environment", "env"),
    ("environment", "skills_dir"), ("environment", "healthcheck"), ("environment", "workdir"),
    ("environment", "allow_internet"), ("solution",), ("solution", "env"), ("unknown",), ("environment", "unknown"),
]


def mutate(table, rng):
    table = json.loads(json.dumps(table))
    for _ in range(rng.randint(1, 3)):
        place = rng.choice(PLACES)
        at = table
        for part in place[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                break
        else:
            if rng.random() < 0.2:
                at.pop(place[-1], None)
            else:
                at[place[-1]] = rng.choice(VALUES)
    return table


def original(folder):
    """Why the package refuses a folder; none where it takes it."""
    try:
        config = TaskConfig.model_validate_toml((folder / "task.toml").read_text())
        if not config.environment.docker_image and not (folder / "environment").is_dir():
            return "no environment"
        Task(folder)
    except Exception as error:  # noqa: BLE001 - its models raise of many kinds
        return f"{type(error).__name__}: {error}"
    return None


def ours(binary, folders):
    done = subprocess.run([binary, "-"], input="\n".join(map(str, folders)), capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(found) == len(folders), (len(found), len(folders))
    return [entry.get("error") for entry in found]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tasks = sorted(path.parent for folder in options.folders for path in pathlib.Path(folder).rglob("task.toml"))
    with tempfile.TemporaryDirectory() as scratch:
        mutants = []
        for number in range(options.mutants):
            task = rng.choice(tasks)
            copy = pathlib.Path(scratch) / f"m{number}"
            shutil.copytree(task, copy, symlinks=True, ignore=shutil.ignore_patterns("data", "*.bin"))
            table = mutate(tomllib.loads((task / "task.toml").read_text()), rng)
            (copy / "task.toml").write_text(tomli_w.dumps(table))
            mutants.append(copy)
        counts = {}
        wrong = 0
        for kind, folders in (("real", tasks), ("mutants", mutants)):
            for folder, refusal in zip(folders, ours(options.binary, folders)):
                expected = original(folder)
                if not expected and refusal and "is no name of an image" in refusal:
                    # Its models take any text; no engine takes this one.
                    counts[kind, "refused", "by us alone, as no name of an image"] = 1 + counts.get((kind, "refused", "by us alone, as no name of an image"), 0)
                    continue
                key = (kind, "refused" if expected else "accepted", "equal" if bool(expected) == bool(refusal) else "differ")
                counts[key] = counts.get(key, 0) + 1
                if bool(expected) != bool(refusal):
                    wrong += 1
                    if wrong <= 12:
                        print("DIFFERS", folder, "\n  harbor:", str(expected)[:300], "\n  ours:  ", refusal)
                        print("  " + (folder / "task.toml").read_text().replace("\n", "\n  ")[:900])
    for key, count in sorted(counts.items()):
        print(*key, count)
    sys.exit(1 if wrong else 0)


main()
