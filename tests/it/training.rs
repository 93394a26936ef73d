//! Runs repeat to the bit, whatever happens on the way.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use spar::policy::HalfType;
use spar::policy::checkpoint::{KeepAs, open_weights};

use crate::support::{Ran, finish, run, spar, succeed, workplace};

/// Trains the tiny recipe in `folder` under a name.
fn train(folder: &Path, name: &str, extra: &[&str]) -> Ran {
    succeed(folder, &[&["train", "tiny.toml", "--name", name][..], extra].concat())
}

/// A run that nothing disturbed.
fn reference() -> tempfile::TempDir {
    let folder = workplace();
    train(folder.path(), "whole", &[]);
    folder
}

fn metrics(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl")).unwrap_or_default()
}

/// The weights of the last checkpoint, and of the best one.
fn weights(folder: &Path, name: &str) -> [Vec<u8>; 2] {
    let checkpoints = folder.join("runs").join(name).join("checkpoints");
    let best: Value =
        serde_json::from_slice(&fs::read(checkpoints.join("best.json")).unwrap()).unwrap();
    [12, best["iteration"].as_u64().unwrap()].map(|iteration| {
        let folder = checkpoints.join(format!("iteration-{iteration:06}"));
        fs::read(folder.join("model.safetensors")).unwrap()
    })
}

/// That two runs are the same to the bit.
fn assert_same(one: (&Path, &str), other: (&Path, &str)) {
    let [left, right] = [one, other].map(|(folder, name)| metrics(folder, name));
    assert!(left.contains("\"finished\""), "{left}");
    if let Some((left, right)) = left.lines().zip(right.lines()).find(|(a, b)| a != b) {
        panic!("metrics differ:\n{left}\n{right}");
    }
    assert_eq!(left.len(), right.len());
    assert!(weights(one.0, one.1) == weights(other.0, other.1), "weights differ");
}

/// How far what was sampled and what was recomputed differ, in every update that could tell.
fn drifts(metrics: &str) -> Vec<f64> {
    let records = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let updates: Vec<Value> = records.filter(|record| record["kind"] == "reinforce").collect();
    assert_eq!(updates.len(), 9);
    let measured =
        updates.iter().filter(|record| record["drift_current_tokens"].as_f64() > Some(0.0));
    measured.map(|record| record["drift_current_max"].as_f64().unwrap()).collect()
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    spar(folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a run has so many lines of metrics, or its process has ended.
fn wait_for(child: &mut Child, folder: &Path, name: &str, lines: usize) {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && metrics(folder, name).lines().count() < lines {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn equal_seeds_give_equal_runs_on_any_number_of_threads() {
    let folder = reference();
    let folder = folder.path();
    for threads in ["1", "2", "5"] {
        let name = format!("threads-{threads}");
        train(folder, &name, &["--threads", threads]);
        assert_same((folder, "whole"), (folder, &name));
    }
    // Two episodes of each of eight dev tasks.
    let whole = metrics(folder, "whole");
    let records = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let evaluations: Vec<Value> = records.filter(|record| record["kind"] == "evaluation").collect();
    assert!(evaluations.len() > 1, "{evaluations:?}");
    assert!(evaluations.iter().all(|record| record["episodes"] == 16.0), "{evaluations:?}");

    train(folder, "other", &["--seed", "1"]);
    assert_ne!(metrics(folder, "whole"), metrics(folder, "other"));

    let series = ["--series", "a=runs/whole,runs/other", "--series", "b=runs/threads-1"];
    let found = succeed(folder, &[&["compare"][..], &series, &["--json"]].concat()).out;
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["series"][0]["after"]["attempts"], 16);
    assert_eq!(found["pairs"][0]["difference"]["tasks"], 8, "both played the same tasks");
    let series = ["--series", "a=runs/whole", "--series", "b=runs/threads-1"];
    let found = succeed(folder, &[&["compare"][..], &series].concat()).out;
    assert!(found.contains("+0.0 (0.0 to 0.0)") && found.contains("8 tasks, matched"), "{found}");
}

#[test]
fn runs_that_grow_trees_repeat_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let strategy =
        "reinforce.strategy={kind='branching',rounds=2,choose='unsure',in_mid_turn=true}";
    let trees = ["--set", strategy];
    train(folder, "whole", &trees);
    train(folder, "threads", &[&trees[..], &["--threads", "3"]].concat());
    assert_same((folder, "whole"), (folder, "threads"));
    let metrics_of = metrics(folder, "whole");
    let records = metrics_of.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_trees: Vec<Value> =
        records.filter(|record| record["branches"].as_f64() > Some(0.0)).collect();
    assert!(of_trees.len() >= 8, "of 9 iterations {} grew trees", of_trees.len());
    assert!(of_trees.iter().all(|record| record["branches"].as_f64() <= Some(8.0)));
    assert!(drifts(&metrics_of).iter().all(|drift| *drift == 0.0));

    let arguments = [&["train", "tiny.toml", "--name", "killed"][..], &trees].concat();
    let mut child = start(folder, &arguments);
    wait_for(&mut child, folder, "killed", 9);
    child.kill().unwrap();
    child.wait().unwrap();
    succeed(folder, &["resume", "runs/killed"]);
    assert_same((folder, "whole"), (folder, "killed"));
    succeed(folder, &["replay", "runs/whole/trajectories"]);

    let error = run(
        folder,
        &["train", "tiny.toml", "--set", "reinforce.strategy={kind='branching',trunks=4}"],
    );
    assert!(error.err.contains("trunks is 4, and groups have 4 trajectories"), "{}", error.err);
}

#[test]
fn runs_that_sum_up_repeat_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let policy = "episode.context.policy={kind='compact',tokens=64,max_summary_tokens=6,prompt='Sum up.',\
                  note='{{ summary }}'}";
    let sums_up = ["--set", policy];
    train(folder, "whole", &sums_up);
    train(folder, "threads", &[&sums_up[..], &["--threads", "3"]].concat());
    assert_same((folder, "whole"), (folder, "threads"));
    let metrics_of = metrics(folder, "whole");
    let records = metrics_of.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let with_summaries = records.filter(|record| record["summaries"].as_f64() > Some(0.0)).count();
    assert!(with_summaries >= 8, "{with_summaries} iterations have summaries:\n{metrics_of}");
    assert!(drifts(&metrics_of).iter().all(|drift| *drift == 0.0));

    let arguments = [&["train", "tiny.toml", "--name", "killed"][..], &sums_up].concat();
    let mut child = start(folder, &arguments);
    wait_for(&mut child, folder, "killed", 9);
    child.kill().unwrap();
    child.wait().unwrap();
    succeed(folder, &["resume", "runs/killed"]);
    assert_same((folder, "whole"), (folder, "killed"));
    // The environments answer as they did, and people can read the summaries.
    succeed(folder, &["replay", "runs/whole/trajectories"]);
    let shown = succeed(folder, &["show", "runs/whole/trajectories", "--limit", "30"]).out;
    assert!(shown.contains(" ~ [summary") && shown.contains("summar"), "{shown}");

    let evaluate = ["eval", "--policy", "oracle", "--suite", "frozen-lake", "--context", "window"];
    let error = run(folder, &evaluate);
    assert!(error.err.contains("--context"), "{}", error.err);
    let evaluate =
        ["eval", "--checkpoint", "whole", "--context", "window", "--context-option", "kep=0.5"];
    let error = run(folder, &evaluate);
    assert!(error.err.contains("no option `kep`: options are `keep`"), "{}", error.err);
}

#[test]
fn runs_that_replace_groups_without_a_signal_repeat_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let dynamic = ["--set", "reinforce.sampler={kind='dynamic',max_rounds=3}"];
    train(folder, "whole", &dynamic);
    let metrics_of = metrics(folder, "whole");
    let records = metrics_of.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let updates: Vec<Value> = records.filter(|record| record["kind"] == "reinforce").collect();
    assert!(updates.iter().any(|record| record["dropped_groups"].as_f64() > Some(0.0)));
    // What is left has a signal: all samples are computed.
    let has_signal = |record: &Value| record["samples"] == record["samples_with_gradient"];
    assert!(updates.iter().all(has_signal), "{updates:?}");

    let arguments = [&["train", "tiny.toml", "--name", "killed"][..], &dynamic].concat();
    let mut child = start(folder, &arguments);
    wait_for(&mut child, folder, "killed", 9);
    child.kill().unwrap();
    child.wait().unwrap();
    succeed(folder, &["resume", "runs/killed"]);
    assert_same((folder, "whole"), (folder, "killed"));
}

#[test]
fn runs_with_a_value_head_repeat_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let head = |name: &str| {
        let last = folder.join("runs").join(name).join("checkpoints/iteration-000012");
        fs::read(last.join("value_head.safetensors")).unwrap()
    };
    for (level, more) in [
        // Of a tree, what branches share is trained once.
        ("level='token',lambda=0.9", "reinforce.strategy={kind='branching',in_mid_turn=true}"),
        ("level='bi_level',turn_discount=0.9", "value_head={kind='hidden_layer',width=12}"),
    ] {
        let whole = format!("whole-{}", level.len());
        let credit = format!("reinforce.credit={{kind='gae',{level}}}");
        let values = "reinforce.objective={value_loss={weight=0.5,clip=0.5}}";
        let sets = ["value_head={learning_rate_scale=4.0}", &credit, values, more];
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        train(folder, &whole, &sets);
        let threads = format!("threads-{}", level.len());
        train(folder, &threads, &[&sets[..], &["--threads", "3"]].concat());
        assert_same((folder, &whole), (folder, &threads));
        assert!(head(&whole) == head(&threads));
        let told = metrics(folder, &whole);
        assert!(drifts(&told).iter().all(|drift| *drift == 0.0), "heads are not in the way");
        let records = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let updates: Vec<Value> = records.filter(|record| record["kind"] == "reinforce").collect();
        for name in ["value_loss", "value_clip_fraction"] {
            assert!(updates.iter().all(|record| record[name].is_number()), "{name}: {updates:?}");
        }
        assert!(updates.iter().any(|record| record["explained_variance"].is_number()));

        let name = format!("killed-{}", level.len());
        let arguments = [&["train", "tiny.toml", "--name", &name][..], &sets].concat();
        let mut child = start(folder, &arguments);
        for lines in [7, 9, 13] {
            wait_for(&mut child, folder, &name, lines);
            child.kill().unwrap();
            child.wait().unwrap();
            child = start(folder, &["resume", &format!("runs/{name}")]);
        }
        assert!(child.wait().unwrap().success());
        assert_same((folder, &whole), (folder, &name));
        assert!(head(&whole) == head(&name));
    }

    // Whoever plays by it needs no head, and who trains on can begin with it.
    let last = folder.join("runs/whole-24/checkpoints/iteration-000012");
    let last = last.to_str().unwrap();
    let eval = ["eval", "--checkpoint", last, "--suite", "frozen-lake", "--split", "test"];
    succeed(folder, &[&eval[..], &["--limit", "2"]].concat());
    let on = ["--start-from", last, "--set", "warm_start.iterations=0"];
    let ppo = [
        "--set",
        "value_head={learning_rate_scale=4.0}",
        "--set",
        "reinforce.credit={kind='gae'}",
        "--set",
        "reinforce.objective={value_loss={}}",
    ];
    train(folder, "on", &[&on[..], &ppo].concat());
    let first = fs::read_to_string(folder.join("runs/on/metrics.jsonl")).unwrap();
    let mut records = first.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let first = records.find(|record| record["kind"] == "reinforce").unwrap();
    assert_ne!(first["explained_variance"], 0.0, "its values are not 0: {first}");
    let other = ["--set", "value_head={kind='hidden_layer',width=3}"];
    let refused = [&["train", "tiny.toml"][..], &on, &ppo, &other].concat();
    let ran = run(folder, &refused);
    assert!(ran.err.contains("start with the value head in"), "{}", ran.err);
}

#[test]
fn runs_with_a_predictor_repeat_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    // Of the newest checkpoint within the stage; that at its end has none of it.
    let state_file = |name: &str| {
        let checkpoints = fs::read_dir(folder.join("runs").join(name).join("checkpoints")).unwrap();
        let file = |entry: fs::DirEntry| entry.path().join("predictor.safetensors");
        let files = checkpoints.map(|entry| file(entry.unwrap())).filter(|path| path.exists());
        files.max().unwrap()
    };
    let state = |name: &str| fs::read(state_file(name)).unwrap();
    for (credit, predictor) in [
        ("spa", "kind='progress',features={kind='hashed_tokens',width=32}"),
        (
            "archer",
            "kind='turn_critic',features={kind='hidden_states'},steps=8,capacity=150,warm_up=1",
        ),
    ] {
        let credit_setting = format!("reinforce.credit={{kind='{credit}'}}");
        let predictor = format!("reinforce.predictor={{{predictor}}}");
        let sets = ["--set", &credit_setting, "--set", &predictor];
        train(folder, credit, &sets);
        let threads = format!("{credit}-threads");
        train(folder, &threads, &[&sets[..], &["--threads", "3"]].concat());
        assert_same((folder, credit), (folder, &threads));
        assert!(state(credit) == state(&threads));
        let told = metrics(folder, credit);
        let records = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let updates: Vec<Value> = records.filter(|record| record["kind"] == "reinforce").collect();
        let is_told = |record: &Value| {
            record["predictor_loss"].is_number()
                && record["predictor_examples"].as_f64() > Some(0.0)
        };
        assert!(updates.len() == 9 && updates.iter().all(is_told), "{updates:?}");
        // While it warms up, it alone learns.
        let is_trained = |record: &Value| record["samples_with_gradient"].as_f64() > Some(0.0);
        assert_eq!(is_trained(&updates[0]), credit == "spa");
        assert!(updates[1..].iter().any(is_trained));

        let name = format!("{credit}-killed");
        let arguments = [&["train", "tiny.toml", "--name", &name][..], &sets].concat();
        let mut child = start(folder, &arguments);
        for lines in [7, 11] {
            wait_for(&mut child, folder, &name, lines);
            child.kill().unwrap();
            child.wait().unwrap();
            child = start(folder, &["resume", &format!("runs/{name}")]);
        }
        assert!(child.wait().unwrap().success());
        assert_same((folder, credit), (folder, &name));
        assert!(state(credit) == state(&name));
    }

    // A state that is damaged is told, and so is one that was removed.
    let arguments =
        ["train", "tiny.toml", "--name", "damaged", "--set", "reinforce.credit={kind='spa'}"];
    let predictor = ["--set", "reinforce.predictor={kind='progress'}"];
    let mut child = start(folder, &[&arguments[..], &predictor].concat());
    wait_for(&mut child, folder, "damaged", 9);
    child.kill().unwrap();
    child.wait().unwrap();
    let newest = &state_file("damaged");
    let whole = fs::read(newest).unwrap();
    fs::write(newest, &whole[..whole.len() / 2]).unwrap();
    let ran = run(folder, &["resume", "runs/damaged"]);
    assert!(ran.code == Some(1) && ran.err.contains("it is damaged"), "{}", ran.err);
    fs::remove_file(newest).unwrap();
    let ran = run(folder, &["resume", "runs/damaged"]);
    assert!(ran.code == Some(1) && ran.err.contains("predictor.safetensors"), "{}", ran.err);
    fs::write(newest, whole).unwrap();
    succeed(folder, &["resume", "runs/damaged"]);
}

#[test]
fn the_best_can_be_imitated_and_a_stage_that_changes_nothing_says_so() {
    let folder = workplace();
    let folder = folder.path();
    let cloning = ["--set", "reinforce.objective={name='supervised'}"];
    let ran = train(folder, "cloning", &cloning);
    assert!(!ran.out.contains("WARNING"), "{}", ran.out);
    let records = metrics(folder, "cloning");
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let updates = records.filter(|record| record["kind"] == "reinforce");
    assert!(updates.map(|record| record["updates"].as_f64().unwrap()).sum::<f64>() > 0.0);

    // An episode alone in its group is no better than others.
    let ran = train(folder, "alone", &["--set", "reinforce.group_size=1"]);
    let warning = "WARNING: reinforce made no update in 9 iterations";
    assert!(ran.out.contains(warning), "{}", ran.out);
    assert!(!ran.err.contains("NaN"), "{}", ran.err);
    let shown = succeed(folder, &["show", "runs/alone"]).out;
    assert!(shown.contains(warning), "{shown}");
}

#[test]
fn a_demonstration_longer_than_the_model_reads_is_cut_off() {
    let folder = workplace();
    let folder = folder.path();
    let imitate = ["--set", "reinforce.iterations=0", "--set", "warm_start.roll_in.share=0.0"];
    let imitated = |name: &str, tokens: &str| -> [f64; 3] {
        let limit = format!("model.max_position_embeddings={tokens}");
        train(folder, name, &[&imitate[..], &["--set", &limit]].concat());
        let records = metrics(folder, name);
        let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let shown = records.filter(|record| record["kind"] == "imitate");
        let numbers = shown.map(|record| {
            let number = |name: &str| record[name].as_f64().unwrap();
            [number("imitated"), number("truncated_context"), number("tokens")]
        });
        numbers.fold([0.0; 3], |sums, numbers| std::array::from_fn(|i| sums[i] + numbers[i]))
    };
    let (whole, cut) = (imitated("whole", "2048"), imitated("cut", "120"));
    assert_eq!(whole[1], 0.0);
    assert!(cut[1] > 0.0 && cut[0] >= whole[0] && cut[2] < whole[2], "{cut:?} of {whole:?}");
}

#[test]
fn a_run_without_its_past_is_not_resumed() {
    let folder = reference();
    let folder = folder.path();
    fs::write(folder.join("runs/whole/metrics.jsonl"), "").unwrap();
    let ran = run(folder, &["resume", "runs/whole"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("metrics.jsonl"), "{}", ran.err);
    // Of a checkpoint that is damaged, it says what comes of removing it.
    let last = "runs/whole/checkpoints/iteration-000012";
    fs::write(folder.join(last).join("model.safetensors"), "").unwrap();
    let ran = run(folder, &["resume", "runs/whole"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains(last) && ran.err.contains("the one before it"), "{}", ran.err);
}

#[test]
fn what_is_sampled_is_what_is_trained_on() {
    let folder = reference();
    let drifts = drifts(&metrics(folder.path(), "whole"));
    assert!(!drifts.is_empty());
    assert!(drifts.iter().all(|drift| *drift == 0.0), "{drifts:?}");
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened() {
    let folder = reference();
    let folder = folder.path();
    // Lines of metrics after which it is killed, and how much later, in milliseconds.
    for (number, moments) in [
        &[(1, 0), (6, 3)][..],
        &[(2, 1), (5, 0), (9, 2), (13, 0), (16, 1)],
        &[(4, 0), (4, 5), (4, 9), (11, 4)],
        &[(3, 7), (8, 1), (15, 3), (17, 0)],
    ]
    .iter()
    .enumerate()
    {
        let name = format!("killed-{number}");
        let path = format!("runs/{name}");
        let mut is_started = false;
        for (lines, delay) in *moments {
            let arguments = match is_started {
                true => vec!["resume", &path],
                false => vec!["train", "tiny.toml", "--name", &name],
            };
            let mut child = start(folder, &arguments);
            wait_for(&mut child, folder, &name, *lines);
            std::thread::sleep(Duration::from_millis(*delay));
            // SIGKILL: nothing can be tidied up.
            child.kill().unwrap();
            child.wait().unwrap();
            is_started = true;
        }
        succeed(folder, &["resume", &path]);
        assert_same((folder, "whole"), (folder, &name));
        succeed(folder, &["replay", &path]);
    }
}

#[test]
fn a_run_in_bf16_goes_on_from_its_master_weights_after_being_killed() {
    let folder = reference();
    let folder = folder.path();
    let in_bf16 = [
        "--set",
        "warm_start.trainer.weights=\"bf16\"",
        "--set",
        "reinforce.trainer.weights=\"bf16\"",
    ];
    train(folder, "halves", &in_bf16);
    assert_ne!(metrics(folder, "halves"), metrics(folder, "whole"));
    for drift in drifts(&metrics(folder, "halves")) {
        assert_eq!(drift, 0.0, "what is sampled is what is trained on");
    }
    let arguments = [&["train", "tiny.toml", "--name", "killed"][..], &in_bf16].concat();
    let mut child = start(folder, &arguments);
    for lines in [2, 9, 14] {
        wait_for(&mut child, folder, "killed", lines);
        child.kill().unwrap();
        child.wait().unwrap();
        child = start(folder, &["resume", "runs/killed"]);
    }
    assert!(child.wait().unwrap().success());
    assert_same((folder, "halves"), (folder, "killed"));

    // The checkpoint is in bf16, and opens as any other.
    let last = folder.join("runs/halves/checkpoints/iteration-000012");
    let stored = |folder: &Path| open_weights(folder, KeepAs::Stored).unwrap().half_type();
    assert_eq!((stored(&last), stored(&last.join("raw"))), (Some(HalfType::Bf16), None));
    for form in ["stored", "f32"] {
        let audit = ["audit", last.to_str().unwrap(), "--tokens", "200", "--weights", form];
        let report = succeed(folder, &[&audit[..], &["--device", "cpu"]].concat()).out;
        assert!(report.contains("tokens that differ    0"), "{report}");
    }
}

const STATE_IN_FILE: [&str; 4] = [
    "--set",
    "warm_start.trainer.optimizer_state=\"file\"",
    "--set",
    "reinforce.trainer.optimizer_state=\"file\"",
];

#[test]
fn an_optimizer_state_in_a_file_changes_nothing_and_survives_being_killed() {
    let folder = reference();
    let folder = folder.path();
    train(folder, "file", &STATE_IN_FILE);
    assert_same((folder, "whole"), (folder, "file"));
    let arguments = [&["train", "tiny.toml", "--name", "killed"][..], &STATE_IN_FILE].concat();
    let mut child = start(folder, &arguments);
    for lines in [1, 6, 12] {
        wait_for(&mut child, folder, "killed", lines);
        child.kill().unwrap();
        child.wait().unwrap();
        child = start(folder, &["resume", "runs/killed"]);
    }
    assert!(child.wait().unwrap().success());
    assert_same((folder, "whole"), (folder, "killed"));
    let left = fs::read_dir(folder.join("runs/killed")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    assert!(names.into_iter().all(|name| !name.contains("optimizer")));

    // A state that is cut off is told of, not taken for a shorter one.
    let last = folder.join("runs/killed/checkpoints/iteration-000012/trainer.safetensors");
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() - 4]).unwrap();
    let ran = run(folder, &["resume", "runs/killed"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("trainer.safetensors` as safetensors"), "{}", ran.err);
}

#[test]
fn a_run_without_a_checkpoint_begins_anew() {
    let folder = reference();
    let folder = folder.path();
    succeed(folder, &["train", "tiny.toml", "--name", "early"]);
    fs::remove_dir_all(folder.join("runs/early/checkpoints")).unwrap();
    let ran = succeed(folder, &["resume", "runs/early"]);
    assert!(ran.err.contains("begins anew"), "{}", ran.err);
    assert_same((folder, "whole"), (folder, "early"));
}

#[test]
fn ctrl_c_writes_a_checkpoint_and_the_run_goes_on_from_there() {
    let folder = reference();
    let folder = folder.path();
    let mut is_stopped = false;
    for lines in [1, 4, 7, 10] {
        let name = format!("stopped-{lines}");
        let path = format!("runs/{name}");
        let mut child = start(folder, &["train", "tiny.toml", "--name", &name]);
        wait_for(&mut child, folder, &name, lines);
        let pid = child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        let code = child.wait().unwrap().code();
        // It may have been at its end already.
        assert!(code == Some(130) || metrics(folder, &name).contains("finished"), "{code:?}");
        is_stopped |= code == Some(130);
        let show = succeed(folder, &["show", &path]).out;
        assert!(code != Some(130) || show.contains(&format!("{name}: stopped")), "{show}");
        succeed(folder, &["resume", &path]);
        assert_same((folder, "whole"), (folder, &name));
    }
    assert!(is_stopped);
}

#[test]
fn a_stop_between_epochs_costs_one_iteration_and_changes_nothing() {
    let folder = workplace();
    let folder = folder.path();
    fn train(name: &str) -> [&str; 8] {
        let [set, iterations] = ["--set", "warm_start.iterations=3"];
        ["train", "tiny.toml", "--name", name, set, iterations, set, "warm_start.trainer.epochs=20"]
    }
    succeed(folder, &train("epochs"));
    let mut is_stopped = false;
    for number in 0..3 {
        let name = format!("stopped-{number}");
        let mut child = start(folder, &train(&name));
        wait_for(&mut child, folder, &name, 1);
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let code = child.wait().unwrap().code();
        // On a slow day the signal comes when all has been done.
        assert!(code == Some(130) || metrics(folder, &name).contains("finished"), "{code:?}");
        is_stopped |= code == Some(130);
        let done =
            metrics(folder, &name).lines().filter(|line| line.contains("\"imitate\"")).count();
        let ran = succeed(folder, &["resume", &format!("runs/{name}")]);
        let behind = format!("resumed behind iteration {done}");
        assert!(code != Some(130) || done == 3 || ran.err.contains(&behind), "{}", ran.err);
        assert_same((folder, "epochs"), (folder, &name));
    }
    assert!(is_stopped);
}

#[test]
fn a_run_has_one_writer_and_its_name_is_taken() {
    let folder = workplace();
    let folder = folder.path();
    let long = ["train", "tiny.toml", "--name", "a", "--set", "reinforce.iterations=5000"];
    let mut child = start(folder, &long);
    wait_for(&mut child, folder, "a", 1);
    let ran = run(folder, &["resume", "runs/a"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains(&format!("process {} is writing it", child.id())), "{}", ran.err);
    assert!(ran.err.contains("hint: wait for that process"), "{}", ran.err);
    let show = succeed(folder, &["show"]).out;
    assert!(show.contains("a: running"), "{show}");
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = run(folder, &["train", "tiny.toml", "--name", "a"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("exists already\nhint: resume `a`"), "{}", ran.err);
}

#[test]
fn a_finished_run_is_left_as_it_is() {
    let folder = reference();
    let before = (metrics(folder.path(), "whole"), weights(folder.path(), "whole"));
    let ran = succeed(folder.path(), &["resume"]);
    assert!(ran.out.contains("finished after 12 iterations"), "{}", ran.out);
    assert!(before == (metrics(folder.path(), "whole"), weights(folder.path(), "whole")));
}

/// A small file system that goes away with it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount one.
    fn mount(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let disk = Self(folder);
        disk.mount_with(&format!("size={bytes}")).then_some(disk)
    }

    fn mount_with(&self, options: &str) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(self.0.path());
        mount.output().is_ok_and(|output| output.status.success())
    }

    fn grow(&self, bytes: u64) {
        assert!(self.mount_with(&format!("remount,size={bytes}")));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_is_one_clear_error_and_the_run_goes_on_once_there_is_space() {
    let whole = reference();
    let run = whole.path().join("runs/whole");
    // AdamW's two means; they are beside what a run leaves behind.
    let weights = fs::metadata(run.join("checkpoints/iteration-000012/model.safetensors")).unwrap();
    let of_state = 2 * weights.len();
    let mut is_tested = [false; 2];
    let cases = [50, 65, 80].map(|share| (share, false)).into_iter();
    for (share, in_file) in cases.chain([(65, true), (80, true)]) {
        let bytes = size_of(&run) * share / 100 + of_state * u64::from(in_file);
        let Some(disk) = SmallDisk::mount(bytes) else {
            println!("skipped: this process may not mount a small file system");
            return;
        };
        let folder = disk.0.path();
        let recipe = whole.path().join("tiny.toml");
        let mut train = vec!["train", recipe.to_str().unwrap(), "--name", "full"];
        train.extend(STATE_IN_FILE.iter().filter(|_| in_file));
        let ran = finish(spar(folder, &train).env("TMPDIR", "/tmp"));
        assert_eq!(ran.code, Some(1), "{} bytes\n{}", bytes, ran.err);
        assert!(ran.err.contains("No space left on device"), "{}", ran.err);
        assert!(ran.err.contains("hint: free disk space"), "{}", ran.err);
        let run = folder.join("runs/full");
        let checkpoints = run.join("checkpoints");
        if !checkpoints.join("iteration-000000").exists() && !has_checkpoint(&checkpoints) {
            continue;
        }
        let half = fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().file_name());
        let half: Vec<_> = half.filter(|name| name.to_string_lossy().contains("tmp")).collect();
        assert!(half.is_empty(), "{half:?}");
        disk.grow(64 << 20);
        succeed(folder, &["resume", "runs/full"]);
        assert_same((whole.path(), "whole"), (folder, "full"));
        is_tested[usize::from(in_file)] = true;
    }
    assert_eq!(is_tested, [true; 2], "the disk was too small for a first checkpoint each time");

    // No room for the state from the beginning on.
    let disk = SmallDisk::mount(of_state / 2).unwrap();
    let recipe = whole.path().join("tiny.toml");
    let train = ["train", recipe.to_str().unwrap(), "--name", "full"];
    let train = [&train[..], &STATE_IN_FILE].concat();
    let ran = finish(spar(disk.0.path(), &train).env("TMPDIR", "/tmp"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("No space left on device"), "{}", ran.err);

    // A model that does not fit leaves nothing that looks like one.
    let disk = SmallDisk::mount(weights.len() / 2).unwrap();
    let out = disk.0.path().join("merged/");
    let merge = ["merge", "runs/whole", "--out", out.to_str().unwrap()];
    let ran = finish(&mut spar(whole.path(), &merge));
    assert!(ran.err.contains("No space left on device"), "{}", ran.err);
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 0);

    // What was measured is told before it is written.
    let disk = SmallDisk::mount(4096).unwrap();
    fs::write(disk.0.path().join("full"), [0; 4096]).unwrap();
    let out = disk.0.path().join("e.json");
    let eval = ["eval", "--policy", "oracle", "--suite", "frozen-lake", "--limit", "4", "--out"];
    let ran = finish(&mut spar(whole.path(), &[&eval[..], &[out.to_str().unwrap()]].concat()));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.contains("success") && ran.err.contains("e.json"), "{}{}", ran.out, ran.err);
}

fn has_checkpoint(checkpoints: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(checkpoints) else { return false };
    entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("iteration-"))
}

/// Bytes in whole pages, as a file system in memory counts them.
fn size_of(path: &Path) -> u64 {
    const PAGE: u64 = 4096;
    if path.is_dir() {
        return fs::read_dir(path).unwrap().map(|entry| size_of(&entry.unwrap().path())).sum();
    }
    path.metadata().unwrap().len().div_ceil(PAGE) * PAGE
}
