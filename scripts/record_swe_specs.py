#!/usr/bin/env python3
"""Writes swe/src/rows/specs.json: what it takes to build and test versions of repositories.

The facts are those of the PyPI packages `swebench` 4.1.0 and `swesmith` (both MIT) and of the constants of SWE-Gym's
fork of the former (MIT); the layout is our own: equal entries once, one a line.

    python -m venv V && V/bin/pip install swebench==4.1.0
    pip download --no-deps -d D swesmith && unzip D/swesmith*.whl -d S
    V/bin/python scripts/record_swe_specs.py S/swesmith/profiles [SWE_GYM_CONSTANTS.py] > swe/src/rows/specs.json
"""

import ast
import importlib.util
import json
import pathlib
import sys

import swebench.harness.constants as swebench

# What a spec says that no build or test reads.
WITHOUT_EFFECT = {"execute_test_as_nonroot"}
RENAMED = {
    "test_cmd": "test_commands",
    "apt-pkgs": "apt_packages",
    "docker_specs": "docker",
    "env_patches": "pre_environment",
}
LISTS = {"test_commands", "install", "pre_install", "build", "eval_commands", "pip_packages", "apt_packages"}


def normal(spec, language):
    """A spec in the fields of `RepoSpec`."""
    found = {"language": language}
    for key, value in spec.items():
        key = RENAMED.get(key, key)
        if key in WITHOUT_EFFECT or value in ([], "", None, False):
            continue
        if key == "pre_environment":
            # Commands before the environment is made, which an image that is pulled has behind it.
            key, value = "pre_install", value + spec.get("pre_install", [])
        elif key == "pre_install" and "env_patches" in spec:
            continue
        found[key] = [value] if key in LISTS and isinstance(value, str) else value
    return found


class Table:
    """Entries by number, equal ones once."""

    def __init__(self):
        self.numbers = {}

    def number(self, entry):
        return self.numbers.setdefault(json.dumps(entry, sort_keys=True), len(self.numbers))


def load(path):
    spec = importlib.util.spec_from_file_location("constants_of_fork", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def value_of(node):
    """A constant, with `testbed` where a text names the environment."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "testbed" for part in node.values]
        return "".join(parts)
    return None


def swesmith_profiles(folder):
    """Test commands of Python repositories, by `owner__repo.commit`; those of the default are left out."""
    tree = ast.parse((pathlib.Path(folder) / "python.py").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def read(node):
        found = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                found.update(read(classes[base.id]))
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and part.value is not None:
                value = value_of(part.value)
                if value is not None:
                    found[part.target.id] = value
            if isinstance(part, ast.FunctionDef) and part.name == "get_test_cmd":
                found["own_command"] = True
        return found

    default = read(classes["PythonProfile"])
    repos = {}
    for node in classes.values():
        found = read(node)
        if "owner" not in found or "commit" not in found:
            continue
        key = f"{found['owner']}__{found['repo']}.{found['commit'][:8]}"
        entry = {}
        if found["test_cmd"] != default["test_cmd"]:
            entry["test_command"] = found["test_cmd"]
        if found.get("min_testing"):
            entry["names_tests"] = True
        if found.get("own_command"):
            entry["by_key"] = True
        repos[key] = entry
    return {"test_command": default["test_cmd"], "repos": repos}


def family(specs, language, table):
    repos = {}
    for repo, versions in sorted(specs.items()):
        if not versions:
            continue
        repos[repo] = {"language": language(repo), "versions": {}}
        for version, spec in versions.items():
            repos[repo]["versions"][version] = table.number(normal(spec, language(repo)))
    return repos


def main():
    table = Table()
    specs = swebench.MAP_REPO_VERSION_TO_SPECS
    families = {"swe-bench": family(specs, swebench.MAP_REPO_TO_EXT.get, table)}
    if len(sys.argv) > 2:
        fork = load(sys.argv[2])
        own = {repo: spec for repo, spec in fork.MAP_REPO_VERSION_TO_SPECS.items() if repo not in specs}
        families["swe-gym"] = family(own, lambda _: "py", table)
    print("{")
    print('"source": "facts of the PyPI packages swebench 4.1.0 and swesmith 0.0.9 and of SWE-Gym (all MIT)",')
    print('"swesmith": ' + json.dumps(swesmith_profiles(sys.argv[1]), sort_keys=True) + ",")
    print('"specs": [')
    print(",\n".join(table.numbers))
    print('],\n"families": {')
    lines = []
    for name, repos in families.items():
        inner = [f"{json.dumps(repo)}: {json.dumps(entry)}" for repo, entry in repos.items()]
        lines.append(json.dumps(name) + ": {\n" + ",\n".join(inner) + "\n}")
    print(",\n".join(lines))
    print("}\n}")


main()
