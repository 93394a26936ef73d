//! Learning from preferences, in files and of groups that the policy plays.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{TINY, kill_at, run, succeed, workplace};

/// The tiny model, which learns to walk, then to answer from files, then from its own episodes.
fn recipe() -> String {
    let (head, rest) = TINY.split_once("[warm_start]").unwrap();
    let (_, tail) = rest.split_once("[evaluation]").unwrap();
    format!(
        "{head}
[[stages]]
kind = 'imitate'
name = 'shown'
iterations = 2
tasks = 16
demonstrator = 'oracle'
batch_tokens = 512

[[stages]]
kind = 'prefer'
name = 'told'
iterations = 12
pairs = {{ files = ['pairs.jsonl'], held_out = ['held-out.jsonl'], per_iteration = 20 }}
trainer = {{ minibatches = 2, shards = 2, optimizer = {{ name = 'adamw', options = {{ learning_rate = 3e-3 }} }} }}

[[stages]]
kind = 'prefer'
name = 'played'
iterations = 3
tasks = 6
group_size = 6
max_turns = 8
shapers = [{{ name = 'length_discount', options = {{ factor = 0.9 }} }}]
objective = {{ options = {{ beta = 0.5, label_smoothing = 0.1 }} }}
reference = 'disk'

[evaluation]{tail}"
    )
}

/// Pairs of which the answer that was chosen follows from a word of the prompt; things are held out with one of the words
/// that they come with.
fn pairs(is_held_out: bool) -> String {
    let (places, things) =
        (["hut", "lake", "hill", "wood"], ["sun", "rain", "wind", "snow", "fog"]);
    let mut lines = String::new();
    let mut number = 0;
    for place in places {
        for thing in things {
            for (word, chosen, rejected) in
                [("warm", "go out", "stay in"), ("cold", "stay in", "go out")]
            {
                number += 1;
                if (number % 5 == 0) != is_held_out {
                    continue;
                }
                let question = format!("{thing} at the {place} , {word}");
                let answer = |text: &str| json!({ "role": "assistant", "content": text });
                let user = json!({ "role": "user", "content": question });
                let line = match number % 3 {
                    0 => json!({ "prompt": question, "chosen": chosen, "rejected": rejected }),
                    1 => {
                        json!({ "chosen": [user, answer(chosen)], "rejected": [user, answer(rejected)] })
                    }
                    _ => {
                        json!({ "prompt": [user], "chosen": [answer(chosen)], "rejected": [answer(rejected)] })
                    }
                };
                writeln!(lines, "{line}").unwrap();
            }
        }
    }
    lines
}

fn place() -> tempfile::TempDir {
    let folder = workplace();
    fs::write(folder.path().join("prefer.toml"), recipe()).unwrap();
    fs::write(folder.path().join("pairs.jsonl"), pairs(false)).unwrap();
    fs::write(folder.path().join("held-out.jsonl"), pairs(true)).unwrap();
    folder
}

fn records(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn weights(folder: &Path, name: &str) -> Vec<u8> {
    let checkpoints = folder.join("runs").join(name).join("checkpoints");
    fs::read(checkpoints.join("iteration-000017/model.safetensors")).unwrap()
}

#[test]
fn preferences_are_learned_and_gone_on_with_to_the_bit_after_being_killed() {
    let folder = place();
    let folder = folder.path();
    let arguments = ["train", "prefer.toml", "--name"];
    succeed(folder, &[&arguments[..], &["whole"]].concat());
    let whole = records(folder, "whole");
    let of = |stage: &str| -> Vec<&Value> {
        whole.iter().filter(|record| record["stage"] == stage).collect()
    };
    let number = |record: &Value, name: &str| record[name].as_f64().unwrap();

    // What was never trained on is preferred more and more.
    let told = of("told");
    assert!(told.iter().all(|record| record["kind"] == "prefer" && record["pairs"] == 20.0));
    assert_eq!(number(told[0], "samples"), 40.0);
    let first = number(told[0], "reward_margin");
    assert!(first.abs() < 0.05, "the policy begins as its own reference: {first}");
    let held_out: Vec<&Value> =
        told.iter().copied().filter(|record| !record["held_out_loss"].is_null()).collect();
    assert_eq!(held_out.len(), 4, "every third iteration");
    let (early, late) = (held_out[0], held_out[3]);
    for (name, least) in [("held_out_reward_margin", 0.5), ("held_out_preference_accuracy", 0.0)] {
        assert!(number(late, name) >= number(early, name) + least, "{name}: {early} {late}");
    }
    assert!(number(late, "held_out_preference_accuracy") >= 0.9, "{late}");
    assert!(number(late, "held_out_loss") < number(early, "held_out_loss"), "{early} {late}");
    let rewards = number(late, "held_out_reward_chosen") - number(late, "held_out_reward_rejected");
    assert!((rewards - number(late, "held_out_reward_margin")).abs() < 1e-6);

    // Of its own episodes, the best are held against the worst.
    let played = of("played");
    assert_eq!(played.len(), 3);
    assert!(played.iter().all(|record| number(record, "episodes") == 36.0));
    assert!(played.iter().map(|record| number(record, "pairs")).sum::<f64>() > 0.0, "{played:?}");
    let drift: Vec<f64> =
        played.iter().filter_map(|record| record["drift_current_max"].as_f64()).collect();
    assert!(!drift.is_empty() && drift.iter().all(|drift| *drift == 0.0), "{drift:?}");
    assert!(whole.iter().any(|record| record["kind"] == "evaluation"));
    assert!(succeed(folder, &["show", "runs/whole"]).out.contains("played"));

    for (number, moments) in [&[4, 9, 17][..], &[2, 12, 21]].iter().enumerate() {
        let name = format!("killed-{number}");
        let path = format!("runs/{name}");
        for (time, lines) in moments.iter().enumerate() {
            let begin = [&arguments[..], &[&name]].concat();
            let go_on = ["resume", &path];
            kill_at(folder, &name, if time == 0 { &begin } else { &go_on }, *lines);
        }
        succeed(folder, &["resume", &path]);
        assert_eq!(records(folder, &name), whole);
        assert!(weights(folder, &name) == weights(folder, "whole"), "weights differ");
    }
}

#[test]
fn a_dry_run_tells_all_that_is_wrong_with_pairs() {
    let folder = place();
    let folder = folder.path();
    let planned = succeed(folder, &["train", "prefer.toml", "--dry-run"]).out;
    for part in [
        "2. told    prefer     12 iterations of 20 pairs of `pairs.jsonl`; dpo objective",
        "3. played  prefer     3 iterations of 6 tasks x 6 on `train` of `frozen-lake`, the best of each",
    ] {
        assert!(planned.contains(part), "{part} is not in\n{planned}");
    }
    fs::write(folder.join("again.toml"), &planned).unwrap();
    assert_eq!(succeed(folder, &["train", "again.toml", "--dry-run"]).out, planned);

    fs::write(folder.join("pairs.jsonl"), "{\"prompt\": \"a\", \"chosen\": \"b\"}\n{\"pro")
        .unwrap();
    fs::remove_file(folder.join("held-out.jsonl")).unwrap();
    let ran = run(folder, &["train", "prefer.toml", "--dry-run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    for part in [
        "pairs.jsonl:1: `rejected` is missing",
        "pairs.jsonl:2: the last line is cut off",
        "held-out.jsonl",
    ] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
    let set = ["--set", "stages.told.margin=0.5", "--set", "stages.played.objective={name='clip'}"];
    let ran = run(folder, &[&["train", "prefer.toml", "--dry-run"][..], &set].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    for part in
        ["`margin` has no effect beside files", "`clip` compares no answers: use `cpl` or `dpo`"]
    {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
    assert!(!folder.join("runs").exists());
}

#[test]
fn pairs_that_are_others_are_not_gone_on_with() {
    let folder = place();
    let folder = folder.path();
    kill_at(folder, "run", &["train", "prefer.toml", "--name", "run"], 6);
    fs::write(folder.join("held-out.jsonl"), pairs(true).replace("fog", "mist")).unwrap();
    let ran = run(folder, &["resume", "runs/run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("file held-out.jsonl: it is no longer what the run"), "{}", ran.err);
}
