//! Methods listed, advantages assigned again, and recipes swept over settings and seeds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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

    // Which tasks went along with all, by LIMR.
    let impact = ["tasks", "impact", run_folder, "--keep", "0.5", "--out", "chosen.txt"];
    let told = json(folder, &[&impact[..], &["--json"]].concat());
    let scored = told["scored"].as_array().unwrap();
    let scores: Vec<f64> = scored.iter().map(|it| it["score"].as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1] && pair[0] <= 1.0), "{told}");
    let chosen = fs::read_to_string(folder.join("chosen.txt")).unwrap();
    let chosen: Vec<&str> = chosen.lines().collect();
    assert_eq!(Some(chosen.len() as u64), told["chosen"].as_u64());
    assert_eq!(chosen.len(), scored.len().div_ceil(2), "{told}");
    assert!(chosen.iter().zip(scored).all(|(id, it)| it["task"] == *id));
    let wrong = run(folder, &["tasks", "impact", run_folder, "--keep", "2"]);
    assert!(wrong.code != Some(0) && wrong.err.contains("at most 1"), "{}", wrong.err);

    // Which no attempt has solved, and what of these another run has.
    let other = "swept/tiny-kind_gigpo-3";
    let beyond = ["tasks", "unsolved", run_folder, "--attempts", "2", "--then", other];
    let told = json(folder, &[&beyond[..], &["--out", "beyond.txt", "--json"]].concat());
    let unsolved = told["unsolved"].as_array().unwrap();
    assert!(told["tasks"].as_u64() >= Some(unsolved.len() as u64), "{told}");
    let written = fs::read_to_string(folder.join("beyond.txt")).unwrap();
    assert!(written.lines().eq(unsolved.iter().map(|it| it.as_str().unwrap())), "{told}");
    assert!(told["later"]["played"].as_u64() <= Some(unsolved.len() as u64), "{told}");
    let wrong = run(folder, &["tasks", "unsolved", run_folder, "--attempts", "9999"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("9999 attempts"), "{}", wrong.err);

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

/// What is left of a method's recipe so that it takes a second: the frozen lake, few episodes, from a policy that has seen some demonstrations.
const TOY: &[&str] = &[
    "data.suite=frozen-lake",
    "data.train=train",
    "data.dev=test",
    "data.test=[]",
    "episode.context={ instruction = false }",
    "warm_start.iterations=0",
    "reinforce.iterations=3",
    "reinforce.tasks=4",
    "reinforce.max_turns=8",
    "evaluation={ every = 3, dev_tasks = 4, max_turns = 8 }",
    "keep={ checkpoint_every = 1, checkpoints = 10 }",
];

/// The models that recipes are held to that name others.
const OTHERS: &str = "reinforce.reference_soup=[{ path = \"runs/warm/checkpoints/iteration-000002\" }, \
                      { path = \"runs/warm/checkpoints/iteration-000003\", weight = 2.0 }]";

/// The same for recipes that list their stages, which learn from the dataset in `lake`: how many iterations each has, and whose dataset is named.
const STAGED: [(&str, &[&str]); 6] = [
    (
        "a-lol",
        &[
            "clone.iterations=1",
            "improve.iterations=2",
            "clone.dataset.folder=lake",
            "improve.dataset.folder=lake",
        ],
    ),
    ("bc", &["offline.iterations=3", "offline.dataset.folder=lake"]),
    (
        "direct-advantage",
        &[
            "clone.iterations=1",
            "critic.iterations=1",
            "improve.iterations=1",
            "clone.dataset.folder=lake",
            "critic.dataset.folder=lake",
            "improve.dataset.folder=lake",
        ],
    ),
    ("digirl", &["offline.iterations=2", "online.iterations=1", "offline.dataset.folder=lake"]),
    ("imagined", &["offline.iterations=3", "offline.dataset.folder=lake"]),
    ("percent-bc", &["offline.iterations=3", "offline.dataset.folder=lake"]),
];

/// What of the toy is no setting of a recipe that lists its stages.
fn is_of_stages(setting: &str) -> bool {
    ["warm_start.", "reinforce."].iter().any(|part| setting.starts_with(part))
}

/// The recipes that say what they change of the one for households with few demonstrations.
fn methods() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/methods");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The files of a checkpoint that hold weights and the optimiser's state.
fn weights(run: &Path, iteration: u64) -> Vec<Vec<u8>> {
    let folder = run.join(format!("checkpoints/iteration-{iteration:06}"));
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "safetensors"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_folder(&path, &target),
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}

/// Trains a method on the toy, goes on from its middle in a copy of the run, and compares; what is wrong, where something is.
fn try_method(folder: &Path, method: &str) -> Result<(), String> {
    let mut arguments = vec!["train", method, "--name", method, "--threads", "1", "--seed", "5"];
    arguments.extend(["--start-from", "runs/warm/checkpoints/iteration-000003"]);
    let staged = STAGED.iter().find(|(name, _)| *name == method).map(|(_, settings)| *settings);
    let toy = TOY.iter().filter(|setting| staged.is_none() || !is_of_stages(setting));
    toy.for_each(|setting| arguments.extend(["--set", *setting]));
    let of_stages: Vec<String> =
        staged.into_iter().flatten().map(|setting| format!("stages.{setting}")).collect();
    of_stages.iter().for_each(|setting| arguments.extend(["--set", setting]));
    // Those that are held to other models are told which.
    if ["salsa", "kdrl"].contains(&method) {
        arguments.extend(["--set", OTHERS]);
    }
    // In a quarter of the toy's turns nobody reaches a goal, so that its first phases would teach nothing.
    if method == "scaling-inter" {
        arguments.extend(["--set", "reinforce.horizon={ every = 2, turns = [0.75, 1.0] }"]);
    }
    // Episodes of the toy are short.
    let short: &[&str] = match method {
        "april" => &["reinforce.strategy.leg=3"],
        "arrol" => &["reinforce.strategy.at=3", "reinforce.strategy.warm_up=8"],
        "relift" => &["reinforce.imitate_hardest.buffer=2", "reinforce.max_turns=4"],
        // It may be that none of the toy's first episodes is solved, and a stage that has kept nothing stops.
        "dph-rl" => &["reinforce.rehearse.only_solved=false"],
        // What may be tried again is answered in one turn.
        "ufo" => &["data.suite=sums", "reinforce.max_turns=3"],
        // Two lakes, one behind the other.
        "sage" => &["reinforce.max_turns=16", "evaluation.max_turns=16"],
        _ => &[],
    };
    short.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    let trained = run(folder, &arguments);
    if trained.code != Some(0) {
        return Err(format!("{method} does not train:\n{}", trained.err));
    }
    let whole = folder.join("runs").join(method);
    if weights(&whole, 1) == weights(&whole, 3) {
        return Err(format!("{method} moves no weight"));
    }
    let again = folder.join("again").join(method);
    copy_folder(&whole, &again);
    fs::remove_dir_all(again.join("checkpoints/iteration-000003")).unwrap();
    let resumed = run(folder, &["resume", &format!("again/{method}"), "--threads", "1"]);
    if resumed.code != Some(0) {
        return Err(format!("{method} does not resume:\n{}", resumed.err));
    }
    let metrics = |run: &Path| fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    if metrics(&whole) != metrics(&again) {
        return Err(format!("{method} resumes to other metrics"));
    }
    if weights(&whole, 3) != weights(&again, 3) {
        return Err(format!("{method} resumes to other weights"));
    }
    Ok(())
}

/// Self-play: both seats are the policy's, and each is compared with itself.
#[test]
fn a_game_is_learned_by_self_play_seat_by_seat() {
    let folder = workplace();
    let folder = folder.path();
    let settings = [
        "reinforce.iterations=2",
        "reinforce.tasks=2",
        "reinforce.group_size=2",
        "evaluation={ every = 2, dev_tasks = 2, seats = { o = { player = \"expert\" } } }",
        "data.test=[]",
        "keep={ checkpoint_every = 1, checkpoints = 10 }",
    ];
    let mut arguments = vec!["train", "mars", "--name", "mars", "--threads", "1", "--seed", "5"];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    succeed(folder, &arguments);
    let run = folder.join("runs/mars");
    assert_ne!(weights(&run, 1), weights(&run, 2));
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let trained = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trained: Vec<Value> = trained.filter(|it| it["kind"] == "reinforce").collect();
    // Two records of an episode, one for each seat.
    assert!(trained.iter().all(|it| it["samples"].as_f64() >= Some(8.0)), "{metrics}");
}

/// The records of an iteration of reinforcement learning.
fn reinforced(run: &Path) -> Vec<Value> {
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let records = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|it| it["kind"] == "reinforce").collect()
}

/// Attack and defence by one policy, each compared with itself.
#[test]
fn attacker_and_defender_are_one_policy_that_trains_both() {
    let folder = workplace();
    let folder = folder.path();
    let settings = [
        "reinforce.iterations=2",
        "reinforce.tasks=2",
        "reinforce.group_size=4",
        "evaluation={ every = 2, dev_tasks = 2, seats = { attacker = { player = \"expert\" } } }",
        "data.test=[]",
        "keep={ checkpoint_every = 1, checkpoints = 10 }",
    ];
    let mut arguments =
        vec!["train", "self-redteam", "--name", "red", "--threads", "1", "--seed", "5"];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    succeed(folder, &arguments);
    let run = folder.join("runs/red");
    assert_ne!(weights(&run, 1), weights(&run, 2));
    // Two records of most episodes, one for each seat.
    assert!(reinforced(&run).iter().all(|it| it["samples"].as_f64() > Some(8.0)));
}

/// Agents with adapters of their own: exchanging roles, judging each other, and updated one after the other.
#[test]
fn agents_of_a_panel_train_adapters_of_their_own_and_go_on_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let base = [
        "data={ suite = \"panel\", dev = \"dev\", test = [] }",
        "warm_start.iterations=0",
        "reinforce.iterations=1",
        "evaluation={ every = 1, dev_tasks = 2 }",
    ];
    let mut arguments = vec!["train", "tiny.toml", "--name", "base", "--threads", "1"];
    base.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    succeed(folder, &arguments);
    for (method, learners) in [
        ("cory", &["one", "two"][..]),
        ("comas", &["one", "two", "three"]),
        ("marft", &["one", "two"]),
    ] {
        let settings = [
            "stages.reinforce.iterations=3",
            "stages.reinforce.tasks=2",
            "stages.reinforce.group_size=4",
            "evaluation={ every = 3, dev_tasks = 2 }",
            "data.test=[]",
            "keep={ checkpoint_every = 1, checkpoints = 10 }",
        ];
        let mut arguments = vec!["train", method, "--name", method, "--threads", "1"];
        arguments.extend(["--start-from", "runs/base/checkpoints/iteration-000001"]);
        settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
        if method == "cory" {
            arguments.extend(["--set", "stages.reinforce.exchange_every=1"]);
        }
        succeed(folder, &arguments);
        let whole = folder.join("runs").join(method);
        for record in reinforced(&whole) {
            let of = |learner: &&str| record[format!("samples/{learner}")].as_f64().unwrap();
            let samples: Vec<f64> = learners.iter().map(of).collect();
            // Each has a trajectory of every game.
            assert!(samples.iter().all(|it| *it >= 8.0), "{method}: {record}");
        }
        let adapter = |run: &Path, iteration: u64, learner: &str| {
            let checkpoint = run.join(format!("checkpoints/iteration-{iteration:06}"));
            let apart = checkpoint.join("learners").join(learner);
            let place = if apart.exists() { apart } else { checkpoint };
            fs::read(place.join("adapter_model.safetensors")).unwrap()
        };
        for (number, learner) in learners.iter().enumerate() {
            assert_ne!(
                adapter(&whole, 1, learner),
                adapter(&whole, 3, learner),
                "{method} {learner}"
            );
            for other in &learners[..number] {
                assert_ne!(adapter(&whole, 3, learner), adapter(&whole, 3, other), "{method}");
            }
        }
        let again = folder.join("again").join(method);
        copy_folder(&whole, &again);
        fs::remove_dir_all(again.join("checkpoints/iteration-000003")).unwrap();
        succeed(folder, &["resume", &format!("again/{method}"), "--threads", "1"]);
        assert_eq!(reinforced(&whole), reinforced(&again), "{method}");
        for learner in learners {
            assert_eq!(adapter(&whole, 3, learner), adapter(&again, 3, learner), "{method}");
        }
    }
    let told = run(folder, &["train", "grpo", "--dry-run", "--set", "reinforce.exchange_every=2"]);
    assert!(told.err.contains("exchange_every has no effect"), "{}", told.err);
}

#[test]
fn every_method_trains_a_toy_moves_weights_and_resumes_to_the_bit() {
    let folder = workplace();
    let folder = folder.path();
    let warm = ["--set", "reinforce.iterations=0", "--set", "data.test=[]", "--name", "warm"];
    succeed(folder, &[&["train", "tiny.toml"][..], &warm].concat());
    let dataset = ["--out", "lake", "--tasks", "8", "--episodes", "4", "--seed", "3"];
    succeed(folder, &[&["collect", "--suite", "frozen-lake"][..], &dataset].concat());
    let mut methods = methods();
    assert!(methods.len() > 80, "{methods:?}");
    // While one is written, it alone.
    if let Ok(only) = std::env::var("SPAR_ONLY_METHODS") {
        methods.retain(|method| only.split(',').any(|it| it == method));
        assert!(!methods.is_empty(), "none of {only}");
    }
    let left = Mutex::new(methods.into_iter());
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(method) = left.lock().unwrap().next() else { break };
                    if let Err(problem) = try_method(folder, &method) {
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} methods:\n{}", problems.len(), problems.join("\n"));
}
