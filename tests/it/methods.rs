//! Methods listed, advantages assigned again, and recipes swept over settings and seeds.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{run, succeed, workplace};

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(folder, arguments).out).unwrap()
}

#[test]
fn methods_are_listed_with_how_exact_they_are() {
    let here = Path::new(".");
    let text = succeed(here, &["methods"]).out;
    for part in ["credit", "grpo", "salt", "reconstructed", "exact", "objectives", "clip", "own"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let listed = json(here, &["methods", "--axis", "credit", "--json"]);
    let estimators = json(here, &["list", "credit", "--json"]);
    let names = |value: &Value| -> Vec<String> {
        let rows = value.as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed), names(&estimators["credit"]));
    let reconstructed = json(here, &["methods", "--exactness", "reconstructed", "--json"]);
    assert!(names(&reconstructed).contains(&"salt".to_owned()));
    let page = succeed(here, &["methods", "show", "salt"]).out;
    for part in ["formula\n", "source\n", "options\n", "exactness\n  reconstructed"] {
        assert!(page.contains(part), "{page}");
    }
    let wrong = run(here, &["methods", "show", "slat"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("find a method `slat`: known are `salt`"), "{}", wrong.err);
}

#[test]
fn a_sweep_trains_what_is_not_finished_and_its_runs_are_judged_by_any_estimator() {
    let folder = workplace();
    let folder = folder.path();
    let sweep = [
        "sweep",
        "tiny.toml",
        "--vary",
        "reinforce.credit.kind=grpo|gigpo",
        "--seeds",
        "3,4",
        "--jobs",
        "2",
        "--out",
        "swept",
    ];
    let plan = succeed(folder, &[&sweep[..], &["--dry-run"]].concat()).out;
    assert!(plan.contains("tiny-kind_gigpo-4") && plan.contains("4 runs in swept"), "{plan}");
    assert!(!folder.join("swept").exists());

    let compared = json(folder, &[&sweep[..], &["--json"]].concat());
    let series = compared["series"].as_array().unwrap();
    let names: Vec<&str> = series.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tiny kind=grpo", "tiny kind=gigpo"]);
    assert!(series.iter().all(|it| it["runs"].as_array().unwrap().len() == 2));
    assert!(compared["pairs"][0]["difference"]["tasks"].as_u64() > Some(0));
    for file in ["comparison.txt", "comparison.json", "comparison.svg", "tiny-kind_grpo-3.log"] {
        assert!(folder.join("swept").join(file).is_file(), "{file}");
    }

    // One run is lost, the others are not trained again.
    let kept = folder.join("swept/tiny-kind_grpo-3/metrics.jsonl");
    let before = fs::metadata(&kept).unwrap().modified().unwrap();
    fs::remove_dir_all(folder.join("swept/tiny-kind_gigpo-4")).unwrap();
    let plan = succeed(folder, &[&sweep[..], &["--dry-run"]].concat()).out;
    assert_eq!(plan.matches("finished").count(), 3, "{plan}");
    let again = json(folder, &[&sweep[..], &["--json"]].concat());
    assert_eq!(again["series"][1]["after"], compared["series"][1]["after"]);
    assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), before);

    // Other settings would be pooled with these.
    let other = run(folder, &[&sweep[..], &["--set", "reinforce.tasks=5"]].concat());
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("begun with other settings (`reinforce.tasks`)"), "{}", other.err);
    let wrong = run(folder, &["sweep", "tiny.toml", "--vary", "reinforce.credit.kind=gppo"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("series `tiny kind=gppo`"), "{}", wrong.err);

    // What was played, judged again.
    let run_folder = "swept/tiny-kind_grpo-3";
    let own = json(folder, &["credit", run_folder, "--json", "--limit", "1000"]);
    assert_eq!(own["estimator"]["kind"], "grpo");
    for group in own["shown"].as_array().unwrap() {
        let trajectories = group["trajectories"].as_array().unwrap();
        let firsts = trajectories.iter().filter_map(|it| it["steps"][0]["advantage"].as_f64());
        // Advantages among a group cancel each other.
        assert!(firsts.sum::<f64>().abs() < 1e-6, "{group}");
        for trajectory in trajectories {
            let steps = trajectory["steps"].as_array().unwrap();
            assert!(steps.iter().all(|step| step["advantage"] == steps[0]["advantage"]));
        }
    }
    let by_steps = json(
        folder,
        &["credit", run_folder, "--estimator", "gigpo", "--set", "discount=0.9", "--json"],
    );
    assert_eq!(by_steps["estimator"]["kind"], "gigpo");
    assert_eq!(by_steps["iteration"], own["iteration"]);
    assert_eq!(by_steps["steps"], own["steps"]);
    let text = succeed(folder, &["credit", run_folder, "--group", "0"]).out;
    assert!(text.contains("· grpo") && text.contains("━━ group 0 · "), "{text}");
    for (arguments, part) in [
        (&["--estimator", "gae"][..], "it needs `values`"),
        (&["--estimator", "gppo"], "known are"),
        (&["--iteration", "99"], "find trajectories of iteration 99: there are"),
        (&["--group", "99"], "find group 99"),
    ] {
        let failed = run(folder, &[&["credit", run_folder][..], arguments].concat());
        assert_eq!(failed.code, Some(1), "{arguments:?}");
        assert!(failed.err.contains(part), "{}", failed.err);
    }
}
