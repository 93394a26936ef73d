//! Games of several seats, from the command line.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use spar::agent::JsonlStore;

use crate::support::{run, spar, succeed, workplace};

#[test]
fn self_play_trains_both_seats_and_an_older_checkpoint_takes_one() {
    let folder = workplace();
    let settings = [
        "train",
        "tic-tac-toe",
        "--name",
        "self",
        "--json",
        "--set",
        "seats.players={ o = { player = 'self' } }",
        "--set",
        "evaluation.seats={ o = { player = 'expert' } }",
        "--set",
        "reinforce.iterations=2",
        "--set",
        "reinforce.tasks=4",
        "--set",
        "reinforce.group_size=4",
        "--set",
        "evaluation.dev_tasks=4",
        "--set",
        "keep.checkpoint_every=1",
        "--set",
        "keep.trajectories_every=1",
        "--set",
        "data.test=[]",
        "--set",
        "model.hidden_size=32",
    ];
    let summary: Value = serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
    assert_eq!(summary["max_drift"], 0.0, "each seat's tokens have the probabilities they had");
    let run_folder = folder.path().join("runs/self");
    // Both seats of every game are kept, and what one has won the other has lost.
    let mut games: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut versions = [false; 2];
    for stored in JsonlStore::read(run_folder.join("trajectories")).unwrap() {
        let trajectory = stored.unwrap().trajectory;
        versions[trajectory.seat.index()] |=
            trajectory.turns.iter().any(|turn| !turn.sampled.versions.is_empty());
        games.entry(trajectory.episode).or_default().push(trajectory.total_reward());
    }
    assert_eq!(games.len(), 2 * 16);
    for rewards in games.values() {
        assert_eq!(rewards.len(), 2);
        assert_eq!((rewards[0] + rewards[1]).to_bits(), 0.0_f64.to_bits());
    }
    assert_eq!(versions, [true; 2], "both seats were sampled");
    // The weights moved.
    let mut checkpoints: Vec<_> = std::fs::read_dir(run_folder.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("model.safetensors").is_file())
        .collect();
    checkpoints.sort();
    assert!(checkpoints.len() > 1, "{checkpoints:?}");
    let weights = |at: usize| std::fs::read(checkpoints[at].join("model.safetensors")).unwrap();
    assert_ne!(weights(0), weights(checkpoints.len() - 1));
    // An older checkpoint of the run at the other seat.
    let older = format!("o={}", checkpoints[0].display());
    let arguments = ["eval", "--checkpoint", "self", "--split", "dev", "--limit", "6", "--json"];
    let found = succeed(folder.path(), &[&arguments[..], &["--seat", &older]].concat());
    let report: Value = serde_json::from_str(&found.out).unwrap();
    let seats = &report["evaluations"][0]["by_seat"];
    assert_eq!(seats["x"]["player"], "local");
    assert_eq!(seats["o"]["player"], format!("o: {}", checkpoints[0].display()));
    let count = |name: &str| seats[name]["successes"].as_u64().unwrap();
    assert_eq!(count("x") + count("o") + seats["x"]["draws"].as_u64().unwrap(), 6);
    // It takes the seat of a simulated user as well, whatever it says there.
    let user = format!("user={}", checkpoints[0].display());
    for (suite, split, agent) in [("tau2", "test", "oracle"), ("dialogue", "easy", "expert")] {
        let arguments = ["eval", "--policy", agent, "--suite", suite, "--split", split];
        let limits = ["--limit", "2", "--max-turns", "3", "--json", "--seat", &user];
        let found = succeed(folder.path(), &[&arguments[..], &limits].concat());
        let report: Value = serde_json::from_str(&found.out).unwrap();
        let evaluation = &report["evaluations"][0];
        assert_eq!(evaluation["overall"]["episodes"], 2, "{suite}");
        let player = &evaluation["by_seat"]["user"]["player"];
        assert_eq!(*player, format!("user: {}", checkpoints[0].display()), "{suite}");
    }
}

#[test]
fn seats_that_are_not_there_are_told_before_anything_is_played() {
    let folder = workplace();
    let eval = |suite: &str, seat: &str| {
        let arguments = ["eval", "--policy", "random", "--suite", suite, "--limit", "4"];
        run(folder.path(), &[&arguments[..], &["--seat", seat]].concat())
    };
    for (suite, seat, told) in [
        ("tic-tac-toe", "z=random", "there is no seat `z`; there are `o`, `x`"),
        ("tic-tac-toe", "o=script:nowhere.txt", "read script `nowhere.txt`"),
        ("frozen-lake", "x=random", "one acts in these tasks"),
        ("errand", "agent=expert", "no seat is left for `self`"),
    ] {
        let ran = eval(suite, seat);
        assert_eq!(ran.code, Some(1), "{seat}");
        assert!(ran.err.contains(told), "{seat}: {}", ran.err);
    }
    let recipe = ["train", "frozen-lake", "--dry-run", "--set", "seats.train=['x']"];
    let ran = run(folder.path(), &recipe);
    assert!(ran.code == Some(1) && ran.err.contains("one acts in these tasks"), "{}", ran.err);
    // A warm start on tasks in which one acts, and then a game: each is held against its own seats.
    let data = "[data]\nsuite = 'tic-tac-toe'\ntest = []\n[seats]\ntrain = ['x']\n";
    let alone = "[[stages]]\nkind = 'imitate'\ndata = { suite = 'frozen-lake', test = [] }\niterations = 1\n";
    let stages = |strategy: &str| {
        format!("{alone}[[stages]]\nkind = 'reinforce'\niterations = 1\n{strategy}")
    };
    let dry_run = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).unwrap();
        run(folder.path(), &["train", name, "--dry-run"])
    };
    let players = "[seats.players]\no = { player = 'expert' }\n";
    let ran = dry_run("mixed.toml", format!("{data}{players}{}", stages("")));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let branching = stages("strategy = { kind = 'branching' }\n");
    let ran = dry_run("branching.toml", format!("{data}{players}{branching}"));
    assert!(ran.code == Some(1) && ran.err.contains("take `independent`"), "{}", ran.err);
    let itself = "[seats.players]\no = { player = 'self' }\n";
    let ran = dry_run("itself.toml", format!("{data}{itself}{}", stages("")));
    assert!(ran.code == Some(1) && ran.err.contains("evaluation.seats"), "{}", ran.err);
    let ran = eval("tic-tac-toe", "o=oracle");
    assert!(!ran.err.contains("takes all seats"), "{}", ran.err);
    assert!(ran.out.contains("seat o (oracle): success"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_person_takes_a_seat_against_perfect_play() {
    let play = |arguments: &[&str], lines: &str| {
        let mut command = spar(std::path::Path::new("."), &[&["play"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let cells = (1..=9).map(|cell| format!("{cell}\n")).collect::<String>();
    let against = ["tic-tac-toe", "--split", "empty", "--index", "0", "--against", "o=oracle"];
    let shown = play(&against, &cells);
    assert!(shown.contains("You take seat `x`") && shown.contains("o takes"), "{shown}");
    assert!(!shown.contains("You win"), "perfect play does not lose: {shown}");
    let order = "hello\norder small red hat\n";
    let shown = play(&["errand", "--index", "2"], order);
    assert!(shown.contains("I want") && shown.contains("after"), "{shown}");
}

#[test]
fn players_meet_each_other_from_both_sides_whatever_is_played_at_one_time() {
    let folder = workplace();
    let eval = |extra: &[&str]| {
        let arguments = ["eval", "--policy", "oracle", "--suite", "noughts", "--split", "test"];
        let others = ["--limit", "2", "--against", "random"];
        run(folder.path(), &[&arguments[..], &others, extra].concat())
    };
    let one = eval(&["--json", "--concurrency", "1", "--out", "results.json"]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    let report: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!((&report["is_complete"], &report["tasks"]), (&true.into(), &2.into()));
    let pair = &report["pairs"][0];
    assert_eq!((&pair["games"], &pair["losses"]), (&4.into(), &0.into()), "perfect play: {pair}");
    assert!(report["spend"]["stopped_at"].is_null(), "{report}");
    let kept = std::fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert_eq!(kept, one.out);
    assert_eq!(eval(&["--json", "--concurrency", "4"]).out, one.out);
    let shown = eval(&[]).out;
    assert!(shown.contains("a draw counting half") && shown.contains("Elo"), "{shown}");
    for (extra, told) in [
        (&["--backend", "docker"][..], "leave out --backend (games take no sandbox)"),
        (&["--image", "debian"], "leave out --image ("),
        (&["--judge", "http://127.0.0.1:9/v1", "--judge-model", "m"], "leave out --judge ("),
        (&["--judge-checkpoint", "nowhere"], "leave out --judge-checkpoint ("),
        (&["--seat", "player-1=expert", "--pass-at", "1"], ") and --pass-at ("),
        (&["--save", "kept"], "leave out --save ("),
        (&["--out", "nowhere/results.json"], "its folder is not there"),
        (&["--max-requests", "5"], "no endpoint is asked"),
        (&["--concurrency", "0"], "must be at least 1"),
    ] {
        let ran = eval(extra);
        assert_eq!(ran.code, Some(1), "{extra:?}: {}", ran.out);
        assert!(ran.err.contains(told), "{extra:?}: {}", ran.err);
    }
}
