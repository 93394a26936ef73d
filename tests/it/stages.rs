//! Recipes that are lists of stages.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use spar::agent::{JsonlStore, StoredTrajectory};
use spar::recipe::Recipe;
use spar::training::stages::outline;

use crate::support::{Ran, TINY, run, spar, succeed, workplace};

/// The tiny recipe with its two stages written as a list.
fn as_list() -> String {
    let (head, rest) = TINY.split_once("[warm_start]").unwrap();
    let (warm, rest) = rest.split_once("[reinforce]").unwrap();
    let (reinforce, tail) = rest.split_once("[evaluation]").unwrap();
    let warm = warm.replace("[warm_start.", "[stages.");
    let reinforce = reinforce.replace("[reinforce.", "[stages.");
    format!(
        "{head}\n[[stages]]\nkind = 'imitate'\nname = 'warm_start'\n{warm}\n\
         [[stages]]\nkind = 'evaluate'\nname = 'test_before'\ntasks = 8\n\n\
         [[stages]]\nkind = 'reinforce'\n{reinforce}\n\
         [[stages]]\nkind = 'evaluate'\nname = 'test_after'\ntasks = 8\ncheckpoint = 'best'\n\n\
         [evaluation]{tail}"
    )
}

/// The tiny model, which is shown conversations, learns on one suite, is evaluated, and learns on another.
fn curriculum() -> String {
    let (head, rest) = TINY.split_once("[warm_start]").unwrap();
    let (_, tail) = rest.split_once("[evaluation]").unwrap();
    format!(
        "{head}
[[stages]]
kind = 'imitate'
name = 'chats'
iterations = 2
batch_tokens = 64
chats = {{ files = ['chats.jsonl'], per_iteration = 3 }}

[[stages]]
kind = 'imitate'
name = 'shown'
iterations = 2
tasks = 8
demonstrator = 'oracle'
batch_tokens = 512

[[stages]]
kind = 'reinforce'
name = 'lake'
iterations = 3
tasks = 4
group_size = 4
max_turns = 10
sampler = {{ kind = 'dynamic', max_rounds = 2 }}
objective = {{ options = {{ kl_weight = 0.01 }} }}

[[stages]]
kind = 'evaluate'
splits = ['slippery', 'test']
tasks = 4
attempts = 2

[[stages]]
kind = 'reinforce'
name = 'home'
iterations = 3
tasks = 2
group_size = 2
max_turns = 3
re_evaluate = ['shown', 'lake']
data = {{ suite = 'household', test = [] }}
trainer = {{ average = {{ exponential = {{ decay = 0.9 }} }} }}

[[stages]]
kind = 'evaluate'
name = 'last'
tasks = 3
checkpoint = 'best'
data = {{ suite = 'household', test = ['seen'] }}

[evaluation]{}",
        tail.replace("max_turns = 10", "max_turns = 3").replace("every = 3", "every = 2")
    )
}

const CHATS: &str = r#"{"messages": [{"role": "user", "content": "which way?"}, {"role": "assistant", "content": "go right"}]}
{"messages": [{"role": "system", "content": "short"}, {"role": "user", "content": "and now?"}, {"role": "assistant", "content": "go down"}]}

{"messages": [{"role": "user", "content": "left?"}, {"role": "assistant", "content": "no", "weight": 0}, {"role": "user", "content": "up?"}, {"role": "assistant", "content": "go up"}]}
{"messages": [{"role": "user", "content": "done?"}, {"role": "assistant", "content": "stop"}]}
"#;

fn place(recipe: &str) -> tempfile::TempDir {
    let folder = workplace();
    fs::write(folder.path().join("list.toml"), recipe).unwrap();
    fs::write(folder.path().join("chats.jsonl"), CHATS).unwrap();
    folder
}

fn train(folder: &Path, recipe: &str, name: &str) -> Ran {
    succeed(folder, &["train", recipe, "--name", name])
}

fn records(folder: &Path, name: &str) -> Vec<Value> {
    let metrics = fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl"));
    metrics.unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn weights(folder: &Path, name: &str) -> Vec<u8> {
    let checkpoints = folder.join("runs").join(name).join("checkpoints");
    let last = records(folder, name).last().unwrap()["iteration"].as_u64().unwrap();
    fs::read(checkpoints.join(format!("iteration-{last:06}/model.safetensors"))).unwrap()
}

#[test]
fn the_example_of_the_documents_is_a_recipe() {
    let document = include_str!("../../docs/stages.md");
    let (_, rest) = document.split_once("```toml\n").unwrap();
    let recipe = Recipe::parse("docs/stages.md", rest.split_once("```").unwrap().0, &[]).unwrap();
    recipe.validate().unwrap();
    let names: Vec<String> =
        outline(&recipe).unwrap().into_iter().map(|stage| stage.name).collect();
    assert_eq!(names, ["manners", "lake", "evaluate", "home", "last"]);
}

#[test]
fn a_recipe_of_two_stages_and_its_list_train_the_same_weights() {
    let folder = place(&as_list());
    let folder = folder.path();
    train(folder, "tiny.toml", "two");
    train(folder, "list.toml", "list");
    assert!(records(folder, "two").len() > 12);
    assert_eq!(records(folder, "two"), records(folder, "list"));
    assert!(weights(folder, "two") == weights(folder, "list"), "weights differ");
}

#[test]
fn stages_in_any_order_repeat_and_go_on_to_the_bit_after_being_killed() {
    let folder = place(&curriculum());
    let folder = folder.path();
    let ran = train(folder, "list.toml", "whole");
    let whole = records(folder, "whole");
    let of = |kind: &str| whole.iter().filter(|record| record["kind"] == kind).count();
    assert_eq!((of("imitate"), of("reinforce"), of("finished")), (4, 6, 1));
    assert_eq!((of("evaluate"), of("last")), (2, 1));
    // The two earlier domains are one.
    assert_eq!(of("re_evaluation"), 1);
    let suites: Vec<&Value> =
        whole.iter().filter(|it| it["kind"] == "evaluation").map(|it| &it["suite"]).collect();
    // Behind what was shown, in the lake twice, before the home and in it twice.
    assert_eq!(
        suites,
        ["frozen-lake", "frozen-lake", "frozen-lake", "household", "household", "household"]
    );
    let is_of = |record: &&Value, stage: &str| record["stage"] == stage;
    let chats: Vec<&Value> = whole.iter().filter(|record| is_of(record, "chats")).collect();
    assert_eq!((chats.len(), &chats[0]["conversations"]), (2, &Value::from(3.0)));
    assert!(chats.iter().all(|record| record["updates"].as_f64() > Some(0.0)));

    // What was evaluated is told, by the run and by `show`.
    let shown = succeed(folder, &["show", "runs/whole"]).out;
    for text in [&ran.out, &shown] {
        for part in ["evaluate", "frozen-lake/slippery", "re_evaluation", "household/seen"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
    let json = succeed(folder, &["show", "runs/whole", "--json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["iterations"], json["stages"].as_array().unwrap().len()),
        (&Value::from(10), 6)
    );
    assert_eq!(json["summary"]["evaluations"].as_array().unwrap().len(), 4);

    // Trajectories of both suites are played again.
    succeed(folder, &["replay", "runs/whole"]);

    for (number, moments) in
        [&[1, 3, 6, 8][..], &[2, 5, 9, 12], &[4, 7, 10, 13, 15], &[11, 14, 16]].iter().enumerate()
    {
        let name = format!("killed-{number}");
        let path = format!("runs/{name}");
        for (time, lines) in moments.iter().enumerate() {
            let arguments = match time {
                0 => vec!["train", "list.toml", "--name", &name],
                _ => vec!["resume", &path],
            };
            let mut child = spar(folder, &arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let started = Instant::now();
            while child.try_wait().unwrap().is_none() && records_so_far(folder, &name) < *lines {
                assert!(started.elapsed() < Duration::from_secs(120), "no progress");
                std::thread::sleep(Duration::from_millis(1));
            }
            // SIGKILL: nothing can be tidied up.
            child.kill().unwrap();
            child.wait().unwrap();
        }
        succeed(folder, &["resume", &path]);
        assert_eq!(records(folder, &name), whole);
        assert!(weights(folder, &name) == weights(folder, "whole"), "weights differ");
    }
}

/// Lines of metrics that are whole.
/// The tasks that a run played in the iterations from `first` to `last`.
fn played(folder: &Path, name: &str, first: u64, last: u64) -> HashSet<String> {
    let path = folder.join("runs").join(name).join("trajectories");
    let stored = JsonlStore::read(path).unwrap().map(Result::unwrap);
    let is_of = |found: &StoredTrajectory| (first..=last).contains(&found.iteration);
    stored.filter(is_of).map(|found| found.trajectory.task).collect()
}

#[test]
fn a_stage_goes_on_behind_all_that_a_sampler_took_before_it() {
    let (head, rest) = TINY.split_once("[warm_start]").unwrap();
    let (_, tail) = rest.split_once("[evaluation]").unwrap();
    let tail = tail.replace("trajectories_every = 2", "trajectories_every = 1");
    let stage = |name: &str, iterations: u64, sampler: &str| {
        format!(
            "[[stages]]\nkind = 'reinforce'\nname = '{name}'\niterations = {iterations}\ntasks = 4\n\
             group_size = 2\nmax_turns = 4\nsampler = {{ kind = {sampler} }}\n"
        )
    };
    let first = stage("first", 2, "'dynamic', max_rounds = 3");
    let second = stage("second", 2, "'uniform'");
    let folder = place(&format!("{head}\n{first}{second}[evaluation]{tail}"));
    let folder = folder.path();
    train(folder, "list.toml", "whole");
    let (before, behind) = (played(folder, "whole", 1, 2), played(folder, "whole", 3, 4));
    assert!(before.len() > 8, "groups were replaced: {before:?}");
    assert_eq!(behind.len(), 8);
    assert!(before.is_disjoint(&behind), "{before:?} {behind:?}");
    // Who goes on with the second stage knows it too.
    let mut child = spar(folder, &["train", "list.toml", "--name", "killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let is_behind = || records(folder, "killed").iter().any(|it| it["stage"] == "second");
    while child.try_wait().unwrap().is_none() && !is_behind() {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    succeed(folder, &["resume", "runs/killed"]);
    assert_eq!(played(folder, "killed", 3, 4), behind);
    assert_eq!(records(folder, "killed"), records(folder, "whole"));
}

fn records_so_far(folder: &Path, name: &str) -> usize {
    let metrics = fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl"));
    metrics.unwrap_or_default().matches('\n').count()
}

#[test]
fn stages_that_are_no_longer_those_of_the_run_are_refused() {
    let folder = place(&as_list());
    let folder = folder.path();
    train(folder, "list.toml", "list");
    let config = folder.join("runs/list/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("iterations = 9", "iterations = 11")).unwrap();
    let ran = run(folder, &["resume", "runs/list"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("the stages in config.toml are no longer those"), "{}", ran.err);
}

#[test]
fn a_chat_file_that_is_another_one_is_not_gone_on_with() {
    let folder = place(&curriculum());
    let folder = folder.path();
    let arguments = ["train", "list.toml", "--name", "list"];
    let mut child =
        spar(folder, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && records_so_far(folder, "list") < 3 {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(folder.join("chats.jsonl"), CHATS.replace("stop", "halt")).unwrap();
    let ran = run(folder, &["resume", "runs/list"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("file chats.jsonl: it is no longer what the run"), "{}", ran.err);
    fs::write(folder.join("chats.jsonl"), CHATS).unwrap();
    succeed(folder, &["resume", "runs/list"]);
}

#[test]
fn a_dry_run_lists_the_stages_and_looks_at_their_data() {
    let folder = place(&curriculum());
    let folder = folder.path();
    let planned = succeed(folder, &["train", "list.toml", "--dry-run"]).out;
    for part in [
        "1. chats     imitate    2 iterations of 3 conversations of `chats.jsonl`",
        "3. lake      reinforce  3 iterations of 4 tasks x 4 on `train` of `frozen-lake`, 48 episodes",
        "4. evaluate  evaluate   4 tasks x 2 of `slippery`, `test` of `frozen-lake`",
        "; then the dev splits of shown, lake again",
    ] {
        assert!(planned.contains(part), "{part} is not in\n{planned}");
    }
    // What is written can be used.
    fs::write(folder.join("again.toml"), &planned).unwrap();
    assert_eq!(succeed(folder, &["train", "again.toml", "--dry-run"]).out, planned);

    fs::write(folder.join("chats.jsonl"), "{\"messages\": []}\n{\"mess").unwrap();
    let bad =
        ["--set", "stages.home.data={suite='house'}", "--set", "stages.evaluate.splits=['deep']"];
    let ran = run(folder, &[&["train", "list.toml", "--dry-run"][..], &bad].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    for part in [
        "chats.jsonl:1: it has no message",
        "chats.jsonl:2: the last line is cut off",
        "`house`",
        "`deep`",
    ] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
    assert!(!folder.join("runs").exists());

    // A suite for evaluation alone is played, and nothing is trained on it.
    let suite = include_str!("../../tasks/suites/frozen-lake/suite.toml");
    let suite = suite.replacen("version = ", "evaluation_only = true\nversion = ", 1);
    fs::create_dir(folder.join("exam")).unwrap();
    fs::write(folder.join("exam/suite.toml"), suite).unwrap();
    fs::write(folder.join("chats.jsonl"), CHATS).unwrap();
    let exam = |stage: &str| format!("stages.{stage}.data={{suite='exam', test=['test']}}");
    let dry = |set: &str| run(folder, &["train", "list.toml", "--dry-run", "--set", set]);
    assert_eq!(dry(&exam("last")).code, Some(0));
    let ran = dry(&exam("home"));
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    for part in ["stage `home`: train on suite `exam`", "`evaluation_only`", "kind `evaluate`"] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }

    // What the model has no words for is told before the first stage begins.
    let tools = CHATS.replace(
        "{\"messages\": [{\"role\": \"system\"",
        "{\"tools\": [{\"type\": \"function\", \"function\": \
        {\"name\": \"f\"}}], \"messages\": [{\"role\": \"system\"",
    );
    fs::write(folder.join("chats.jsonl"), tools).unwrap();
    let ran = run(folder, &["train", "list.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("stage `chats`: read the conversation chats.jsonl:2"), "{}", ran.err);
    assert!(ran.err.contains("the model's chat template leaves `tools` out"), "{}", ran.err);
    assert!(!folder.join("runs").exists());
}

#[test]
fn a_mixture_of_suites_is_trained_told_by_suite_and_gone_on_with_to_the_bit() {
    let mixed = "suites = [\n  { suite = 'frozen-lake', weight = 2 },\n  { suite = 'sums', epochs = 1, \
                 without = ['slippery'] },\n]";
    let folder = place(&TINY.replace("suite = \"frozen-lake\"", mixed));
    let folder = folder.path();
    let planned = succeed(folder, &["train", "list.toml", "--dry-run"]).out;
    assert!(planned.contains("of `2 frozen-lake + sums`"), "{planned}");
    fs::write(folder.join("again.toml"), &planned).unwrap();
    assert_eq!(succeed(folder, &["train", "again.toml", "--dry-run"]).out, planned);

    let ran = train(folder, "list.toml", "whole");
    let whole = records(folder, "whole");
    let count = |record: &Value, name: &str| record[name].as_f64().unwrap_or_default();
    let mut drawn = [0.0; 2];
    for record in whole.iter().filter(|record| record["kind"] == "reinforce") {
        let by_suite =
            ["frozen-lake", "sums"].map(|suite| count(record, &format!("episodes/{suite}")));
        assert_eq!(by_suite[0] + by_suite[1], count(record, "episodes"));
        (drawn[0], drawn[1]) = (drawn[0] + by_suite[0], drawn[1] + by_suite[1]);
    }
    assert_eq!(drawn, [96.0, 48.0]);
    let dev = whole.iter().find(|record| record["kind"] == "evaluation").unwrap();
    assert_eq!((&dev["suite"], count(dev, "episodes")), (&"2 frozen-lake + sums".into(), 16.0));
    let sums = count(dev, "episodes/sums");
    assert!((4.0..=8.0).contains(&sums), "{dev}");
    assert_eq!(sums + count(dev, "episodes/frozen-lake"), 16.0);
    // Where a suite takes no part, the other is all there is.
    let slippery = whole.iter().find(|record| record["kind"] == "test_before").unwrap();
    assert!(
        slippery.get("episodes/sums").is_none() && slippery.get("episodes/frozen-lake").is_some()
    );
    assert!(ran.out.contains("  frozen-lake    "), "{}", ran.out);
    succeed(folder, &["replay", "runs/whole"]);
    let table =
        succeed(folder, &["eval", "--checkpoint", "runs/whole", "--split", "test", "--limit", "9"])
            .out;
    assert!(table.contains("frozen-lake+sums/test") && table.contains("\nsums "), "{table}");

    for lines in [2, 7, 11] {
        let name = format!("killed-{lines}");
        let mut child = spar(folder, &["train", "list.toml", "--name", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() && records_so_far(folder, &name) < lines {
            assert!(started.elapsed() < Duration::from_secs(120), "no progress");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        succeed(folder, &["resume", &format!("runs/{name}")]);
        assert_eq!(records(folder, &name), whole);
        assert!(weights(folder, &name) == weights(folder, "whole"), "weights differ");
    }

    // With other weights it would be another run.
    let config = folder.join("runs/whole/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("weight = 2.0"), "{text}");
    fs::write(&config, text.replace("weight = 2.0", "weight = 3.0")).unwrap();
    let ran = run(folder, &["resume", "runs/whole"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(
        ran.err.contains("`data.suites` is ") && ran.err.contains("weight = 2.0"),
        "{}",
        ran.err
    );

    // Suites for evaluation alone are refused inside a mixture as well, and all else that is wrong is told beside it.
    let suite = include_str!("../../tasks/suites/frozen-lake/suite.toml");
    let suite = suite.replacen("version = ", "evaluation_only = true\nversion = ", 1);
    fs::create_dir(folder.join("exam")).unwrap();
    fs::write(folder.join("exam/suite.toml"), suite.replace("\"frozen-lake\"", "\"exam\""))
        .unwrap();
    let dry = |suites: &str| {
        let set = format!("data.suites=[{suites}]");
        let ran = run(folder, &["train", "list.toml", "--dry-run", "--set", &set]);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        ran.err
    };
    let refused = dry("{suite='exam'}, {suite='sums'}");
    for part in
        ["train on suite `exam`", "find split `slippery` of a mixture", "without = [\"slippery\"]"]
    {
        assert!(refused.contains(part), "{part} is not in\n{refused}");
    }
    let leak =
        dry("{suite='frozen-lake'}, {suite='sums', splits={train='test'}, without=['slippery']}");
    assert!(leak.contains("`test` of `sums` is trained on as `train`"), "{leak}");
    let weights = dry("{suite='frozen-lake', weight=0}, {suite='sums', epochs=0}");
    assert!(
        weights.contains("weight of `frozen-lake` is 0") && weights.contains("epochs of `sums`")
    );
}
