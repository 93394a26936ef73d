//! Environments of one's own, from the command line: written, checked, played and trained.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{run, succeed};

/// Whether programs in Python can be played.
pub(crate) fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success())
}

#[test]
fn a_skeleton_is_written_once_checked_and_trained() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let wrote = succeed(at, &["env", "init", "my-game"]).out;
    assert!(wrote.contains("spar train --suite my-game"), "{wrote}");
    let again = run(at, &["env", "init", "my-game", "--kind", "tasks"]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("nothing is overwritten"), "{}", again.err);
    assert_eq!(run(at, &["env", "init", "a b"]).code, Some(1));
    assert!(run(at, &["env", "init", "x", "--spar", "."]).err.contains("--kind rust"));
    if !has_python() {
        eprintln!("not run: there is no python3");
        return;
    }
    let checked = succeed(at, &["validate", "my-game", "--limit", "4"]).out;
    assert!(checked.contains("pass  forks go on as their origin"), "{checked}");
    assert!(checked.contains("12 tasks, 12 solved by the oracle"), "{checked}");
    let evaluated = succeed(
        at,
        &["eval", "--suite", "my-game", "--policy", "random", "--limit", "20", "--json"],
    );
    assert!(evaluated.out.contains("\"episodes\": 20"), "{}", evaluated.out);
    let short = [
        "--set",
        "warm_start.iterations=1",
        "--set",
        "reinforce.iterations=1",
        "--set",
        "reinforce.tasks=2",
        "--set",
        "evaluation.dev_tasks=4",
        "--set",
        "evaluation.test_tasks=4",
        "--name",
        "short",
    ];
    let trained = succeed(at, &[&["train", "--suite", "my-game"][..], &short].concat());
    assert!(trained.out.contains("finished after 2 iterations"), "{}", trained.out);
    assert!(at.join("runs/short/metrics.jsonl").is_file());

    // What is broken is told, with what to mend.
    let program = fs::read_to_string(at.join("my-game/game.py")).unwrap();
    fs::write(at.join("my-game/game.py"), program.replace("guess = text", "guess = texts"))
        .unwrap();
    let broken = run(at, &["validate", "my-game", "--json"]);
    assert_eq!(broken.code, Some(1), "{}", broken.err);
    let report: serde_json::Value = serde_json::from_str(&broken.out).unwrap();
    let checks = report["program"]["checks"].as_array().unwrap();
    let last = checks.last().unwrap();
    assert_eq!(last["passed"], false);
    let detail = last["detail"].as_str().unwrap();
    assert!(detail.contains("NameError") && detail.contains("texts"), "{detail}");
}

#[test]
fn skeletons_in_rust_and_of_tasks_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lacking = run(at, &["env", "init", "gym", "--kind", "rust"]);
    assert!(lacking.err.contains("--spar") && !at.join("gym").exists(), "{}", lacking.err);
    succeed(at, &["env", "init", "gym", "--kind", "rust", "--spar", root.to_str().unwrap()]);
    let read = |path: &str| fs::read_to_string(at.join(path)).unwrap();
    let manifest: toml::Table = toml::from_str(&read("gym/Cargo.toml")).unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("gym"));
    // The game is compiled and played as a part of the example; its crates are all that it names.
    let example: toml::Table =
        toml::from_str(&fs::read_to_string(root.join("examples/own-gym/Cargo.toml")).unwrap())
            .unwrap();
    for name in manifest["dependencies"].as_table().unwrap().keys() {
        assert!(example["dependencies"].get(name).is_some(), "{name}");
    }
    for line in read("gym/src/guess.rs").lines().filter(|line| line.starts_with("use ")) {
        let krate = line["use ".len()..].split(':').next().unwrap().replace('_', "-");
        let is_known = krate == "std" || manifest["dependencies"].get(&krate).is_some();
        assert!(is_known, "{line}");
    }
    succeed(at, &["train", "gym/recipe.toml", "--suite", "frozen-lake", "--dry-run"]);

    succeed(at, &["env", "init", "chores", "--kind", "tasks"]);
    // Without programs, files alone are looked at; what solves them needs a shell.
    let opened = run(at, &["eval", "--suite", "chores", "--policy", "oracle", "--backend", "fake"]);
    assert!(!opened.err.contains("understand `"), "{}", opened.err);
}
