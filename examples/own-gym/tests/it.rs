//! The program, as a user types it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What this crate adds, by axis.
const ROWS: [(&str, &str); 11] = [
    ("suites", "guess"),
    ("environments", "guess"),
    ("suites", "lamps"),
    ("environments", "lamps"),
    ("scaffolds", "brief"),
    ("credit", "to_go"),
    ("objectives", "reinforce"),
    ("samplers", "repeat"),
    ("strategies", "until_solved"),
    ("shapers", "haste"),
    ("stages", "bar"),
];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-gym"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(folder, arguments);
    assert!(status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn rows_of_this_crate_are_listed_and_shown_beside_those_that_ship() {
    let all: serde_json::Value =
        serde_json::from_str(&succeed(Path::new("."), &["list", "--json"])).unwrap();
    for (axis, name) in ROWS {
        let rows = all[axis].as_array().unwrap();
        assert!(rows.len() > 1 && rows.iter().any(|row| row["name"] == name), "{axis}");
        let page = succeed(Path::new("."), &["show", axis, name]);
        assert!(page.contains(&format!("`{name}`")) && page.contains("source\n"), "{page}");
    }
    let page = succeed(Path::new("."), &["show", "shapers", "haste"]);
    assert!(page.contains("cost  number; default 0.01"), "{page}");
    assert!(page.contains("What a turn costs; 0 or more."), "{page}");
    let page = succeed(Path::new("."), &["show", "scaffolds", "brief"]);
    assert!(page.contains("  {{ instruction }} Answer with one call"), "{page}");
    assert!(page.contains("max_turns\n  3\n"), "{page}");
}

#[test]
fn the_environments_of_this_crate_are_checked_like_those_that_ship() {
    for suite in ["guess", "lamps"] {
        let told = succeed(Path::new("."), &["validate", suite, "--limit", "5", "--json"]);
        assert!(told.contains(suite), "{told}");
    }
}

#[test]
fn tools_of_this_crate_are_called_under_its_scaffold() {
    let folder = tempfile::tempdir().unwrap();
    let eval = ["eval", "--suite", "lamps", "--policy", "oracle", "--limit", "6", "--json"];
    let played = ["--scaffold", "brief", "--save", "kept"];
    let report = succeed(folder.path(), &[&eval[..], &played].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let score = &report["evaluations"][0]["overall"];
    let told = (score["episodes"].as_u64(), score["success_rate"].as_f64());
    assert_eq!(told, (Some(6), Some(1.0)), "{report:#}");
    let shown = succeed(folder.path(), &["show", "kept", "--episode", "1"]);
    assert!(shown.contains("Light the ") && shown.contains(" lamp is lit."), "{shown}");
    // In words, nothing can be lit.
    let Output { status, stderr, .. } =
        run(folder.path(), &[&eval[..], &["--scaffold", "plain"]].concat());
    let told = String::from_utf8(stderr).unwrap();
    assert!(!status.success() && told.contains("`lamps`"), "{told}");
}

#[test]
fn a_policy_learns_to_call_the_tool_from_demonstrations() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = recipe("lamps.toml");
    succeed(folder.path(), &["train", recipe.to_str().unwrap(), "--name", "a"]);
    let metrics = std::fs::read_to_string(folder.path().join("runs/a/metrics.jsonl")).unwrap();
    let evaluated = metrics.lines().rfind(|line| line.contains("\"evaluation\"")).unwrap();
    let evaluated: serde_json::Value = serde_json::from_str(evaluated).unwrap();
    // A policy that has learned nothing writes no call, and a lamp is lit by a call alone.
    assert!(evaluated["success_rate"].as_f64().unwrap() > 0.2, "{metrics}");
}

#[test]
fn a_run_trains_with_all_that_this_crate_adds() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = recipe("guess.toml");
    let recipe = recipe.to_str().unwrap();
    succeed(folder.path(), &["train", recipe, "--name", "a", "--seed", "5"]);
    let metrics = std::fs::read_to_string(folder.path().join("runs/a/metrics.jsonl")).unwrap();
    let kinds = |kind: &str| metrics.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(kinds("\"reinforce\""), 4, "{metrics}");
    assert_eq!(kinds("\"bar\""), 1, "{metrics}");
    // Equal runs repeat to the bit.
    succeed(folder.path(), &["train", recipe, "--name", "b", "--seed", "5"]);
    let again = std::fs::read_to_string(folder.path().join("runs/b/metrics.jsonl")).unwrap();
    assert_eq!(metrics, again);
}

#[test]
fn a_bar_that_is_not_reached_ends_the_run_and_wrong_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(recipe("guess.toml")).unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("own.toml"), text).unwrap();
    write(&text.replace("at_least = 0.0", "at_least = 1.0"));
    let Output { status, stderr, .. } = run(folder.path(), &["train", "own.toml"]);
    let told = String::from_utf8(stderr).unwrap();
    assert!(!status.success() && told.contains("stage `bar` wants 1"), "{told}");
    write(&text.replace("times = 2", "tims = 2").replace("cost = 0.02", "cost = -1"));
    let Output { status, stderr, .. } = run(folder.path(), &["train", "own.toml", "--dry-run"]);
    let told = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{told}");
    assert!(told.contains("no option `tims`: options are `times`"), "{told}");
    assert!(told.contains("cost is -1, must be 0 or more"), "{told}");
}
