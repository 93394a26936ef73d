//! Datasets of recorded episodes: collected, checked, learned from, and gone along.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::has_python;
use crate::support::{run, succeed, workplace};

/// What is collected in tests; `out` is the folder.
fn collect<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["collect", "--suite", "frozen-lake", "--tasks", "20", "--episodes", "3", "--seed", "5"];
    [&fixed[..], &["--out", out], more].concat()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn datasets_repeat_go_on_where_they_were_broken_off_and_are_suites() {
    let folder = workplace();
    let folder = folder.path();
    let told = succeed(folder, &collect("lake", &["--json"])).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let returns = |tier: &str| told["tiers"][tier]["mean_return"].as_f64().unwrap();
    assert!(returns("random") < returns("medium-replay"), "{told}");
    assert!(returns("medium-replay") < returns("medium") && returns("medium") < returns("expert"));
    assert_eq!((returns("expert"), told["references"]["expert"].as_f64()), (1.0, Some(1.0)));
    assert_eq!(told["tiers"]["medium"]["episodes"], 60);

    // Equal seeds, equal bytes; also where it was killed within a tier and within a write.
    succeed(folder, &collect("again", &["--tier", "random", "--tier", "expert"]));
    let mut kept = read(&folder.join("again/dataset.json"));
    assert_eq!(kept["tiers"].as_object().unwrap().len(), 2);
    let path = folder.join("again/random.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&path, format!("{}\n{}", lines[..48].join("\n"), &lines[48][..90])).unwrap();
    let first = &lines[..48];
    let reward = |line: &&str| -> f64 {
        let recording: Value = serde_json::from_str(line).unwrap();
        let turns = recording["turns"].as_array().unwrap().clone();
        let parts =
            turns.iter().flat_map(|turn| turn["step"]["rewards"].as_array().unwrap().clone());
        parts.map(|part| part["value"].as_f64().unwrap()).sum()
    };
    let turns = |line: &&str| -> usize {
        let recording: Value = serde_json::from_str(line).unwrap();
        recording["turns"].as_array().unwrap().len()
    };
    let tier = &mut kept["tiers"]["random"];
    tier["tasks"] = 16.into();
    tier["episodes"] = 48.into();
    let rewards: f64 = first.iter().map(reward).sum();
    tier["successes"] = (rewards as usize).into();
    tier["mean_return"] = (rewards / 48.0).into();
    tier["mean_turns"] = (first.iter().map(turns).sum::<usize>() as f64 / 48.0).into();
    fs::write(folder.join("again/dataset.json"), kept.to_string()).unwrap();
    let unfinished = run(folder, &["validate", "again"]);
    assert!(unfinished.err.contains("16 of 20 tasks were played"), "{}", unfinished.err);
    succeed(folder, &collect("again", &[]));
    assert_eq!(files(&folder.join("again")), files(&folder.join("lake")));

    // Other settings would be another dataset.
    let other = run(folder, &collect("lake", &["--noise", "0.2"]));
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("noise 0.4, now 0.2"), "{}", other.err);
    let taken = run(folder, &collect(".", &[]));
    assert!(taken.err.contains("holds something else"), "{}", taken.err);

    // What was done can be done again, and stands for itself.
    succeed(folder, &["validate", "lake"]);
    let by_oracle = ["eval", "--suite", "lake", "--policy", "oracle", "--json"];
    let found = |split: &str, more: &[&str]| -> Value {
        let arguments = [&by_oracle[..], &["--split", split], more].concat();
        let told: Value = serde_json::from_str(&succeed(folder, &arguments).out).unwrap();
        told["evaluations"][0]["overall"].clone()
    };
    let again = found("medium", &[]);
    assert_eq!(again["episodes"], 60);
    assert!((again["mean_reward"].as_f64().unwrap() - returns("medium")).abs() < 1e-9, "{again}");
    assert_eq!(found("medium-expert", &[])["episodes"], 120);
    let shown = succeed(folder, &["tasks", "show", "lake", "offline/expert/3"]).out;
    assert!(shown.contains("offline/expert/3"), "{shown}");
}

#[test]
fn tasks_that_nobody_can_play_stop_a_tier_or_are_left_behind() {
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &["env", "init", "game"]);
    let (path, broken) = (folder.join("game/game.py"), folder.join("broken"));
    let program = fs::read_to_string(&path).unwrap();
    let check = format!("        assert not __import__('os').path.exists({broken:?}), 'no dice'\n");
    let reset = "        self.secret = ";
    assert!(program.contains(reset));
    fs::write(&path, program.replacen(reset, &format!("{check}{reset}"), 1)).unwrap();
    let fixed = ["collect", "--suite", "game", "--out", "kept", "--tier", "random"];
    let few = ["--tasks", "17", "--episodes", "1", "--seed", "5"];
    let collect = |more: &[&str]| run(folder, &[&fixed[..], &few, more].concat());
    let tier = || read(&folder.join("kept/dataset.json"))["tiers"]["random"].clone();

    fs::write(&broken, "").unwrap();
    // The same is told each time, with what to do.
    for _ in 0..2 {
        let stopped = collect(&[]);
        assert_eq!(stopped.code, Some(1), "{}", stopped.err);
        for part in ["of tasks 1 to 16 of 17 (", "no dice", "tries these", "--skip-failed"] {
            assert!(stopped.err.contains(part), "{part}: {}", stopped.err);
        }
        assert_eq!(tier(), Value::Null);
    }
    // A tier has an episode at least.
    let empty = collect(&["--skip-failed"]);
    assert_eq!(empty.code, Some(1), "{}", empty.err);
    assert!(empty.err.contains("of tasks 17 to 17 of 17 ("), "{}", empty.err);
    assert_eq!((&tier()["tasks"], &tier()["missing"]), (&16.into(), &16.into()));
    fs::remove_file(&broken).unwrap();
    let whole = collect(&[]);
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    assert!(whole.out.contains("16 episodes could not be played"), "{}", whole.out);
    assert_eq!((&tier()["tasks"], &tier()["episodes"]), (&17.into(), &1.into()));
    succeed(folder, &["validate", "kept"]);
}

#[test]
fn what_a_run_played_of_other_splits_is_left_out() {
    let folder = workplace();
    let folder = folder.path();
    for (split, out) in [("train", "kept"), ("test", "other")] {
        let rollout = ["rollout", "--suite", "frozen-lake", "--policy", "oracle", "--out", out];
        let few = ["--split", split, "--limit", "4", "--group-size", "2"];
        succeed(folder, &[&rollout[..], &few].concat());
    }
    let import = |out: &str, from: &str| {
        run(folder, &collect(out, &["--tier", "medium-replay", "--replay", from]))
    };
    let none = import("none", "other");
    assert_eq!(none.code, Some(1));
    for part in ["no trajectory of split `train`", "8 of other splits"] {
        assert!(none.err.contains(part), "{}", none.err);
    }
    let (from, to) = ("other/000000.jsonl.zst", "kept/000001.jsonl.zst");
    fs::copy(folder.join(from), folder.join(to)).unwrap();
    let mixed = import("mixed", "kept");
    assert_eq!(mixed.code, Some(0), "{}", mixed.err);
    assert!(mixed.err.contains("8 episodes of other splits than `train`"), "{}", mixed.err);
    let tier = read(&folder.join("mixed/dataset.json"))["tiers"]["medium-replay"].clone();
    assert_eq!((&tier["episodes"], &tier["missing"]), (&8.into(), &Value::Null));
}

#[test]
fn scores_are_normalised_between_chance_and_the_expert() {
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &collect("lake", &["--tier", "random", "--tier", "expert"]));
    let score = |policy: &str| -> f64 {
        let eval = ["eval", "--suite", "frozen-lake", "--split", "test", "--policy", policy];
        let arguments = [&eval[..], &["--normalize", "lake", "--json"]].concat();
        let told: Value = serde_json::from_str(&succeed(folder, &arguments).out).unwrap();
        told["normalized_scores"]["test"].as_f64().unwrap()
    };
    assert!((score("oracle") - 100.0).abs() < 1e-9);
    assert!(score("random").abs() < 15.0, "{}", score("random"));
    let other =
        run(folder, &["eval", "--suite", "sums", "--policy", "oracle", "--normalize", "lake"]);
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("it is of suite `frozen-lake`"), "{}", other.err);
    let none =
        run(folder, &["eval", "--suite", "sums", "--policy", "oracle", "--normalize", "nowhere"]);
    assert!(none.err.contains("`spar collect"), "{}", none.err);
}

#[test]
fn a_policy_learns_to_cross_a_lake_from_episodes_of_others_alone() {
    let folder = workplace();
    let folder = folder.path();
    succeed(
        folder,
        &["collect", "--suite", "frozen-lake", "--out", "lake", "--tasks", "64", "--seed", "5"],
    );
    let settings = [
        "stages.offline.dataset.folder=lake",
        // Seeds 0 to 2: 43, 43 and 50 in the end.
        "stages.offline.iterations=12",
        "evaluation={ every = 6, dev_tasks = 50 }",
        "data.test=[]",
    ];
    let mut arguments = vec!["train", "offline", "--name", "learned", "--threads", "2"];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    succeed(folder, &arguments);
    let metrics = fs::read_to_string(folder.join("runs/learned/metrics.jsonl")).unwrap();
    let records: Vec<Value> =
        metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scores: Vec<f64> = records
        .iter()
        .filter(|record| record["kind"] == "evaluation")
        .map(|record| record["normalized_score"].as_f64().unwrap())
        .collect();
    assert_eq!(scores.len(), 2, "{metrics}");
    // Chance is 0.
    assert!(scores[1] > 25.0, "{scores:?}");
    let trained: Vec<&Value> =
        records.iter().filter(|record| record["kind"] == "offline").collect();
    assert_eq!(trained.len(), 12);
    // What the policy does stands in for what others were likely to do.
    assert!(trained.iter().all(|record| record["updates"].as_f64() >= Some(1.0)), "{metrics}");
    assert_eq!(trained[0]["missing"], 0.0);

    // A file that is cut off, another suite, and another dataset than at the start.
    let path = folder.join("lake/medium-replay.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 30]).unwrap();
    let cut = run(folder, &arguments);
    assert_eq!(cut.code, Some(1));
    assert!(
        cut.err.contains("as if cut off") && cut.err.contains("medium-replay.jsonl"),
        "{}",
        cut.err
    );
    fs::write(&path, whole).unwrap();
    let other =
        run(folder, &[&arguments[..], &["--suite", "sums", "--set", "data.dev=dev"]].concat());
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("is of suite `frozen-lake`"), "{}", other.err);
    let missing =
        run(folder, &[&arguments[..], &["--set", "stages.offline.dataset.folder=gone"]].concat());
    assert!(missing.err.contains("there is no dataset.json"), "{}", missing.err);
}

/// Direct advantages: the policy stays while its critic is fitted, and the critic while the policy learns from it.
#[test]
fn a_critic_is_fitted_first_and_stays_with_the_model_that_it_was_fitted_to() {
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &collect("lake", &[]));
    let mut arguments = vec!["train", "direct-advantage", "--name", "critic", "--seed", "3"];
    let mut settings: Vec<String> = ["clone", "critic", "improve"]
        .iter()
        .flat_map(|stage| {
            [format!("stages.{stage}.dataset.folder=lake"), format!("stages.{stage}.iterations=8")]
        })
        .collect();
    settings.extend([
        "data.test=[]".to_owned(),
        "evaluation={ every = 24, dev_tasks = 4, max_turns = 8 }".to_owned(),
        "keep={ checkpoint_every = 8, checkpoints = 10 }".to_owned(),
    ]);
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    succeed(folder, &arguments);
    let run = folder.join("runs/critic");
    let file = |iteration: u64, name: &str| {
        fs::read(run.join(format!("checkpoints/iteration-{iteration:06}")).join(name)).unwrap()
    };
    let (model, head) = ("model.safetensors", "value_head.safetensors");
    assert_eq!(file(8, model), file(16, model), "no policy is trained with its critic");
    assert_ne!(file(8, head), file(16, head));
    assert_eq!(file(16, head), file(24, head), "no critic is trained with its policy");
    assert_ne!(file(16, model), file(24, model));

    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let records = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records: Vec<Value> = records.filter(|it| it["kind"] == "offline").collect();
    let of = |iteration: usize, name: &str| records[iteration][name].as_f64().unwrap();
    assert_eq!(records.len(), 24);
    assert!(of(15, "value_loss") < of(8, "value_loss"), "the critic learns");
    assert!(of(15, "explained_variance") > of(8, "explained_variance").max(0.0));
    // What the fitted critic tells of the reference model does not change with the policy, which comes nearer to it.
    assert!(of(23, "advantage_error") < of(16, "advantage_error"));
}

#[test]
fn how_far_a_policy_goes_along_a_recording_is_measured() {
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &collect("lake", &["--tier", "expert"]));
    let measured = |policy: &str, suite: &str, split: &str| -> Value {
        let eval =
            ["eval", "--suite", suite, "--split", split, "--policy", policy, "--limit", "40"];
        let arguments = [&eval[..], &["--semi-online", "--json"]].concat();
        let told: Value = serde_json::from_str(&succeed(folder, &arguments).out).unwrap();
        told["evaluations"][0]["overall"]["semi_online"].clone()
    };
    for (suite, split) in [("lake", "expert"), ("frozen-lake", "test")] {
        let oracle = measured("oracle", suite, split);
        assert_eq!((oracle["episodes"].as_u64(), oracle["sop"].as_f64()), (Some(40), Some(1.0)));
        let chance = measured("random", suite, split);
        let (progress, sop) = (chance["progress"].as_f64(), chance["sop"].as_f64());
        assert!(progress > Some(0.0) && progress < Some(0.4) && sop < progress, "{chance}");
    }
    let plain =
        ["eval", "--suite", "lake", "--split", "expert", "--policy", "random", "--semi-online"];
    let told = succeed(folder, &plain).out;
    assert!(told.contains("semi-online performance"), "{told}");
}

#[test]
fn conversations_are_learned_from_where_they_were_kept() {
    let folder = workplace();
    let folder = folder.path();
    let collected =
        ["collect", "--suite", "dialogue", "--split", "easy", "--guide", "expert", "--tasks", "12"];
    succeed(folder, &[&collected[..], &["--episodes", "3", "--out", "talks"]].concat());
    let settings = [
        "stages.offline.dataset.folder=talks",
        "stages.offline.iterations=3",
        "evaluation={ every = 3, dev_tasks = 4 }",
        "data.test=[]",
        "data.dev=easy",
    ];
    let mut arguments = vec!["train", "imagined", "--name", "talker", "--threads", "2"];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    succeed(folder, &arguments);
    let metrics = fs::read_to_string(folder.join("runs/talker/metrics.jsonl")).unwrap();
    let records: Vec<Value> =
        metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let losses: Vec<f64> = records
        .iter()
        .filter(|record| record["kind"] == "offline")
        .map(|record| record["loss"].as_f64().unwrap())
        .collect();
    assert_eq!(losses.len(), 3, "{metrics}");
    assert!(losses[2] < losses[0], "{losses:?}");
}
