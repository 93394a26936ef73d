//! Tasks of a small package, from its source to the grade of its gold patch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spar_repair::runner::Python;
use spar_repair::{
    Attempt, MakeError, MakeOptions, Maker, Observer, Outcome, PackageReport, SourcePackage,
};
use spar_swe::grade::{Edition, EvalLog, Resolution};
use spar_swe::log::{LogContext, find_log_parser};
use spar_swe::{Gold, Instance, RowFile, RowOptions, Verification};

const SOURCE: &str = r#"
def clamp(value, low=0, high=10):
    """Holds a value between two others."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def spin(count):
    total = 0
    while count > 0:
        total += count
        count -= 1
    return total


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def pop(self):
        if not self.items:
            raise IndexError("nothing is left")
        return self.items.pop()

    def depth(self):
        return len(self.items)


def never(called):
    return called + 1
"#;

const TESTS: &str = r#"
import os
import sys

import pytest

from pkg import clamp, spin, Stack


@pytest.mark.parametrize("value, expected", [(-1, 0), (0, 0), (5, 5), (10, 10), (11, 10)])
def test_clamp(value, expected):
    assert clamp(value) == expected


def test_limits():
    assert clamp(3, low=4) == 4


@pytest.mark.parametrize("count", range(12))
def test_spin(count):
    assert spin(count) == count * (count + 1) // 2


class TestStack:
    def test_pop(self):
        assert Stack().push(1).push(2).pop() == 2

    def test_depth(self):
        assert Stack().push(1).depth() == 1

    def test_empty(self):
        with pytest.raises(IndexError):
            Stack().pop()


def test_files_of_runs_do_not_stay():
    assert not os.path.exists("left.txt")
    with open("left.txt", "w") as file:
        file.write("x")


def test_flaky():
    # Fails in the run that is told the lines, and only there.
    told = sys.monitoring.get_tool(1) if hasattr(sys, "monitoring") else sys.gettrace()
    assert told is None
"#;

/// Follows, and stops after so many attempts.
struct Follow {
    seen: AtomicUsize,
    stop_after: usize,
}

impl Observer for Follow {
    fn baseline(&self, _: &PackageReport, _: usize) {}

    fn attempt(&self, _: &Attempt, _: &PackageReport) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.stop_after
    }
}

fn follow(stop_after: usize) -> Follow {
    Follow { seen: AtomicUsize::new(0), stop_after }
}

fn python() -> PathBuf {
    std::env::var_os("SPAR_PYTEST_PYTHON")
        .expect("SPAR_PYTEST_PYTHON names an interpreter with pytest")
        .into()
}

fn write_package(folder: &Path, tests: &str) {
    fs::create_dir_all(folder.join("src/pkg")).unwrap();
    fs::create_dir_all(folder.join("tests")).unwrap();
    fs::write(folder.join("PKG-INFO"), "Name: pkg\nVersion: 1.2\nLicense-Expression: MIT\n")
        .unwrap();
    fs::write(folder.join("src/pkg/__init__.py"), SOURCE).unwrap();
    fs::write(folder.join("tests/test_pkg.py"), tests).unwrap();
}

fn rows(path: &Path) -> Vec<Instance> {
    RowFile::open(path, RowOptions::default()).unwrap().map(Result::unwrap).collect()
}

/// Grades the state of a repository by the row's own script.
fn grade(instance: &Instance, work: &Path, python: &Path) -> Resolution {
    let Some(Verification::TestLog { script, parser, expected, eval_type }) =
        &instance.verification
    else {
        panic!("{instance:?}")
    };
    let bin = work.parent().unwrap().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let link = bin.join("python");
    // A wrapper and no link: an environment knows itself by the name it is called by.
    fs::write(&link, format!("#!/bin/sh\nexec {} \"$@\"\n", python.display())).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&link, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.replace("/testbed", work.to_str().unwrap());
    let script = script.replace("git config --global", "git config");
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    let found = find_log_parser(parser.origin, &parser.name).unwrap();
    let mut log = EvalLog::new(found, &LogContext::default(), Edition::Five).unwrap();
    log.push(&output.stdout);
    let tests = log.finish(None).verdict.unwrap();
    expected.report(&tests, *eval_type, Edition::Five).resolution()
}

fn git(folder: &Path, arguments: &[&str], input: &str) {
    use std::io::Write;
    let mut git = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{arguments:?}");
}

#[tokio::test]
#[ignore = "needs pytest"]
async fn tasks_of_a_package_are_solved_by_their_gold_patch_alone_with_pytest() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("pkg");
    write_package(&root, TESTS);
    let package = Arc::new(SourcePackage::open(&root).unwrap());
    let python = Python::ask(&python()).await.unwrap();
    let maker = |options| Maker::new(options, python.clone(), None).unwrap();
    let operators = ["statement_removed", "branch_removed", "number_changed", "method_removed"];
    let operators = Some(operators.map(str::to_owned).into());
    let options = MakeOptions { timeout_factor: 2.0, operators, ..MakeOptions::default() };
    let out = folder.path().join("out");
    let all = follow(usize::MAX);
    let report = maker(options.clone()).make(Arc::clone(&package), &out, &all).await.unwrap();
    assert!(report.is_done && report.num_uncovered > 0, "{report:?}");
    assert_eq!((report.num_tests, report.flaky.len()), (22, 1), "{report:?}");
    assert!(report.all.valid() >= 6, "{report:?}");
    // `while count > 0` with `count -= 1` left out does not end by itself.
    assert!(report.all.outcomes.contains_key(&Outcome::TimedOut), "{report:?}");
    assert!(report.by_operator["stacked"].valid() >= 1, "{report:?}");

    let results = out.join(package.key());
    let read = |name: &str| fs::read(results.join(name)).unwrap();
    // Stopped in between and gone on with, with other numbers of workers, it comes to the same.
    let parts = folder.path().join("parts");
    for (stop_after, workers) in [(5, 2), (usize::MAX, 1)] {
        let options = MakeOptions { workers, ..options.clone() };
        let report =
            maker(options).make(Arc::clone(&package), &parts, &follow(stop_after)).await.unwrap();
        assert_eq!(report.is_done, stop_after == usize::MAX);
    }
    let parts = parts.join(package.key());
    for name in ["swe_smith.jsonl", "swe_bench.jsonl"] {
        assert!(fs::read(parts.join(name)).unwrap() == read(name), "{name}");
    }
    let other = MakeOptions { seed: 1, ..options };
    let refused = maker(other).make(Arc::clone(&package), &out, &follow(0)).await;
    assert!(matches!(refused, Err(MakeError::Elsewhere { .. })));

    let (smith, bench) =
        (rows(&results.join("swe_smith.jsonl")), rows(&results.join("swe_bench.jsonl")));
    assert_eq!((smith.len(), bench.len()), (report.all.valid(), report.all.valid()));
    for instance in smith.iter().chain(&bench) {
        assert_eq!(instance.unsupported, Vec::<String>::new());
        assert!(!instance.issue.problem.contains("test_pkg.py"), "{}", instance.issue.problem);
    }
    for instance in bench.iter().step_by(bench.len() / 2) {
        let work = folder.path().join("work");
        let repository = results.join("repository.git");
        for gold in [true, false] {
            let _ = fs::remove_dir_all(&work);
            git(
                folder.path(),
                &["clone", "-q", "-b", &instance.id, repository.to_str().unwrap(), "work"],
                "",
            );
            assert!(!work.join("tests/test_pkg.py").exists());
            let Some(Gold::Patch(patch)) = &instance.gold else { panic!("{instance:?}") };
            if gold {
                git(&work, &["apply", "-"], patch);
            }
            let resolution = grade(instance, &work, &python.program);
            assert_eq!(resolution == Resolution::Full, gold, "{}", instance.id);
        }
    }
    // The patch of SWE-smith makes the bug of an unharmed package.
    let Some(Gold::ReversePatch(bug)) = &smith[0].gold else { panic!("{:?}", smith[0]) };
    git(&root, &["apply", "-"], bug);
    git(&root, &["apply", "--reverse", "-"], bug);
    assert_eq!(fs::read_to_string(root.join("src/pkg/__init__.py")).unwrap(), SOURCE);
}

/// Bugs that are mended one after the other: with each stage's patch its tests pass and nothing of the later ones is needed.
#[tokio::test]
#[ignore = "needs pytest"]
async fn stages_are_solved_one_after_the_other_with_pytest() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("pkg");
    write_package(&root, TESTS);
    let package = Arc::new(SourcePackage::open(&root).unwrap());
    let python = Python::ask(&python()).await.unwrap();
    let operators = ["number_changed", "method_removed", "compare_changed", "operator_changed"];
    let options = MakeOptions {
        operators: Some(operators.map(str::to_owned).into()),
        stages: Some(2),
        stacked: 0.5,
        max_failing: 0.8,
        timeout_factor: 2.0,
        ..MakeOptions::default()
    };
    let maker = Maker::new(options, python.clone(), None).unwrap();
    let out = folder.path().join("out");
    let report = maker.make(Arc::clone(&package), &out, &follow(usize::MAX)).await.unwrap();
    assert!(report.by_operator["staged"].valid() >= 1, "{report:?}");
    let results = out.join(package.key());
    let bench = rows(&results.join("swe_bench.jsonl"));
    let staged: Vec<_> = bench.iter().filter(|row| !row.stages.is_empty()).collect();
    assert_eq!(staged.len(), report.by_operator["staged"].valid());
    for instance in staged {
        assert_eq!((instance.stages.len(), instance.unsupported.len()), (2, 0));
        let work = folder.path().join("work");
        let _ = fs::remove_dir_all(&work);
        let repository = results.join("repository.git");
        let branch = ["clone", "-q", "-b", &instance.id, repository.to_str().unwrap(), "work"];
        git(folder.path(), &branch, "");
        let graded = |own: &Instance| {
            // What a run of the tests before has left.
            git(&work, &["clean", "-q", "-f", "-d"], "");
            grade(own, &work, &python.program)
        };
        for stage in &instance.stages {
            let own = stage.within(instance);
            assert_ne!(graded(&own), Resolution::Full, "{}", instance.id);
            let Some(Gold::Patch(patch)) = &stage.gold else { panic!("{stage:?}") };
            git(&work, &["checkout", "-q", "-f", "."], "");
            git(&work, &["apply", "-"], patch);
            // What the script of the tests puts back is what was committed.
            let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
            git(&work, &[&author[..], &["commit", "-qam", "mended"]].concat(), "");
            assert_eq!(graded(&own), Resolution::Full, "{}", instance.id);
        }
    }
}

#[tokio::test]
#[ignore = "needs pytest"]
async fn packages_without_tests_that_pass_are_refused_with_pytest() {
    let folder = tempfile::tempdir().unwrap();
    let python = Python::ask(&python()).await.unwrap();
    let maker = Maker::new(MakeOptions::default(), python, None).unwrap();
    for (name, tests, expected) in [
        ("none", "", "fewer than two"),
        ("broken", "import nothing_of_that_name\n", "nothing_of_that_name"),
        (
            "elsewhere",
            "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n",
            "no line of its sources",
        ),
    ] {
        let root = folder.path().join(name);
        write_package(&root, tests);
        let package = Arc::new(SourcePackage::open(&root).unwrap());
        let error = maker.make(package, folder.path(), &follow(0)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    let root = folder.path().join("crate");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("Cargo.toml"), "[package]\nname = \"c\"\n").unwrap();
    let package = Arc::new(SourcePackage::open(&root).unwrap());
    let error = maker.make(package, folder.path(), &follow(0)).await.unwrap_err();
    assert!(matches!(error, MakeError::Language { language: "rust", .. }), "{error}");
    let none = Python::ask(Path::new("/nonexistent/python")).await.unwrap_err().to_string();
    assert!(none.contains("/nonexistent/python"), "{none}");
}
