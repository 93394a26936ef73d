#!/usr/bin/env python3
"""Holds the evaluation scripts of spar-swe against those of the PyPI package `swebench` 4.1.0, character by character.

    python -m venv V && V/bin/pip install swebench==4.1.0
    V/bin/python scripts/compare_swe_specs.py target/debug/examples/instances [ROWS.jsonl ...]

Rows are those of the files named, without their own scripts, and for every repository and version of the package's
table rows with patches of tests of many shapes. It prints how many were equal, and ends with 1 unless all were.
"""

import json
import subprocess
import sys
import tempfile

import swebench.harness.constants as constants
from swebench.harness.test_spec.create_scripts import make_eval_script_list


def change(path, old="a", new="b"):
    return (
        f"diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -1,3 +1,3 @@ def f():\n x\n-{old}\n+{new}\n y\n"
    )


def added(path):
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/{path}\n"
        "@@ -0,0 +1,2 @@\n+a\n+b\n"
    )


def deleted(path):
    return (
        f"diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex 1111111..0000000\n--- a/{path}\n+++ /dev/null\n"
        "@@ -1,2 +0,0 @@\n-a\n-b\n"
    )


PATCHES = [
    change("tests/test_a.py"),
    change("tests/test_a.py") + added("tests/test_b.py") + deleted("tests/c/test_d.py"),
    change("tests/data.json") + change("tests/x.csv") + change("tests/forms_tests/tests.py"),
    added("tests/only_new.py"),
    "diff --git a/tests/old.py b/tests/new.py\nsimilarity index 90%\nrename from tests/old.py\nrename to tests/new.py\n"
    "index 1111111..2222222 100644\n--- a/tests/old.py\n+++ b/tests/new.py\n@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/tests/moved.py b/tests/there.py\nsimilarity index 100%\nrename from tests/moved.py\n"
    "rename to tests/there.py\n" + change("tests/after.py"),
    "diff --git a/tests/i.png b/tests/i.png\nindex 1111111..2222222 100644\nBinary files a/tests/i.png and b/tests/i.png differ\n"
    + change("tests/test_after.py"),
    "diff --git a/tests/i.bin b/tests/i.bin\nnew file mode 100644\nindex 0000000..2222222\nGIT binary patch\nliteral 4\n"
    "LcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n" + change("tests/test_after.py"),
    "diff --git a/tests/mode.py b/tests/mode.py\nold mode 100644\nnew mode 100755\n" + change("tests/test_after.py"),
    "diff --git \"a/tests/\\303\\274.py\" \"b/tests/\\303\\274.py\"\nindex 1111111..2222222 100644\n"
    "--- \"a/tests/\\303\\274.py\"\n+++ \"b/tests/\\303\\274.py\"\n@@ -1 +1 @@\n-a\n+b\n",
    change("tests/no end.py")[:-1].replace(" y", "-y") + "\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n",
    change("tests/crlf.py").replace("\n x", "\n x\r").replace("-a", "-a\r").replace("+b", "+b\r"),
    change("client/a/test/b.jsx") + change("client/c/__snapshots__/d.js.snap") + change("test/e2e/specs/e.js"),
    change("packages/p/test/q.js") + added("packages/r/test/__snapshots__/s.js.snap"),
    "--- a/tests/plain.py\n+++ b/tests/plain.py\n@@ -1 +1 @@\n-a\n+b\n",
    "",
]
PATCHES[10] = (
    "diff --git a/tests/no end.py b/tests/no end.py\nindex 1111111..2222222 100644\n--- a/tests/no end.py\t\n"
    "+++ b/tests/no end.py\t\n@@ -1,2 +1,2 @@\n x\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
)


def original(row):
    spec = constants.MAP_REPO_VERSION_TO_SPECS[row["repo"]][row["version"]]
    try:
        lines = make_eval_script_list(row, spec, "testbed", "/testbed", row["base_commit"], row["test_patch"])
    except Exception as error:  # noqa: BLE001 - whatever its reader of patches says
        return f"refused: {type(error).__name__}"
    return "\n".join(["#!/bin/bash", "set -uxo pipefail"] + lines) + "\n"


def synthetic():
    number = 0
    for repo, versions in constants.MAP_REPO_VERSION_TO_SPECS.items():
        for version in versions:
            for patch in PATCHES:
                number += 1
                row = {
                    "repo": repo,
                    "instance_id": f"{repo.replace('/', '__')}-{number}",
                    "base_commit": f"{number:040x}",
                    "patch": change("src/a.py"),
                    "test_patch": patch,
                    "problem_statement": "It does not work.",
                    "hints_text": "",
                    "created_at": "2020-01-01",
                    "version": version,
                    "FAIL_TO_PASS": '["a"]',
                    "PASS_TO_PASS": "[]",
                    "environment_setup_commit": f"{number:040x}",
                }
                if constants.MAP_REPO_TO_EXT[repo] == "js" and number % 2:
                    row["image_assets"] = json.dumps({"test_patch": [{"path": "test/i/j.png", "url": "https://x.test/j.png"}]})
                yield row


def main():
    binary, files = sys.argv[1], sys.argv[2:]
    rows = list(synthetic())
    real = 0
    for file in files:
        for line in open(file, encoding="utf-8"):
            row = json.loads(line)
            for column in ("eval_script", "log_parser", "eval_type", "image"):
                row.pop(column, None)
            if row["version"] in constants.MAP_REPO_VERSION_TO_SPECS.get(row["repo"], {}):
                rows.append(row)
                real += 1
    wrong = 0
    equal = refused = without = 0
    # A row that is refused ends its file: each has one of its own, and many are read at once.
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, row in enumerate(rows):
            paths.append(f"{folder}/{number}.jsonl")
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        done = subprocess.run([binary, "-"], input="\n".join(paths), capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(found) == len(rows), (len(found), len(rows))
    for row, ours in zip(rows, found):
        expected = original(row)
        if "error" in ours:
            is_equal, refused = expected.startswith("refused"), refused + 1
        elif "verification" not in ours:
            # Repositories without a parser cannot be judged by the package either.
            is_equal, without = any("no parser" in text or "have no parser" in text for text in ours["unsupported"]), without + 1
        else:
            is_equal = ours["verification"]["test_log"]["script"] == expected
            equal += is_equal
        if not is_equal:
            wrong += 1
            if wrong <= 5:
                print("DIFFERS", row["repo"], row["version"], json.dumps(row["test_patch"])[:300])
                print("  original:", json.dumps(expected)[-700:])
                print("  ours:    ", json.dumps(ours.get("error") or ours.get("verification", ours))[-700:])
    print(f"{len(rows)} rows, {real} of them real: {equal} scripts equal, {refused} refused by both, {without} without a parser, {wrong} differ")
    sys.exit(1 if wrong else 0)


main()
