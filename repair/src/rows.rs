//! Rows in the shapes of SWE-smith and SWE-bench, which `spar_swe` reads.

use serde_json::{Map, Value, json};

use crate::mutation::Language;
use crate::task_log::Rows;
use crate::{SourcePackage, diff};

/// Where environments have the repository.
const WORKDIR: &str = "/testbed";
/// When all rows were made: equal tasks are equal rows.
const CREATED: &str = "2001-09-09T01:46:40Z";

/// What the rows of a task tell.
pub(crate) struct TaskDraft<'a> {
    pub(crate) package: &'a SourcePackage,
    /// Kind and hash.
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    /// Texts of the files with and without the bug, by path, and the patches that make the bug and mend it.
    pub(crate) bug_patch: String,
    pub(crate) fix_patch: String,
    pub(crate) fail_to_pass: Vec<String>,
    pub(crate) pass_to_pass: Vec<String>,
    pub(crate) problem: String,
    /// The commit with the bug and without the tests that show it.
    pub(crate) base_commit: &'a str,
    /// Files of tests that are taken away.
    pub(crate) hidden: &'a [String],
    /// Files of tests that are run.
    pub(crate) targets: &'a [String],
    /// Arguments of pytest.
    pub(crate) arguments: &'a [String],
    /// What is to be mended one after the other; empty where all is at once.
    pub(crate) stages: Vec<StageDraft>,
}

/// What the rows tell of a stage.
pub(crate) struct StageDraft {
    pub(crate) problem: String,
    /// What mends it behind the stages before.
    pub(crate) fix_patch: String,
    pub(crate) fail_to_pass: Vec<String>,
    pub(crate) pass_to_pass: Vec<String>,
}

impl StageDraft {
    fn column(&self) -> Value {
        json!({
            "problem_statement": self.problem,
            "patch": self.fix_patch,
            "FAIL_TO_PASS": self.fail_to_pass,
            "PASS_TO_PASS": self.pass_to_pass,
        })
    }
}

/// The name of a task among all: `inflection.1a2b3c4d.compare_changed__0a1b2c3d`, as SWE-smith names its own.
pub(crate) fn instance_id(package: &SourcePackage, id: &str) -> String {
    let source = match package.language {
        Language::Python => "pypi",
        Language::Rust => "crates",
    };
    format!("{source}__{}.{id}", package.key())
}

/// The parser of the logs of a language.
pub(crate) fn log_parser(language: Language) -> &'static str {
    match language {
        Language::Python => "parse_log_pytest_v2",
        Language::Rust => "parse_log_cargo",
    }
}

impl TaskDraft<'_> {
    /// Both rows.
    pub(crate) fn rows(&self) -> Rows {
        let instance = instance_id(self.package, self.id);
        let repository = format!("spar-repair/{}", self.package.key());
        let image = format!("spar-repair/{}", self.package.key().to_lowercase());
        let test_patch: String = self
            .hidden
            .iter()
            .filter_map(|path| {
                let is_executable = self.package.files.get(path)?.is_executable;
                Some(diff::added(path, self.package.text(path)?, is_executable))
            })
            .collect();
        let parser = log_parser(self.package.language);
        let mut swe_smith = row(json!({
            "instance_id": instance,
            "repo": repository,
            "image_name": image,
            "patch": self.bug_patch,
            "FAIL_TO_PASS": self.fail_to_pass,
            "PASS_TO_PASS": self.pass_to_pass,
            "problem_statement": self.problem,
            "created_at": CREATED,
            "strategy": "procedural",
            "bug_type": self.kind,
            "language": self.package.language.name(),
            "eval_script": self.script(None),
            "log_parser": parser,
            "license_name": self.package.licence,
            "source_sha256": self.package.sha256,
        }));
        let mut swe_bench = row(json!({
            "instance_id": instance,
            "repo": repository,
            "base_commit": self.base_commit,
            "patch": self.fix_patch,
            "test_patch": test_patch,
            "problem_statement": self.problem,
            "hints_text": "",
            "created_at": CREATED,
            "version": self.package.version,
            "FAIL_TO_PASS": self.fail_to_pass,
            "PASS_TO_PASS": self.pass_to_pass,
            "environment_setup_commit": self.base_commit,
            "eval_script": self.script(Some(&test_patch)),
            "log_parser": parser,
            "eval_type": "pass_and_fail",
            "image": image,
            "license_name": self.package.licence,
            "source_sha256": self.package.sha256,
        }));
        if !self.stages.is_empty() {
            let stages: Vec<Value> = self.stages.iter().map(StageDraft::column).collect();
            for row in [&mut swe_smith, &mut swe_bench] {
                row.insert("stages".to_owned(), stages.clone().into());
            }
        }
        Rows { swe_smith, swe_bench }
    }

    /// What runs the tests in an environment that has the repository; with a patch of tests, what puts them back first.
    fn script(&self, test_patch: Option<&str>) -> String {
        let mut script = format!("#!/bin/bash\nset -uxo pipefail\ncd {WORKDIR}\n");
        if let Some(patch) = test_patch {
            let kept: Vec<&str> = self
                .targets
                .iter()
                .filter(|path| !self.hidden.contains(path))
                .map(String::as_str)
                .collect();
            script.push_str(&format!("git config --global --add safe.directory {WORKDIR}\n"));
            if !kept.is_empty() {
                script.push_str(&format!("git checkout {} {}\n", self.base_commit, kept.join(" ")));
            }
            // What an attempt may have put in their place.
            if !self.hidden.is_empty() {
                script.push_str(&format!("rm -rf {}\n", self.hidden.join(" ")));
            }
            let end = heredoc(patch);
            script.push_str(&format!("git apply --verbose - <<'{end}'\n{patch}{end}\n"));
        }
        script.push_str(": '>>>>> Start Test Output'\n");
        script.push_str(&self.command());
        script.push_str("\nSWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\necho \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\n");
        script
    }

    fn command(&self) -> String {
        match self.package.language {
            Language::Python => {
                let paths: Vec<String> = self
                    .package
                    .import_paths()
                    .iter()
                    .map(|path| {
                        if path.is_empty() {
                            WORKDIR.to_owned()
                        } else {
                            format!("{WORKDIR}/{path}")
                        }
                    })
                    .collect();
                let arguments: Vec<String> =
                    self.arguments.iter().map(|argument| quoted(argument)).collect();
                format!(
                    "PYTHONPATH={} PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 python -m pytest -rA --tb=short -p no:cacheprovider -p no:randomly -o addopts= {}{}",
                    paths.join(":"),
                    arguments.iter().map(|argument| format!("{argument} ")).collect::<String>(),
                    self.targets.join(" "),
                )
            }
            Language::Rust => {
                "CARGO_TERM_COLOR=never RUST_BACKTRACE=0 cargo test --offline --no-fail-fast --tests 2>&1".to_owned()
            }
        }
    }
}

/// What ends a text in a script: a line that is not in it.
fn heredoc(text: &str) -> String {
    let mut end = "EOF_114329324912".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    end
}

fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

fn row(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(row) => row,
        _ => unreachable!("it is written as an object"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spar_swe::{Gold, Patch, PatchLimits, RowFile, RowOptions, Verification};

    use super::*;
    use crate::PackageFile;

    #[test]
    fn both_rows_are_read_back() {
        let file =
            |text: &str| PackageFile { bytes: text.as_bytes().to_vec(), is_executable: false };
        let package = SourcePackage {
            name: "pkg.x".into(),
            version: "1.0".into(),
            language: Language::Python,
            licence: Some("MIT".into()),
            sha256: "ab".repeat(32),
            files: BTreeMap::from([
                ("src/pkg.py".to_owned(), file("def f(a):\n    return a < 1\n")),
                ("tests/test_a.py".to_owned(), file("EOF_114329324912\nlast line")),
                ("tests/test_b.py".to_owned(), file("")),
            ]),
        };
        let text = package.text("src/pkg.py").unwrap();
        let found = crate::mutation::mutations(Language::Python, text).unwrap();
        let bug = found[0].apply(text);
        let draft = TaskDraft {
            package: &package,
            id: "compare_changed__0a1b2c3d",
            kind: "compare_changed",
            bug_patch: diff::patch("src/pkg.py", text, &found[0].edits),
            fix_patch: diff::patch("src/pkg.py", &bug, &found[0].inverse(text)),
            fail_to_pass: vec!["tests/test_a.py::test_b[x y]".into()],
            pass_to_pass: vec!["tests/test_b.py::test_c".into()],
            problem: "It is broken.".into(),
            base_commit: "0123456789012345678901234567890123456789",
            hidden: &["tests/test_a.py".to_owned()],
            targets: &["tests/test_a.py".to_owned(), "tests/test_b.py".to_owned()],
            arguments: &["-k".to_owned(), "it's".to_owned()],
            stages: Vec::new(),
        };
        let rows = draft.rows();
        let folder = tempfile::tempdir().unwrap();
        let read = |row: &Map<String, Value>| {
            let path = folder.path().join("rows.jsonl");
            std::fs::write(&path, serde_json::to_string(row).unwrap() + "\n").unwrap();
            let mut file = RowFile::open(&path, RowOptions::default()).unwrap();
            file.next().unwrap().unwrap()
        };
        let (smith, bench) = (read(&rows.swe_smith), read(&rows.swe_bench));
        let stage = |number: usize| StageDraft {
            problem: format!("Bug {number}."),
            fix_patch: draft.fix_patch.clone(),
            fail_to_pass: vec![format!("tests/test_a.py::test_{number}")],
            pass_to_pass: Vec::new(),
        };
        let staged = TaskDraft { stages: vec![stage(1), stage(2)], ..draft };
        let rows_of_stages = staged.rows();
        for row in [&rows_of_stages.swe_smith, &rows_of_stages.swe_bench] {
            let read = read(row);
            assert_eq!((read.stages.len(), read.unsupported.len()), (2, 0));
            assert_eq!(read.stages[1].instruction, "Bug 2.");
            assert!(read.is_gradable() && read.stages[0].gold.is_some());
        }
        let draft = TaskDraft { stages: Vec::new(), ..staged };
        assert_eq!((smith.format.as_str(), bench.format.as_str()), ("swe-smith", "swe-bench"));
        for instance in [&smith, &bench] {
            assert_eq!(instance.id, "pypi__pkg.x.abababab.compare_changed__0a1b2c3d");
            assert_eq!(instance.unsupported, Vec::<String>::new());
            let Some(Verification::TestLog { expected, parser, script, .. }) =
                &instance.verification
            else {
                panic!("{:?}", instance.verification)
            };
            assert_eq!(expected.fail_to_pass, draft.fail_to_pass);
            assert_eq!(expected.pass_to_pass, draft.pass_to_pass);
            assert_eq!(parser.name, "parse_log_pytest_v2");
            assert!(
                script.contains("PYTHONPATH=/testbed/src:/testbed ")
                    && script.contains(r"'it'\''s'"),
                "{script}"
            );
        }
        assert_eq!(smith.gold, Some(Gold::ReversePatch(draft.bug_patch.clone())));
        assert_eq!(smith.withheld, ["tests/test_a.py"]);
        assert_eq!(bench.gold, Some(Gold::Patch(draft.fix_patch.clone())));
        assert_eq!(bench.source.image.as_deref(), Some("spar-repair/pkg.x.abababab"));
        let tests =
            Patch::parse(bench.test_patch.as_deref().unwrap().as_bytes(), &PatchLimits::default())
                .unwrap();
        assert_eq!(tests.files.len(), 1);
        let Some(Verification::TestLog { script, .. }) = &bench.verification else {
            unreachable!()
        };
        // A line of the tests that ends a heredoc does not end this one.
        assert!(
            script.contains("<<'EOF_114329324912'\n") && script.contains("+EOF_114329324912\n"),
            "{script}"
        );
        assert!(
            script.contains(
                "git checkout 0123456789012345678901234567890123456789 tests/test_b.py\n"
            ),
            "{script}"
        );
    }
}
