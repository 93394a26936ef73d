//! A small repository with an issue, made when tests run.

use std::path::Path;
use std::process::Command;

use spar_swe::grade::{EvalType, Expected};
use spar_swe::log::Origin;
use spar_swe::{Gold, Instance, Issue, Limits, ParserName, SandboxSource, Stage, Verification};

use spar_tasks::{SweTask, Task};

/// Where it lies in sandboxes.
pub(super) const WORKDIR: &str = "/testbed";

/// What runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Runner {
    /// `python3 -m unittest -v`.
    Unittest,
    /// `python3 -m pytest -rA`.
    Pytest,
}

const BROKEN: &str = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n";
const FIXED: &str = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n";
const EXTENDED: &str = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n\n\ndef sub(a, b):\n    return a - b\n";
const KNOWN_TESTS: &str = "import unittest\n\nimport calc\n\n\nclass TestCalc(unittest.TestCase):\n    def test_mul(self):\n        self.assertEqual(calc.mul(2, 3), 6)\n";
const HIDDEN_TESTS: &str = "\n    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n\n    def test_add_negative(self):\n        self.assertEqual(calc.add(-1, 1), 0)\n";
const LATER_TESTS: &str =
    "\n    def test_sub(self):\n        self.assertEqual(calc.sub(5, 3), 2)\n";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is installed where these tests run");
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Makes the repository in an empty folder: its instance. The fix lies in later commits, a tag and the log of refs.
pub(super) fn write(folder: &Path, runner: Runner) -> Instance {
    git(folder, &["init", "-q", "."]);
    let put = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("calc/__init__.py", BROKEN);
    put("tests/__init__.py", "");
    put("tests/test_calc.py", KNOWN_TESTS);
    put("notes.txt", "one\r\ntwo\r\n");
    put(".gitignore", "*.pyc\n__pycache__/\n");
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "a calculator"]);
    let base = git(folder, &["rev-parse", "HEAD"]).trim().to_owned();
    put("calc/__init__.py", FIXED);
    let gold = git(folder, &["diff"]);
    git(folder, &["commit", "-qam", "add adds"]);
    git(folder, &["tag", "v2"]);
    put("tests/test_calc.py", &format!("{KNOWN_TESTS}{HIDDEN_TESTS}"));
    let test_patch = git(folder, &["diff"]);
    git(folder, &["commit", "-qam", "tests"]);
    git(folder, &["branch", "future"]);
    git(folder, &["reset", "-q", "--hard", &base]);
    instance(runner, base, gold, test_patch)
}

/// The same with two steps: after `add` adds, `sub` is wanted.
pub(super) fn write_steps(folder: &Path) -> Instance {
    let first = write(folder, Runner::Unittest);
    let base = first.base_commit.clone().unwrap();
    git(folder, &["checkout", "-q", "-b", "later", "v2"]);
    std::fs::write(folder.join("calc/__init__.py"), EXTENDED).unwrap();
    let second = git(folder, &["diff"]);
    let whole = git(folder, &["diff", &base]);
    git(folder, &["commit", "-qam", "sub subtracts"]);
    let tests = format!("{KNOWN_TESTS}{HIDDEN_TESTS}{LATER_TESTS}");
    std::fs::write(folder.join("tests/test_calc.py"), tests).unwrap();
    let test_patch = git(folder, &["diff"]);
    git(folder, &["commit", "-qam", "later tests"]);
    git(folder, &["checkout", "-q", "main"]);
    let mut all = instance(Runner::Unittest, base, whole, test_patch);
    let verification = all.verification.take();
    let stage = |name: &str, instruction: &str, fixed: &[&str], kept: &[&str], patch: String| {
        let mut verification = verification.clone();
        let Some(Verification::TestLog { expected, .. }) = &mut verification else {
            panic!("it is judged by a log")
        };
        let named = |tests: &[&str]| {
            tests.iter().map(|test| format!("{test} (tests.test_calc.TestCalc)")).collect()
        };
        *expected = Expected { fail_to_pass: named(fixed), pass_to_pass: named(kept) };
        Stage {
            name: name.to_owned(),
            instruction: instruction.to_owned(),
            verification,
            gold: Some(Gold::Patch(patch)),
            ..Stage::default()
        }
    };
    let Some(Gold::Patch(patch)) = first.gold else { panic!("it is solved by a patch") };
    all.issue.problem = "`calc.add` subtracts, and `calc.sub` is missing.".to_owned();
    let added = ["test_add", "test_add_negative"];
    all.stages = vec![
        stage("add", "`calc.add` subtracts.", &added, &["test_mul"], patch),
        stage(
            "sub",
            "`calc.sub` is missing.",
            &["test_sub"],
            &[added[0], added[1], "test_mul"],
            second,
        ),
    ];
    all
}

fn instance(runner: Runner, base: String, gold: String, test_patch: String) -> Instance {
    let (command, parser, names) = match runner {
        // Newer versions of Python name the method twice.
        Runner::Unittest => (
            "python3 -m unittest -v tests.test_calc 2>&1 | sed -E 's/^(test\\w+) \\(([A-Za-z0-9_.]+)\\.\\1\\)/\\1 (\\2)/'",
            "parse_log_django",
            ["test_add", "test_add_negative", "test_mul"]
                .map(|name| format!("{name} (tests.test_calc.TestCalc)")),
        ),
        Runner::Pytest => (
            "python3 -m pytest -rA -p no:cacheprovider tests/test_calc.py",
            "parse_log_pytest",
            ["test_add", "test_add_negative", "test_mul"]
                .map(|name| format!("tests/test_calc.py::TestCalc::{name}")),
        ),
    };
    let script = format!(
        "#!/bin/bash\nset -uxo pipefail\n[ ! -f /opt/activate ] || source /opt/activate\ncd {WORKDIR}\n\
         export HOME=/root PYTHONDONTWRITEBYTECODE=1\ngit config --global --add safe.directory {WORKDIR}\n\
         git status\ngit show\ngit -c core.fileMode=false diff {base}\ngit checkout {base} tests/test_calc.py\n\
         git apply -v - <<'EOF_114329324912'\n{test_patch}EOF_114329324912\n: '>>>>> Start Test Output'\n{command}\n\
         SWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\necho \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\n\
         git checkout {base} tests/test_calc.py\n"
    );
    let [add, negative, mul] = names;
    Instance {
        id: "own__calc-1".to_owned(),
        format: "own".to_owned(),
        repo: Some("own/calc".to_owned()),
        base_commit: Some(base),
        issue: Issue { problem: "`calc.add` subtracts.".to_owned(), ..Issue::default() },
        source: SandboxSource {
            image: Some("nobody/has:this".to_owned()),
            ..SandboxSource::default()
        },
        workdir: Some(WORKDIR.to_owned()),
        test_patch: Some(test_patch),
        verification: Some(Verification::TestLog {
            script,
            parser: ParserName { origin: Origin::SweBench, name: parser.to_owned() },
            expected: Expected { fail_to_pass: vec![add, negative], pass_to_pass: vec![mul] },
            eval_type: EvalType::PassAndFail,
        }),
        gold: Some(Gold::Patch(gold)),
        limits: Limits { test_secs: Some(60), ..Limits::default() },
        ..Instance::default()
    }
}

/// The task of an instance whose repository lies in a folder of the host.
pub(super) fn task(instance: Instance, folder: &Path) -> Task {
    let mut task = SweTask::new(instance);
    task.repository = Some(folder.to_owned());
    task.command_secs = 20;
    Task {
        id: "own/test/calc".to_owned(),
        environment: "swe".to_owned(),
        parameters: serde_json::to_value(task).unwrap(),
        instruction: String::new(),
        max_turns: 8,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}
