//! Trajectories are kept, read and played again.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use spar::agent::JsonlStore;

use crate::support::{generate_games, run, spar, succeed, workplace};

#[test]
fn what_was_played_can_be_read_and_played_again() {
    let folder = workplace();
    let folder = folder.path();
    for (name, arguments) in [
        ("slips", &["--policy", "random", "--suite", "frozen-lake", "--split", "slippery"][..]),
        ("chores", &["--policy", "expert", "--suite", "household"]),
    ] {
        let rollout = ["rollout", "--out", name, "--limit", "4", "--group-size", "3", "--json"];
        let report = succeed(folder, &[&rollout[..], arguments].concat()).out;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["splits"][0]["counts"]["finished"], 12);

        let replay: Value =
            serde_json::from_str(&succeed(folder, &["replay", name, "--json"]).out).unwrap();
        assert_eq!((&replay["trajectories"], &replay["mismatches"]), (&12.into(), &0.into()));
        let shard = format!("{name}/000000.jsonl.zst");
        let ran = succeed(folder, &["replay", &shard, "--limit", "5"]);
        assert!(ran.out.starts_with("5 trajectories"), "{}", ran.out);

        let again = run(folder, &[&rollout[..], arguments].concat());
        assert_eq!(again.code, Some(1));
        assert!(again.err.contains("holds some already"), "{}", again.err);
    }
    let shown = succeed(folder, &["show", "chores", "--episode", "2"]).out;
    // Which one it is depends on which ended first.
    assert!(shown.contains("episode 2 · household/train/"), "{shown}");
    assert!(shown.contains(" · expert · solved"), "{shown}");
    assert!(shown.contains("Your task is to:") && shown.contains("reward +1.00"), "{shown}");
    let failed: Value =
        serde_json::from_str(&succeed(folder, &["show", "slips", "--failed", "--json"]).out)
            .unwrap();
    let success: Value =
        serde_json::from_str(&succeed(folder, &["show", "slips", "--success", "--json"]).out)
            .unwrap();
    let matching = |report: &Value| report["matching"].as_u64().unwrap();
    assert_eq!(matching(&failed) + matching(&success), 12);
    let ran = run(folder, &["show", "chores", "--episode", "13"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("there are 12, numbered from 1"), "{}", ran.err);
}

#[test]
fn what_is_killed_has_kept_what_was_finished() {
    // More than can be played meanwhile.
    let rollout = ["rollout", "--out", "kept", "--limit", "20000", "--group-size", "200"];
    let eval = ["eval", "--save", "kept", "--split", "train", "--attempts", "200"];
    for command in [&rollout[..], &eval[..]] {
        let folder = workplace();
        let folder = folder.path();
        let who = ["--policy", "random", "--suite", "frozen-lake"];
        let mut child = spar(folder, &[command, &who].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kept = || -> Vec<_> {
            let reader = JsonlStore::read(folder.join("kept")).into_iter().flatten();
            reader.map(|stored| stored.unwrap().trajectory.episode).collect()
        };
        let began = Instant::now();
        let mut seen = Vec::new();
        while seen.len() < 50 {
            assert!(began.elapsed() < Duration::from_secs(60), "{} were kept", seen.len());
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(Duration::from_millis(20));
            seen = kept();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = kept();
        assert!(left.starts_with(&seen), "{} of {}", left.len(), seen.len());
        let replay = succeed(folder, &["replay", "kept", "--limit", "5", "--json"]).out;
        let replay: Value = serde_json::from_str(&replay).unwrap();
        assert_eq!((&replay["trajectories"], &replay["mismatches"]), (&5.into(), &0.into()));
    }
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_read() {
    let folder = workplace();
    let folder = folder.path();
    let rollout = ["rollout", "--out", "kept", "--policy", "random", "--suite", "frozen-lake"];
    succeed(folder, &[&rollout[..], &["--limit", "2", "--group-size", "2"]].concat());
    let shard = folder.join("kept/000000.jsonl.zst");
    let mut bytes = fs::read(&shard).unwrap();
    // The first of four records, and the end of the last.
    bytes[40] ^= 0x55;
    bytes.truncate(bytes.len() - 7);
    fs::write(&shard, &bytes).unwrap();
    let replay = run(folder, &["replay", "kept", "--json"]);
    assert_eq!(replay.code, Some(1), "{}", replay.err);
    let report: Value = serde_json::from_str(&replay.out).unwrap();
    assert_eq!((&report["trajectories"], &report["unreadable"]), (&2.into(), &2.into()));
    let show = succeed(folder, &["show", "kept"]);
    assert!(show.out.contains("2 of 2 shown, 2 in all"), "{}", show.out);
    for part in ["from byte 0 on: they are damaged", "was not written to its end"] {
        assert!(show.err.contains(part), "{}", show.err);
    }
}

#[test]
fn a_game_that_changed_is_found_by_playing_again() {
    let folder = workplace();
    let folder = folder.path();
    generate_games(folder, "train", 3);
    let of_games = ["--suite", "alfworld", "--data", "games", "--split", "train"];
    let rollout = ["rollout", "--out", "kept", "--policy", "oracle", "--group-size", "1"];
    succeed(folder, &[&rollout[..], &of_games].concat());
    succeed(folder, &["replay", "kept", "--data", "games"]);
    // The third game takes the place of the first.
    let games = spar::envs::household::find_games(&folder.join("games")).unwrap();
    fs::copy(&games[2], &games[0]).unwrap();
    let ran = run(folder, &["replay", "kept", "--data", "games"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(": 1 mismatches"), "{}", ran.out);
    assert!(ran.out.contains("turn 0: observation differs"), "{}", ran.out);
    let ran = run(folder, &["replay", "kept"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("alfworld-download"), "{}", ran.err);
}

#[test]
fn showing_changes_nothing() {
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &["train", "tiny.toml", "--name", "a"]);
    let contents = || {
        let mut found = Vec::new();
        let mut folders = vec![folder.join("runs")];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let meta = path.metadata().unwrap();
                    found.push((path, meta.len(), meta.modified().unwrap()));
                }
            }
        }
        found.sort();
        found
    };
    let before = contents();
    let shown = succeed(folder, &["show"]).out;
    assert!(shown.contains("a: finished, 12 of 12 iterations"), "{shown}");
    assert!(shown.contains("success by iteration"), "{shown}");
    let json: Value = serde_json::from_str(&succeed(folder, &["show", "--json"]).out).unwrap();
    assert_eq!((&json["status"], &json["last"]["iteration"]), (&"finished".into(), &12.into()));
    succeed(folder, &["show", "runs/a", "--trajectories"]);
    assert_eq!(before, contents());
}

#[test]
fn conversations_are_written_for_trainers_elsewhere() {
    let folder = workplace();
    let folder = folder.path();
    let arguments = ["rollout", "--policy", "oracle", "--suite", "ledger", "--scaffold", "tools"];
    let rest = ["--split", "train", "--limit", "3", "--group-size", "2", "--export", "chats.jsonl"];
    let rollout = |out: &'static str| [&arguments[..], &rest, &["--out", out]].concat();
    let told = succeed(folder, &rollout("kept")).out;
    assert!(told.contains("6 conversations written for trainers elsewhere"), "{told}");
    let text = fs::read_to_string(folder.join("chats.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    for line in &lines {
        let messages = line["messages"].as_array().unwrap();
        let calls: Vec<&Value> = messages
            .iter()
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten()
            .collect();
        assert!(!calls.is_empty(), "{line}");
        let answered =
            |call: &&Value| messages.iter().any(|message| message["tool_call_id"] == call["id"]);
        assert!(calls.iter().all(answered), "{line}");
        assert!(line["tools"].as_array().unwrap().iter().all(|tool| tool["type"] == "function"));
        assert_eq!((&line["success"], &line["split"]), (&true.into(), &"train".into()));
        assert_eq!(line["reward"], 1.0);
        assert!(line.get("turns").is_none(), "the oracle has no tokens");
    }
    let mut groups: Vec<u64> = lines.iter().map(|line| line["group"].as_u64().unwrap()).collect();
    groups.sort_unstable();
    assert_eq!(groups, [0, 0, 1, 1, 2, 2]);
    // They are what stages of imitation read.
    let again = run(folder, &rollout("more"));
    assert!(again.code == Some(1) && again.err.contains("it is there already"), "{}", again.err);
    assert!(!folder.join("chats.jsonl.part").exists());
    let random = ["rollout", "--policy", "random", "--suite", "frozen-lake", "--out", "some"];
    let solved = ["--limit", "6", "--group-size", "2", "--export", "some.jsonl", "--export-what"];
    let report = succeed(folder, &[&random[..], &solved, &["solved", "--json"]].concat()).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    let text = fs::read_to_string(folder.join("some.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let score = &report["splits"][0]["score"];
    assert_eq!(
        (&report["exported"], &score["successes"]),
        (&lines.len().into(), &lines.len().into())
    );
    assert!(lines.iter().all(|line| line["success"] == true && line["masked"] == false));
}
