//! `spar tasks`: what it lists, shows, imports and makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{run, succeed};

const BASE: &str = "0123456789abcdef0123456789abcdef01234567";

/// A row of SWE-bench's version 5.
fn row(id: &str) -> Value {
    json!({
        "repo": "own/calc", "instance_id": id, "base_commit": BASE, "patch": "", "test_patch": "diff",
        "problem_statement": "`add` subtracts.\nIt should not.", "hints_text": "", "version": "1",
        "created_at": "2001-09-09T01:46:40Z", "FAIL_TO_PASS": "[\"t::a\"]", "PASS_TO_PASS": "[\"t::b\", \"t::c\"]",
        "environment_setup_commit": BASE, "eval_script": "true\n", "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail", "image": "own/calc:1", "novelty": 1,
    })
}

fn write(path: &Path, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(path, lines.concat()).unwrap();
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tasks_of_every_kind_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("rows.jsonl"), &[row("own__calc-1"), row("own__calc-2")]);
    let told = succeed(folder.path(), &["tasks", "ls", "rows.jsonl"]).out;
    insta::assert_snapshot!("tasks_ls", told);
    let listed = parsed(
        &succeed(folder.path(), &["tasks", "ls", "rows.jsonl", "--limit", "1", "--json"]).out,
    );
    assert_eq!(listed["splits"], json!([["test", 2]]));
    let task = &listed["tasks"][0];
    assert_eq!(
        (&task["id"], &task["repository"]),
        (&json!("rows/test/own__calc-1"), &json!("own/calc"))
    );
    assert_eq!((&task["fail_to_pass"], &task["pass_to_pass"]), (&json!(1), &json!(2)));
    assert_eq!(task["unsupported"].as_array().unwrap().len(), 1, "{task}");

    for name in ["1", "own__calc-2", "rows/test/own__calc-2"] {
        let shown = succeed(folder.path(), &["tasks", "show", "rows.jsonl", name]).out;
        assert!(shown.starts_with("rows/test/own__calc-2\n") && shown.contains("t::c"), "{shown}");
    }
    insta::assert_snapshot!(
        "tasks_show",
        succeed(folder.path(), &["tasks", "show", "rows.jsonl"]).out
    );
    let shown =
        parsed(&succeed(folder.path(), &["tasks", "show", "rows.jsonl", "1", "--json"]).out);
    assert_eq!(
        (&shown["index"], &shown["gradable"], &shown["patches"]["tests"]),
        (&json!(1), &json!(true), &json!(4))
    );
    let unknown = run(folder.path(), &["tasks", "show", "rows.jsonl", "own__calc-3"]);
    assert!(unknown.code == Some(1) && unknown.err.contains("own__calc-3"), "{}", unknown.err);

    let games =
        succeed(folder.path(), &["tasks", "ls", "frozen-lake", "--split", "train", "--limit", "2"])
            .out;
    assert!(games.contains("frozen-lake/train/1") && games.contains("2 of "), "{games}");
    let game =
        succeed(folder.path(), &["tasks", "show", "frozen-lake", "3", "--split", "train"]).out;
    assert!(game.starts_with("frozen-lake/train/3\n"), "{game}");
}

#[test]
fn rows_are_imported_whole_and_those_that_cannot_be_taken_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut broken = row("own__calc-3");
    broken["base_commit"] = "none".into();
    let mut gym = row("own__calc-4");
    for column in ["environment_setup_commit", "eval_script"] {
        gym.as_object_mut().unwrap().remove(column);
    }
    write(
        &path.join("rows.jsonl"),
        &[row("own__calc-1"), broken, row("own__calc-1"), gym, row("own__calc-2")],
    );
    let text = fs::read_to_string(path.join("rows.jsonl")).unwrap() + "{\n";
    fs::write(path.join("rows.jsonl"), text).unwrap();
    let import = ["tasks", "import", "swe-bench", "rows.jsonl", "--out", "suite"];
    let ran = run(path, &import);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for part in [
        "2 rows of swe-bench imported into",
        "4 rows were not taken",
        "own__calc-3",
        "it is a row of swe-gym",
        "line 6",
    ] {
        assert!(ran.out.contains(part), "{part:?} is missing in\n{}", ran.out);
    }
    let listed = parsed(&succeed(path, &["tasks", "ls", "suite", "--json"]).out);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2);
    // Columns stay as they are, also those that nobody knows.
    let first = fs::read_to_string(path.join("suite/rows.jsonl")).unwrap();
    assert_eq!(parsed(first.lines().next().unwrap()), row("own__calc-1"));
    assert!(!path.join("suite/rows.jsonl.part").exists());

    let again = run(path, &import);
    assert!(again.out.contains("are already in"), "{}", again.out);
    write(&path.join("rows.jsonl"), &[row("own__calc-9")]);
    let other = run(path, &import);
    assert!(other.code == Some(1) && other.err.contains("--force"), "{}", other.err);
    let forced = succeed(
        path,
        &["tasks", "import", "auto", "rows.jsonl", "--out", "suite", "--force", "--json"],
    )
    .out;
    assert_eq!(parsed(&forced)["taken"], 1);
    // One that was killed before its record was written is made anew.
    fs::remove_file(path.join("suite/import.json")).unwrap();
    fs::write(path.join("suite/rows.jsonl"), "half").unwrap();
    succeed(path, &["tasks", "import", "auto", "rows.jsonl", "--out", "suite"]);
    let listed = parsed(&succeed(path, &["tasks", "ls", "suite", "--json"]).out);
    assert_eq!(listed["tasks"][0]["id"], "suite/test/own__calc-9");

    fs::write(path.join("none.jsonl"), "{\"a\": 1}\n").unwrap();
    let none = run(path, &["tasks", "import", "auto", "none.jsonl", "--out", "none"]);
    assert!(none.code == Some(1) && none.err.contains("no row of it can be taken"), "{}", none.err);
    assert!(!path.join("none").exists());
    let nowhere = run(path, &["tasks", "import", "auto", "no.jsonl", "--out", "none"]);
    assert!(nowhere.code == Some(1) && nowhere.err.contains("No such file"), "{}", nowhere.err);
    let folder = run(path, &["tasks", "import", "auto", "suite", "--out", "none"]);
    assert!(folder.code == Some(1) && folder.err.contains("spar tasks ls suite"), "{}", folder.err);
    // Rows of which one cannot be taken are no suite as they are; what is to be done is told.
    let mut smith = row("own__calc-1");
    smith.as_object_mut().unwrap().remove("test_patch");
    write(&path.join("near.jsonl"), &[smith]);
    let near = run(path, &["tasks", "ls", "near.jsonl"]);
    assert!(
        near.err.contains("comes closest to swe-bench, for which it lacks `test_patch`")
            && near.err.contains("hint: `spar tasks import"),
        "{}",
        near.err
    );
    let unknown = run(path, &["tasks", "import", "swe-bunch", "rows.jsonl", "--out", "x"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("swe-smith"), "{}", unknown.err);
}

fn put(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A task folder of terminal-bench 1, with more lines of its `task.yaml`.
fn write_terminal_bench(folder: &Path, more: &str) {
    let yaml = format!("instruction: Write hello.\ndifficulty: easy\nparser_name: pytest\n{more}");
    put(
        folder,
        &[
            ("task.yaml", yaml.as_str()),
            ("Dockerfile", "FROM python:3.12\nWORKDIR /app\n"),
            ("run-tests.sh", "pytest $TEST_DIR/test_outputs.py -rA\n"),
            ("solution.sh", "echo hello >hello.txt\n"),
            ("tests/test_outputs.py", "def test_it():\n    assert open('hello.txt').read()\n"),
        ],
    );
}

/// A task folder of Harbor.
fn write_harbor(folder: &Path) {
    put(
        folder,
        &[
            ("task.toml", "schema_version = \"1.1\"\n[environment]\ngpus = 1\n"),
            ("instruction.md", "Write hello.\n"),
            ("environment/Dockerfile", "FROM debian:12\nWORKDIR /app\n"),
            ("tests/test.sh", "echo 1 >/logs/verifier/reward.txt\n"),
            ("solution/solve.sh", "echo hello >hello.txt\n"),
        ],
    );
}

#[test]
fn task_folders_are_imported_with_all_that_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let source = path.join("source");
    write_terminal_bench(&source.join("a/hello"), "");
    write_terminal_bench(&source.join("a/same-shell"), "run_tests_in_same_shell: true\n");
    write_terminal_bench(&source.join("b/broken"), "");
    fs::remove_file(source.join("b/broken/run-tests.sh")).unwrap();
    write_terminal_bench(&source.join("b/hello"), "");
    write_harbor(&source.join("b/other"));
    let import = ["tasks", "import", "terminal-bench", "source", "--out", "suite"];
    let ran = run(path, &import);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for part in [
        "2 task folders of terminal-bench imported into",
        "not honoured in 1: `run_tests_in_same_shell`",
        "3 task folders were not taken",
        "expected the script that runs the tests",
        "another task folder has the name `hello`",
        "`spar tasks import harbor`",
    ] {
        assert!(ran.out.contains(part), "{part:?} is missing in\n{}", ran.out);
    }
    let again = run(path, &import);
    assert!(again.out.contains("are already in"), "{}", again.out);

    // It is a suite of its own.
    fs::rename(&source, path.join("gone")).unwrap();
    let listed = parsed(&succeed(path, &["tasks", "ls", "suite", "--json"]).out);
    assert_eq!(listed["splits"], json!([["test", 2]]));
    assert_eq!(listed["tasks"][0]["id"], "suite/test/hello");
    assert_eq!(listed["tasks"][1]["unsupported"].as_array().unwrap().len(), 1, "{listed}");
    let shown = succeed(path, &["tasks", "show", "suite", "hello"]).out;
    assert!(shown.starts_with("suite/test/hello\n"), "{shown}");
    assert!(!path.join("suite/tasks.part").exists());

    // Another one takes its place only where that is wanted, and then all of it.
    let one = ["tasks", "import", "auto", "gone/b/other", "--out", "suite"];
    let other = run(path, &one);
    assert!(other.code == Some(1) && other.err.contains("--force"), "{}", other.err);
    assert!(path.join("suite/tasks/hello").exists());
    let forced = parsed(&succeed(path, &[&one[..], &["--force", "--json"]].concat()).out);
    assert_eq!((&forced["taken"], &forced["format"]), (&json!(1), &json!("harbor")), "{forced}");
    let listed = parsed(&succeed(path, &["tasks", "ls", "suite", "--json"]).out);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{listed}");
    assert!(!path.join("suite/tasks/hello").exists());
}

#[test]
fn what_is_no_task_folder_or_cannot_be_copied_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_harbor(&path.join("tasks/one"));
    fs::create_dir(path.join("empty")).unwrap();
    write(&path.join("rows.jsonl"), &[row("own__calc-1")]);
    let told = |format: &str, from: &str, out: &str| {
        let ran = run(path, &["tasks", "import", format, from, "--out", out]);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        ran.err
    };
    for ((format, from, out), part) in [
        (("swe-bench", "tasks", "out"), "rows of swe-bench stand in a file"),
        (("harbor", "rows.jsonl", "out"), "tasks of harbor are folders"),
        (("auto", "empty", "out"), "there is no task folder here"),
        (("auto", "tasks", "tasks/out"), "one of these folders lies in the other"),
        (("terminal-bench", "tasks", "out"), "`spar tasks import harbor`"),
    ] {
        let err = told(format, from, out);
        assert!(err.contains(part), "{part:?} is missing in\n{err}");
        assert!(!path.join(out).exists(), "{err}");
    }
    // What is there already is nobody's but the user's.
    put(path, &[("mine/tasks/notes.txt", "keep\n")]);
    let err = told("harbor", "tasks", "mine");
    assert!(err.contains("--force") && path.join("mine/tasks/notes.txt").exists(), "{err}");

    fs::rename(path.join("tasks/one/environment/Dockerfile"), path.join("Dockerfile")).unwrap();
    let link = path.join("tasks/one/environment/Dockerfile");
    std::os::unix::fs::symlink("../../../Dockerfile", link).unwrap();
    let err = told("harbor", "tasks", "out");
    assert!(err.contains("`environment/Dockerfile` leads to `../../../Dockerfile`"), "{err}");
    assert!(!path.join("out").exists());
}

#[test]
fn what_no_package_or_image_can_be_made_of_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let make = run(path, &["tasks", "make", "repair", "x", "--out", "out", "--backend", "nowhere"]);
    assert!(make.code == Some(1) && make.err.contains("nowhere"), "{}", make.err);
    let make = run(
        path,
        &[
            "tasks",
            "make",
            "repair",
            "x",
            "--out",
            "out",
            "--backend",
            "host",
            "--python",
            "./none",
        ],
    );
    assert!(make.code == Some(1) && make.err.contains("none"), "{}", make.err);
    write(&path.join("rows.jsonl"), &[row("own__calc-1")]);
    let image =
        run(path, &["tasks", "build-image", "rows.jsonl", "--repo", ".", "--id", "own__calc-2"]);
    assert!(image.code == Some(1) && image.err.contains("has none of this id"), "{}", image.err);
    let image = run(path, &["tasks", "build-image", "frozen-lake", "--repo", "."]);
    assert!(
        image.code == Some(1) && image.err.contains("no instance of software engineering"),
        "{}",
        image.err
    );
}

/// A package with a function for each of a few bugs, and tests.
fn write_package(folder: &Path) {
    let put = |path: &str, text: &str| put(folder, &[(path, text)]);
    put("pyproject.toml", "[project]\nname = 'own'\nversion = '1'\n");
    put(
        "own/__init__.py",
        "def larger(a, b):\n    if a > b:\n        return a\n    return b\n\n\ndef mean(values):\n    total = 0\n    for value in values:\n        \
         total = total + value\n    return total / len(values)\n\n\ndef clip(x, low, high):\n    if x < low:\n        return low\n    if x > high:\n        \
         return high\n    return x\n",
    );
    let tests: String = [
        ("larger", "larger(2, 1) == 2"),
        ("larger_last", "larger(1, 2) == 2"),
        ("mean", "mean([1, 2, 6]) == 3"),
        ("mean_one", "mean([4]) == 4"),
        ("clip_low", "clip(0, 1, 3) == 1"),
        ("clip_high", "clip(9, 1, 3) == 3"),
        ("clip_in", "clip(2, 1, 3) == 2"),
    ]
    .iter()
    .map(|(name, what)| format!("\n\ndef test_{name}():\n    assert {what}\n"))
    .collect();
    put("tests/test_own.py", &format!("from own import clip, larger, mean\n{tests}"));
}

/// An interpreter with pytest, if this machine has one.
fn pytest() -> Option<String> {
    let named = std::env::var("SPAR_PYTEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let asked = Command::new(&named).args(["-I", "-c", "import pytest"]).output().ok()?;
    asked.status.success().then_some(named)
}

#[test]
fn tasks_are_made_of_a_package_and_a_run_that_ended_is_gone_on_with() {
    let Some(python) = pytest() else {
        eprintln!(
            "no python3 with pytest here (SPAR_PYTEST_PYTHON names another): nothing was made"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write_package(&folder.path().join("package"));
    let make = |count: &str| {
        let arguments = [
            "tasks",
            "make",
            "repair",
            "package",
            "--out",
            "out",
            "--backend",
            "host",
            "--python",
            &python,
            "--count",
            count,
            "--seed",
            "4",
        ];
        let mut arguments = arguments.to_vec();
        arguments.extend(["--stacked", "0", "--json"]);
        parsed(&succeed(folder.path(), &arguments).out)
    };
    let first = make("2");
    let report = &first[0]["report"];
    assert_eq!(
        (&report["package"], &report["all"]["outcomes"]["valid"]),
        (&json!("package"), &json!(2)),
        "{first}"
    );
    let suite = first[0]["suite"].as_str().unwrap();
    let listed = parsed(&succeed(folder.path(), &["tasks", "ls", suite, "--json"]).out);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "{listed}");
    let second = make("3");
    assert_eq!(second[0]["report"]["all"]["outcomes"]["valid"], 3);
    let more = parsed(&succeed(folder.path(), &["tasks", "ls", suite, "--json"]).out);
    assert_eq!(
        more["tasks"].as_array().unwrap()[..2],
        listed["tasks"].as_array().unwrap()[..],
        "what was made stays"
    );
}
