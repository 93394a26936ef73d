use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::grade::EvalType;
use crate::instance::{Gold, Instance, ParserName, Verification};
use crate::log::Origin;
use crate::{LoadError, NetworkPolicy};

/// A patch of a file of our own.
fn patch(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    )
}

fn swe_bench() -> Value {
    json!({
        "repo": "pallets/flask",
        "instance_id": "pallets__flask-1",
        "base_commit": "0123456789abcdef0123456789abcdef01234567",
        "patch": patch("src/flask/app.py"),
        "test_patch": patch("tests/test_app.py"),
        "problem_statement": "It does not work.",
        "hints_text": "",
        "created_at": "2020-01-01T00:00:00Z",
        "version": "2.0",
        "FAIL_TO_PASS": "[\"tests/test_app.py::test_a\"]",
        "PASS_TO_PASS": "[]",
        "environment_setup_commit": "89abcdef0123456789abcdef0123456789abcdef",
    })
}

fn version_five() -> Value {
    let mut row = swe_bench();
    let own = json!({
        "repo": "a/b", "instance_id": "a__b-1", "version": "1",
        "eval_script": "#!/bin/bash\ntrue\n", "log_parser": "parse_log_pytest", "eval_type": "fail_only", "image": "x/y:z",
    });
    merge(&mut row, own);
    row
}

fn swe_gym() -> Value {
    let mut row = swe_bench();
    let own = json!({
        "repo": "getmoto/moto", "instance_id": "getmoto__moto-1", "version": "4.1",
        "FAIL_TO_PASS": ["tests/a.py::b"], "PASS_TO_PASS": ["tests/a.py::c"],
    });
    merge(&mut row, own);
    row.as_object_mut().unwrap().remove("environment_setup_commit");
    row
}

fn swe_smith() -> Value {
    json!({
        "instance_id": "mewwts__addict.75284f95.func_pm_x__abc123",
        "repo": "swesmith/mewwts__addict.75284f95",
        "image_name": "jyangballin/swesmith.x86_64.mewwts_1776_addict.75284f95",
        "patch": patch("addict/addict.py"),
        "FAIL_TO_PASS": ["test_addict.py::Tests::test_a"],
        "PASS_TO_PASS": ["test_addict.py::Tests::test_b", "tests/other.py::c"],
        "problem_statement": "It does not work.",
        "created_at": "2020",
    })
}

fn swe_rebench() -> Value {
    let mut row = swe_bench();
    merge(
        &mut row,
        json!({
            "repo": "a/b", "instance_id": "a__b-1", "version": "1",
            "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": ["b"], "FAIL_TO_FAIL": [], "PASS_TO_FAIL": [], "license_name": "MIT",
            "meta": {"is_lite": true},
            "install_config": {
                "python": "3.9", "install": "pip install -e .", "test_cmd": "pytest -rA", "log_parser": "parse_log_pytest",
                "packages": "requirements.txt", "pip_packages": ["pytest"], "pre_install": null, "reqs_path": ["requirements.txt"],
                "env_yml_path": null, "no_use_env": false, "env_vars": {"A": "b"},
            },
            "requirements": "six==1", "environment": null, "image_name": null,
        }),
    );
    row
}

fn swe_rebench_two() -> Value {
    let mut row = swe_bench();
    merge(
        &mut row,
        json!({
            "repo": "Own/tool", "instance_id": "own__tool-1", "language": "C", "interface": "f()", "pr_description": "x", "meta": {},
            "image_name": "docker.io/swerebenchv2/own-tool:1-abc", "created_at": 1609298073000i64,
            "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": ["b"],
            "install_config": {
                "base_image_name": "c:latest", "docker_specs": null, "install": ["make"], "test_cmd": ["make check", "cat log"],
                "log_parser": "parse_log_cpp",
            },
        }),
    );
    row.as_object_mut().unwrap().remove("environment_setup_commit");
    row
}

fn r2e_gym() -> Value {
    let commit = json!({
        "old_commit_hash": "0123456789abcdef0123456789abcdef01234567",
        "file_diffs": [
            {"header": {"file": {"path": "own/a.py"}}, "old_file_content": "a", "new_file_content": "b", "hunks": []},
            {"header": {"file": {"path": "own/gone.py"}}, "new_file_content": "", "plus_file": {"path": "/dev/null"}},
            {"header": {"file": {"path": "tests/test_a.py"}}, "new_file_content": "c"},
        ],
    });
    json!({
        "repo_name": "sympy", "docker_image": "namanjain12/sympy_final:abc", "commit_hash": "abcdef0123456789",
        "parsed_commit_content": commit.to_string(), "execution_result_content": "{}",
        "expected_output_json": "{\"Tests.a\": \"PASSED\", \"\\u001b[1mTests.b\\u001b[0m - x\": \"FAILED\"}",
        "modified_files": ["a"], "relevant_files": [], "prompt": "p", "problem_statement": "[ISSUE]\nIt fails.\n[/ISSUE]",
    })
}

fn swe_bench_pro() -> Value {
    json!({
        "instance_id": "instance_own__tool-0123456789abcdef-vnan", "repo": "own/tool",
        "base_commit": "0123456789abcdef0123456789abcdef01234567", "patch": patch("a.js"), "test_patch": patch("test/a.js"),
        "problem_statement": "It fails.", "requirements": "r", "interface": "i", "repo_language": "js",
        "fail_to_pass": "['test/a.js | it\\'s']", "pass_to_pass": "[]", "issue_specificity": "[]", "issue_categories": "[\"bug\"]",
        "before_repo_set_cmd": "git reset --hard x\ngit checkout y -- test/a.js", "selected_test_files_to_run": "[\"test/a.js\", \"test/b.js\"]",
        "dockerhub_tag": "own.tool-1",
    })
}

fn multi_swe_bench() -> Value {
    let test = json!({"run": "FAIL", "test": "FAIL", "fix": "PASS"});
    let result = json!({"passed_count": 1, "passed_tests": ["a"]});
    json!({
        "org": "Own", "repo": "tool", "number": 7, "state": "closed", "title": "t", "body": "b", "lang": "Rust", "tag": "",
        "base": {"label": "Own:main", "ref": "main", "sha": "0123456789abcdef0123456789abcdef01234567"},
        "resolved_issues": [{"number": 1, "title": "It fails", "body": "always"}],
        "fix_patch": patch("src/a.rs"), "test_patch": patch("tests/a.rs"),
        "fixed_tests": {"a": test, "n": test}, "f2p_tests": {"a": test}, "n2p_tests": {"n": test}, "s2p_tests": {},
        "p2p_tests": {"name": ["p", "q"], "fix": ["PASS", "PASS"]},
        "run_result": result, "test_patch_result": result, "fix_patch_result": result,
    })
}

fn commit0() -> Value {
    json!({
        "instance_id": "commit-0/tool", "repo": "commit-0/tool", "original_repo": "own/tool",
        "base_commit": "0123456789abcdef0123456789abcdef01234567", "reference_commit": "89abcdef0123456789abcdef0123456789abcdef",
        "setup": {"python": "3.10", "install": "pip install -e .", "packages": null, "pip_packages": ["six"], "pre_install": null,
                  "specification": "https://own.test"},
        "test": {"test_cmd": "pytest", "test_dir": "tests/"}, "src_dir": "tool",
    })
}

fn nemo_gym() -> Value {
    json!({
        "responses_create_params": {
            "input": [],
            "metadata": {
                "instance_id": "pallets__flask-1", "dataset_name": "princeton-nlp/SWE-bench_Verified", "split": "test",
                "problem_statement": "x", "container_formatter": "/images/{instance_id}.sif",
                "instance_dict": swe_bench().to_string(),
            },
        },
        "agent_ref": {"name": "swe_agents"},
    })
}

fn merge(row: &mut Value, own: Value) {
    for (name, value) in own.as_object().unwrap() {
        row[name] = value.clone();
    }
}

fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("swe-bench", swe_bench()),
        ("swe-bench", version_five()),
        ("swe-gym", swe_gym()),
        ("swe-smith", swe_smith()),
        ("swe-rebench", swe_rebench()),
        ("swe-rebench", swe_rebench_two()),
        ("r2e-gym", r2e_gym()),
        ("swe-bench-pro", swe_bench_pro()),
        ("multi-swe-bench", multi_swe_bench()),
        ("commit0", commit0()),
        ("nemo-gym/swe-bench", nemo_gym()),
    ]
}

fn read_text(text: &str) -> Result<Vec<Instance>, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, text).unwrap();
    RowFile::open(&path, RowOptions::default())?.collect()
}

fn read_one(row: &Value) -> Result<Instance, LoadError> {
    read_text(&row.to_string()).map(|mut found| found.remove(0))
}

/// An error without the folder it happened in.
fn error_of(text: &str) -> String {
    let error = read_text(text).unwrap_err().to_string();
    let (_, rest) = error.split_once("rows.jsonl").unwrap();
    rest.to_owned()
}

#[test]
fn every_format_is_recognised_by_its_columns_and_read() {
    for (name, row) in all() {
        let found = read_one(&row).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.format, name);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Instance>(&text).unwrap(), found, "{name}");
        assert_eq!(found.network, NetworkPolicy::None, "{name}");
    }
}

#[test]
fn swe_bench_is_tested_by_the_table_or_by_its_own_script() {
    let found = read_one(&swe_bench()).unwrap();
    assert_eq!(found.unsupported, Vec::<String>::new());
    assert_eq!(
        found.source.image.as_deref(),
        Some("swebench/sweb.eval.x86_64.pallets_1776_flask-1:latest")
    );
    let build = found.source.build.unwrap();
    assert_eq!(
        build.environment_commit.as_deref(),
        Some("89abcdef0123456789abcdef0123456789abcdef")
    );
    let Some(Verification::TestLog { script, parser, expected, .. }) = found.verification else {
        panic!("no log")
    };
    assert_eq!(
        parser,
        ParserName { origin: Origin::SweBench4, name: "parse_log_pytest".to_owned() }
    );
    assert_eq!(expected.fail_to_pass, ["tests/test_app.py::test_a"]);
    assert!(script.contains("\npytest -rA tests/test_app.py\n"), "{script}");
    assert!(
        script
            .contains("git checkout 0123456789abcdef0123456789abcdef01234567 tests/test_app.py\n"),
        "{script}"
    );
    let found = read_one(&version_five()).unwrap();
    let Some(Verification::TestLog { script, eval_type, .. }) = found.verification else {
        panic!("no log")
    };
    assert_eq!((script.as_str(), eval_type), ("#!/bin/bash\ntrue\n", EvalType::FailOnly));
    assert_eq!(found.source.image.as_deref(), Some("x/y:z"));
}

#[test]
fn a_multimodal_row_tells_its_images() {
    let mut row = swe_bench();
    let assets = json!({"problem_statement": ["https://own.test/a.png"], "test_patch": [{"path": "test/b.png", "url": "https://own.test/b.png"}]});
    merge(
        &mut row,
        json!({
            "repo": "processing/p5.js", "instance_id": "processing__p5.js-1", "version": "1.5", "image_assets": assets.to_string(),
        }),
    );
    let found = read_one(&row).unwrap();
    assert_eq!(found.issue.images[0].url, "https://own.test/a.png");
    let Some(Verification::TestLog { script, eval_type, .. }) = found.verification else {
        panic!("no log")
    };
    assert_eq!(eval_type, EvalType::FailOnly);
    assert!(
        script.contains(
            "mkdir -p test\ncurl -o test/b.png https://own.test/b.png\nchmod 777 test/b.png\n"
        ),
        "{script}"
    );
    // The held-out split has neither tests nor a solution.
    merge(
        &mut row,
        json!({"patch": "", "test_patch": "", "FAIL_TO_PASS": "[]", "PASS_TO_PASS": "[]"}),
    );
    let found = read_one(&row).unwrap();
    assert!(!found.is_gradable() && found.gold.is_none());
    assert!(found.unsupported[0].contains("FAIL_TO_PASS"), "{:?}", found.unsupported);
}

#[test]
fn other_families_have_their_images_scripts_and_ways_back() {
    let found = read_one(&swe_gym()).unwrap();
    assert_eq!(
        found.source.image.as_deref(),
        Some("xingyaoww/sweb.eval.x86_64.getmoto_s_moto-1:latest")
    );
    assert!(!found.verification.unwrap().script().contains("Start Test Output"));

    let found = read_one(&swe_smith()).unwrap();
    assert!(
        matches!(found.gold, Some(Gold::ReversePatch(ref text)) if Some(text) == found.bug_patch.as_ref())
    );
    assert_eq!(
        (found.withheld, found.restored),
        (vec!["test_addict.py".to_owned()], vec!["tests/other.py".to_owned()])
    );
    assert_eq!(found.tags, ["func_pm_x"]);
    // As its own tools write them: the commit on a branch with the bug.
    let mut gathered = swe_smith();
    gathered["base_commit"] = "0123456789abcdef0123456789abcdef01234567".into();
    let plain = read_one(&swe_smith()).unwrap();
    assert_eq!(read_one(&gathered).unwrap(), plain);
    // What is no such row is not taken for one: its patch may be the solution.
    gathered["instance_id"] = "owner__repo.v1.2__fix".into();
    assert!(
        error_of(&gathered.to_string()).contains("as rows have it whose patch makes the bug"),
        "{}",
        error_of(&gathered.to_string())
    );

    let found = read_one(&swe_rebench()).unwrap();
    assert_eq!(found.env["A"], "b");
    assert!(found.verification.unwrap().script().contains("\npytest -rA tests/test_app.py\n"));
    let found = read_one(&swe_rebench_two()).unwrap();
    assert_eq!((found.workdir.as_deref(), found.language.as_deref()), (Some("/tool"), Some("c")));
    let script = found.verification.unwrap().script().to_owned();
    assert!(script.ends_with("\nmake check\ncat log\n"));
    // An empty line behind the patch would be one of its last hunk.
    let patch = found.test_patch.unwrap();
    assert!(patch.ends_with('\n') && script.contains(&format!("\n{patch}EOF_")), "{script}");

    let found = read_one(&r2e_gym()).unwrap();
    assert_eq!(found.issue.problem, "It fails.");
    let Some(Verification::ExactStatuses { expected, .. }) = found.verification else {
        panic!("no statuses")
    };
    assert_eq!(expected["Tests.b"], "FAILED");
    let Some(Gold::Files(files)) = found.gold else { panic!("no files") };
    assert_eq!(
        files.iter().map(|(path, file)| (path.as_str(), file.is_some())).collect::<Vec<_>>(),
        [("own/a.py", true), ("own/gone.py", false)]
    );

    let found = read_one(&multi_swe_bench()).unwrap();
    assert_eq!(
        (found.id.as_str(), found.source.image.as_deref()),
        ("Own__tool-7", Some("mswebench/own_m_tool:pr-7"))
    );
    assert_eq!(found.issue.problem, "It fails\nalways");
    let expected = found.verification.as_ref().unwrap().expected().unwrap();
    assert_eq!(
        (&expected.fail_to_pass[..], &expected.pass_to_pass[..]),
        (&["a".to_owned(), "n".to_owned()][..], &["p".to_owned(), "q".to_owned()][..])
    );

    let found = read_one(&commit0()).unwrap();
    assert_eq!(
        (found.id.as_str(), found.source.image.as_deref()),
        ("commit-0__tool", Some("wentingzhao/tool:v0"))
    );
    assert!(matches!(found.verification, Some(Verification::PassedFraction { .. })));

    let found = read_one(&nemo_gym()).unwrap();
    assert_eq!(found.issue.problem, "It does not work.");
    assert!(found.unsupported[0].contains("container_formatter"), "{:?}", found.unsupported);
}

#[test]
fn a_column_of_stages_makes_a_task_of_several() {
    let stages = json!([
        {"problem_statement": "First.", "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": ["c"], "patch": patch("x.py"), "min_reward": 1},
        {"name": "last", "problem_statement": "Then.", "FAIL_TO_PASS": "[\"b\"]", "PASS_TO_PASS": [], "author": "me"},
    ]);
    for mut row in [version_five(), swe_smith(), swe_rebench_two(), nemo_gym()] {
        let nested = row.pointer_mut("/responses_create_params/metadata/instance_dict");
        match nested {
            Some(inner) => {
                let mut own = version_five();
                own["stages"] = stages.clone();
                *inner = own.to_string().into();
            }
            None => row["stages"] = stages.clone(),
        }
        let found = read_one(&row).unwrap();
        assert_eq!((found.stages.len(), found.verification.is_none()), (2, true));
        let told = "`stages[1].author`: not known of this format".to_owned();
        assert!(found.unsupported.contains(&told), "{:?}", found.unsupported);
        let (first, last) = (&found.stages[0], &found.stages[1]);
        assert_eq!((first.name.as_str(), last.name.as_str()), ("1", "last"));
        assert_eq!(first.min_reward["reward"], 1.0);
        assert_eq!(first.gold, Some(Gold::Patch(patch("x.py"))));
        let tests = |number: usize| {
            let verification = found.stages[number].verification.as_ref().unwrap();
            let expected = verification.expected().unwrap();
            (expected.fail_to_pass.clone(), expected.pass_to_pass.clone())
        };
        assert_eq!(tests(0), (vec!["a".to_owned()], vec!["c".to_owned()]));
        assert_eq!(tests(1), (vec!["b".to_owned()], vec![]));
        // What a stage is put as has nothing of the row's own words, nor of the other stages.
        let own = last.within(&found);
        assert_eq!((own.issue.problem.as_str(), own.stages.len()), ("Then.", 0));
        assert_eq!((own.issue.hints, own.workdir), (None, found.workdir.clone()));
    }
    let refused = |row: Value| read_one(&row).unwrap_err().to_string();
    let mut row = commit0();
    row["stages"] = stages.clone();
    assert!(refused(row).contains("`stages`: expected a format whose rows name the tests"));
    for (stage, expected) in [
        (json!({"problem_statement": "x", "FAIL_TO_PASS": []}), "`stages[0].PASS_TO_PASS`"),
        (
            json!({"problem_statement": " ", "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": []}),
            "instruction is empty",
        ),
        (
            json!({"problem_statement": "x", "FAIL_TO_PASS": [], "PASS_TO_PASS": []}),
            "any result would do",
        ),
        (json!("x"), "`stages[0]`: expected an object"),
    ] {
        let mut row = version_five();
        row["stages"] = json!([stage]);
        let told = refused(row);
        assert!(told.contains(expected), "{told}");
    }
    let mut row = version_five();
    let stage = json!({"problem_statement": "x", "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": []});
    row["stages"] = Value::Array(vec![stage.clone(); 101]);
    for (number, stage) in row["stages"].as_array_mut().unwrap().iter_mut().enumerate() {
        stage["name"] = number.to_string().into();
    }
    assert!(refused(row.clone()).contains("it has 101 stages, and at most 100 are played"));
    row["stages"] = json!([{"name": "2"}, {}]);
    row["stages"][0].as_object_mut().unwrap().extend(stage.as_object().unwrap().clone());
    row["stages"][1] = stage;
    assert!(refused(row).contains("found `2` twice"));
}

#[test]
fn scripts_beside_the_file_are_found() {
    let found = read_one(&swe_bench_pro()).unwrap();
    assert!(!found.is_gradable());
    assert!(found.unsupported[0].contains("run_scripts"), "{:?}", found.unsupported);
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("run_scripts/instance_own__tool-0123456789abcdef-vnan");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::write(scripts.join("run_script.sh"), "run").unwrap();
    std::fs::write(scripts.join("parser.py"), "parse").unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, swe_bench_pro().to_string()).unwrap();
    let found = RowFile::open(&path, RowOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(found.source.image.as_deref(), Some("jefzda/sweap-images:own.tool-1"));
    let Some(Verification::TestReport { script, report, expected }) = found.verification else {
        panic!("no report")
    };
    assert!(script.contains("cd /app\ngit checkout y -- test/a.js\nbash /workspace/run_script.sh test/a.js,test/b.js >"), "{script}");
    assert_eq!(
        (report.as_str(), &expected.fail_to_pass[0][..]),
        ("/workspace/output.json", "test/a.js | it's")
    );
    assert_eq!(found.hidden[0].files.len(), 2);
    let mut without = swe_bench_pro();
    without.as_object_mut().unwrap().remove("dockerhub_tag");
    let found = read_one(&without).unwrap();
    assert_eq!(
        found.source.image.as_deref(),
        Some("jefzda/sweap-images:own.tool-own__tool-0123456789abcdef")
    );
}

#[test]
fn arrays_are_read_and_formats_stay_apart() {
    let one = swe_bench();
    assert_eq!(read_text(&json!([one, version_five()]).to_string()).unwrap().len(), 2);
    let mixed = format!("{}\n\n{}\n", swe_bench(), swe_smith());
    assert_eq!(
        error_of(&mixed),
        "`, line 3 (`mewwts__addict.75284f95.func_pm_x__abc123`): a row of swe-smith, and the rows before it are of swe-bench: keep formats in files of their own"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.jsonl");
    std::fs::write(&path, mixed).unwrap();
    assert!(RowFile::matches(&path));
    let options = RowOptions { mixed: true, ..RowOptions::default() };
    assert_eq!(RowFile::open(&path, options).unwrap().map(Result::unwrap).count(), 2);
    let twice = format!("{one}\n{one}\n");
    assert_eq!(
        error_of(&twice),
        "`, line 2 (`pallets__flask-1`): there is an instance of that id before it"
    );
}

#[test]
fn what_nobody_knows_is_told() {
    let mut row = swe_bench();
    merge(&mut row, json!({"surprise": 1, "nothing": null, "empty": ""}));
    assert_eq!(read_one(&row).unwrap().unsupported, ["`surprise`: not known of this format"]);
    merge(&mut row, json!({"repo": "own/unknown"}));
    let found = read_one(&row).unwrap();
    assert!(
        !found.is_gradable() && found.unsupported[0].starts_with("`repo`: nothing is known"),
        "{:?}",
        found.unsupported
    );
}

#[test]
fn errors_name_the_row_and_the_column() {
    let with = |own: Value| {
        let mut row = swe_bench();
        merge(&mut row, own);
        error_of(&row.to_string())
    };
    let row = "`, line 1 (`pallets__flask-1`): ";
    for (own, expected) in [
        (json!({"base_commit": 3}), "`base_commit`: expected a text, found the number 3"),
        (
            json!({"FAIL_TO_PASS": "[\"a\""}),
            "`FAIL_TO_PASS`: expected a list of texts, or a text that is one in JSON, found the text `[\\\"a\\\"`",
        ),
        (
            json!({"FAIL_TO_PASS": ["a", 1]}),
            "`FAIL_TO_PASS`: expected texts, found the number 1 as its element 2",
        ),
        (
            json!({"PASS_TO_PASS": {"a": 1}}),
            "`PASS_TO_PASS`: expected a list of texts, or a text that is one in JSON, found an object of 1",
        ),
        (json!({"problem_statement": null}), "`problem_statement`: expected a text, found null"),
        (
            json!({"problem_statement": " "}),
            "the problem is empty: nothing tells what is to be done",
        ),
        (
            json!({"base_commit": "main"}),
            "the base commit `main` is not 7 to 64 hexadecimal digits",
        ),
        (
            json!({"eval_script": "x"}),
            "`log_parser`: expected the name of a parser beside `eval_script`",
        ),
        (
            json!({"eval_type": "both"}),
            "`eval_type`: expected one of `pass_and_fail`, `fail_only`, found `both`",
        ),
        (
            json!({"test_patch": "@@ -1 +1 @@\n"}),
            "`test_patch`: expected a diff whose files and hunks are as long as they say",
        ),
        (
            json!({"image_assets": "x"}),
            "`image_assets`: expected an object, or a text that is one in JSON, found the text `x`",
        ),
        (
            json!({"image": "bad image", "eval_script": "x", "log_parser": "y"}),
            "source: `bad image` is no name of an image",
        ),
    ] {
        assert_eq!(with(own), format!("{row}{expected}"));
    }
    assert!(
        with(json!({"version": "99"}))
            .contains("`version`: `99` is none of `pallets/flask`'s, which are `")
    );
    assert_eq!(
        with(json!({"instance_id": "../x"})),
        "`, line 1 (`../x`): the id `../x` is not a word of at most 255 bytes without `/`, `\\` and a leading `.` or `-`"
    );
    assert_eq!(
        error_of("{}"),
        "`, line 1: its columns belong to no format: it has none; the formats are `nemo-gym`, `multi-swe-bench`, `r2e-gym`, `swe-bench-pro`, `commit0`, `swe-rebench`, `swe-smith`, `swe-gym`, `swe-bench`"
    );
    assert_eq!(
        error_of(r#"{"instance_id": "a", "repo": "b/c", "base_commit": "d", "patch": "e"}"#),
        "`, line 1 (`a`): its columns belong to no format: it has `instance_id`, `repo`, `base_commit`, `patch`; it comes closest to swe-bench, for which it lacks `test_patch`, `problem_statement`"
    );
    let mut fixed = swe_smith();
    fixed["test_patch"] = "".into();
    assert!(
        error_of(&fixed.to_string())
            .ends_with("it comes closest to swe-smith, whose rows never have `test_patch`")
    );
    assert_eq!(
        error_of("3\n"),
        "`, line 1: not readable as JSON: expected a row, which is an object, found the number 3"
    );
    assert!(error_of("\n{\"a\": \n").starts_with("`, line 2: not readable as JSON: EOF"));
    let missing = RowFile::open(Path::new("/no/such/rows.jsonl"), RowOptions::default());
    assert!(matches!(missing.err(), Some(LoadError::Io { .. })));
}

#[test]
fn a_file_that_only_begins_like_parquet_is_told() {
    assert_eq!(error_of("PAR1xxxx"), "`: not readable as Parquet: it is too short");
}

#[test]
fn instances_are_read_as_from_lines() {
    let open = |path: &Path| RowFile::open(path, RowOptions::default()).unwrap();
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/instances.parquet");
    let found: Vec<_> = open(&path).map(Result::unwrap).collect();
    let told: Vec<_> = open(&path.with_extension("json")).map(Result::unwrap).collect();
    assert_eq!((found.len(), &*found[0].format), (3, "swe-bench"));
    assert_eq!(found, told);
    assert!(RowFile::matches(&path));
}

/// Says so where the rows are not at hand.
#[test]
fn real_rows_are_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/swe/dev_rows.jsonl");
    if !path.exists() {
        eprintln!("not run: there are no rows at {}", path.display());
        return;
    }
    let found: Vec<Instance> =
        RowFile::open(&path, RowOptions::default()).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found.len(), 6);
    for instance in found {
        assert!(
            instance.is_gradable() && instance.unsupported.is_empty(),
            "{:?}",
            instance.unsupported
        );
        let Some(Gold::Patch(patch)) = &instance.gold else { panic!("no patch") };
        let read = crate::Patch::parse(patch.as_bytes(), &crate::PatchLimits::default()).unwrap();
        assert_eq!((read.is_empty(), read.unsafe_changes(patch.as_bytes())), (false, vec![]));
    }
}

fn hostile() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::String),
        prop::sample::select(vec![
            "[]",
            "{}",
            "[\"a\"]",
            "['a']",
            "{\"a\": 1}",
            "../x",
            "@@ -1 +1 @@\n",
            "\u{0}",
            "[[[["
        ])
        .prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever stands in a column, the row is read or refused.
    #[test]
    fn columns_of_any_content_do_no_harm(which in 0usize..11, values in prop::collection::vec((any::<prop::sample::Index>(), hostile()), 1..4)) {
        let (_, mut row) = all().swap_remove(which);
        for (at, value) in values {
            let row = row.as_object_mut().unwrap();
            let name = row.keys().nth(at.index(row.len())).unwrap().clone();
            row.insert(name, value);
        }
        if let Ok(found) = read_one(&row) {
            prop_assert_eq!(found.problems(), Vec::<String>::new());
        }
    }

    #[test]
    fn text_of_any_kind_does_no_harm(text in "[\\[{\"a:,\\]} \n]{0,40}") {
        let _ = read_text(&text);
    }
}
