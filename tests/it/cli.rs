//! What the command line says.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{generate_games, run, spar, succeed, workplace};

const VERBS: [&str; 26] = [
    "train",
    "resume",
    "eval",
    "rollout",
    "play",
    "replay",
    "show",
    "compare",
    "sweep",
    "credit",
    "methods",
    "validate",
    "list",
    "conformance",
    "bench",
    "generate",
    "serve",
    "merge",
    "audit",
    "sandbox",
    "reap",
    "redact",
    "doctor",
    "tasks",
    "env",
    "completions",
];

#[test]
fn every_command_explains_itself() {
    let help = succeed(Path::new("."), &["--help"]).out;
    for verb in VERBS {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb} is missing in\n{help}");
        insta::assert_snapshot!(
            format!("help_{verb}"),
            succeed(Path::new("."), &[verb, "--help"]).out
        );
    }
    insta::assert_snapshot!("help", help);
    let help = succeed(Path::new("."), &["serve", "policy", "--help"]).out;
    insta::assert_snapshot!("help_serve_policy", help);
    let help = succeed(Path::new("."), &["methods", "show", "--help"]).out;
    insta::assert_snapshot!("help_methods_show", help);
    for verb in ["run", "shell", "ls"] {
        let help = succeed(Path::new("."), &["sandbox", verb, "--help"]).out;
        insta::assert_snapshot!(format!("help_sandbox_{verb}"), help);
    }
    for verb in ["ls", "show", "import", "grade", "build-image"] {
        let help = succeed(Path::new("."), &["tasks", verb, "--help"]).out;
        insta::assert_snapshot!(format!("help_tasks_{}", verb.replace('-', "_")), help);
    }
    let help = succeed(Path::new("."), &["tasks", "make", "repair", "--help"]).out;
    insta::assert_snapshot!("help_tasks_make_repair", help);
}

#[test]
fn everything_with_a_name_is_listed() {
    insta::assert_snapshot!(succeed(Path::new("."), &["list"]).out);
    let recipes = succeed(Path::new("."), &["list", "recipes"]).out;
    assert!(recipes.starts_with("household"), "{recipes}");
}

#[test]
fn a_page_tells_all_of_what_has_a_name() {
    let pages = [
        ("objectives", "clip"),
        ("credit", "salt"),
        ("environments", "household"),
        ("scaffolds", "react"),
        ("heads", "hidden_layer"),
    ];
    for (axis, name) in pages {
        let page = succeed(Path::new("."), &["show", axis, name]).out;
        insta::assert_snapshot!(format!("show_{axis}_{name}"), page);
    }
    let json = succeed(Path::new("."), &["show", "samplers", "dynamic", "--json"]).out;
    insta::assert_snapshot!("show_samplers_dynamic_json", json);
    let folder = workplace();
    let known = ["find objective `clop`", "known are `clip`, "];
    fails(folder.path(), &["show", "objectives", "clop"], 1, &known);
    fails(folder.path(), &["show", "objectivs", "clip"], 1, &["are `objectives`, "]);
    fails(folder.path(), &["show", "objectives"], 1, &["`spar show objectives NAME`", "`gspo`"]);
    fails(folder.path(), &["show", "objectives", "clip", "--failed"], 2, &["cannot be used with"]);
}

#[test]
fn a_dry_run_prints_a_recipe_that_can_be_used_and_leaves_nothing_behind() {
    let folder = workplace();
    let arguments =
        ["train", "tiny.toml", "--dry-run", "--set", "reinforce.tasks=5", "--seed", "3"];
    let plan = succeed(folder.path(), &arguments).out;
    assert!(plan.contains("hidden_size = 32") && plan.contains("seed = 3"), "{plan}");
    insta::assert_snapshot!(plan.lines().last().unwrap());
    fs::write(folder.path().join("again.toml"), &plan).unwrap();
    let again = succeed(folder.path(), &["train", "again.toml", "--dry-run"]).out;
    assert_eq!(again, plan);
    assert!(!folder.path().join("runs").exists());
}

/// A command that must fail, and what it must say.
fn fails(folder: &Path, arguments: &[&str], code: i32, parts: &[&str]) {
    let ran = run(folder, arguments);
    assert_eq!(ran.code, Some(code), "{arguments:?}\n{}", ran.err);
    assert_eq!(ran.out, "", "{arguments:?}");
    for part in parts {
        assert!(ran.err.contains(part), "{arguments:?} does not say {part:?}:\n{}", ran.err);
    }
    if code == 1 {
        assert!(ran.err.contains("error: could not "), "{}", ran.err);
    }
}

#[test]
fn wrong_names_list_the_right_ones() {
    let folder = workplace();
    let folder = folder.path();
    let listed = succeed(folder, &["list", "suites"]).out;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    assert!(names.len() > 20 && names[0] == "`household`", "{names:?}");
    let suites = &*format!("known are {}", names.join(", "));
    fails(
        folder,
        &["validate", "houshold"],
        1,
        &["`houshold`", suites, "hint: `spar list suites`"],
    );
    fails(folder, &["eval", "--policy", "expert", "--suite", "x"], 1, &["`x`", suites]);
    fails(folder, &["play", "chess"], 1, &["`chess`", suites]);
    fails(folder, &["train", "houshold"], 1, &["recipe `houshold`", "`quick`", "hint: `spar list"]);
    let split = ["eval", "--policy", "expert", "--split", "tets"];
    fails(folder, &split, 1, &["`tets`", "`seen`, `train`, `train_clean`", "hint: name one"]);
    let index = ["play", "frozen-lake", "--split", "test", "--index", "200"];
    fails(folder, &index, 1, &["task 200", "it has 200"]);
    fails(folder, &["trian"], 2, &["unrecognized subcommand", "train"]);
    fails(folder, &["eval", "--policy", "wizard"], 2, &["random", "oracle", "expert", "human"]);
    fails(folder, &["eval", "--endpoint", "http://x"], 2, &["--model"]);
    let ignored = ["eval", "--policy", "oracle", "--temperature", "1", "--weights", "bf16"];
    fails(folder, &ignored, 1, &["--temperature and --weights", "leave it out"]);
    let restricted =
        ["--endpoint", "http://x", "--model", "m", "--constrain-to-admissible", "true"];
    let parts = ["--constrain-to-admissible by an endpoint"];
    fails(folder, &[&["eval"], &restricted[..]].concat(), 1, &parts);
    fails(folder, &["list", "suits"], 2, &["suites"]);
    fails(folder, &["generate", "household", "--out", "g", "--size", "9000"], 2, &["4 to 60"]);
}

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    let folder = workplace();
    let folder = folder.path();
    fs::write(folder.join("typo.toml"), "seed = 1\n[reinforce]\niteratoins = 5\n").unwrap();
    let hint = "hint: `spar train --dry-run`";
    fails(folder, &["train", "typo.toml"], 1, &["iteratoins", "`iterations`", "line 3", hint]);
    let set = |setting| ["train", "tiny.toml", "--set", setting];
    fails(folder, &set("reinforce.task=5"), 1, &["unknown field `task`", hint]);
    fails(folder, &set("reinforce.tasks=0"), 1, &["reinforce.tasks is 0"]);
    fails(folder, &set("nonsense"), 1, &["name.of.it=value"]);
    fails(folder, &set("reinforce.credit.kind=magic"), 1, &["magic", "gigpo"]);
    fs::write(folder.join("file"), "").unwrap();
    let out = ["generate", "household", "--out", "file"];
    fails(folder, &out, 1, &["write `file/train/", "Not a directory"]);
    let attempts = ["eval", "--policy", "random", "--pass-at", "4"];
    let out = ["eval", "--policy", "random", "--out", "nowhere/found.json"];
    fails(folder, &out, 1, &["`nowhere/found.json`: its folder is not there"]);
    fails(folder, &attempts, 1, &["pass_at has 4, must be 1 to the 1 attempts"]);
    fails(folder, &["train", "tiny.toml", "--name", "../x"], 1, &["name a run `../x`"]);
    assert!(!folder.join("runs").exists(), "a refused run left something behind");
}

#[test]
fn data_that_is_missing_comes_with_how_to_get_it() {
    let folder = workplace();
    let folder = folder.path();
    let alfworld = ["eval", "--policy", "expert", "--suite", "alfworld"];
    let with = |data: &'static str| [&alfworld[..], &["--data", data]].concat();
    fails(folder, &alfworld, 1, &["--data", "alfworld-download"]);
    fails(folder, &["train", "alfworld"], 1, &["alfworld-download"]);
    fails(folder, &with("nowhere"), 1, &["`nowhere`", "No such file", "alfworld-download"]);
    fs::create_dir_all(folder.join("empty/valid_seen/problem")).unwrap();
    fails(folder, &with("empty"), 1, &["game.tw-pddl", "below `empty`", "alfworld-download"]);
    fails(folder, &["bench", "household", "--data", "empty"], 1, &["under `empty`"]);
    fails(folder, &["bench", "household"], 2, &["--data"]);
}

#[test]
fn a_game_that_was_cut_off_is_named() {
    let folder = workplace();
    let folder = folder.path();
    generate_games(folder, "valid_unseen", 2);
    let games = spar::envs::household::find_games(&folder.join("games")).unwrap();
    let whole = fs::read(&games[0]).unwrap();
    fs::write(&games[0], &whole[..whole.len() / 2]).unwrap();
    let name = games[0].parent().unwrap().file_name().unwrap().to_str().unwrap();

    let of_games = ["--data", "games"];
    let validate =
        run(folder, &[&["validate", "alfworld", "--limit", "2"][..], &of_games].concat());
    assert_eq!(validate.code, Some(1));
    assert!(validate.out.contains("broken") && validate.out.contains(name), "{}", validate.out);
    let eval_arguments = ["eval", "--policy", "expert", "--suite", "alfworld"];
    let eval = run(folder, &[&eval_arguments[..], &of_games].concat());
    assert_eq!(eval.code, Some(1));
    assert!(eval.out.contains("could not be played"), "{}", eval.out);
    assert!(eval.err.contains("--max-missing") && eval.err.contains(name), "{}", eval.err);
    let generous = [&eval_arguments[..], &of_games, &["--max-missing", "0.5"]].concat();
    let eval = run(folder, &generous);
    assert!(eval.code == Some(1) && eval.err.contains("warning:"), "{}", eval.err);
    let play = ["play", "alfworld", "--data", "games", "--split", "valid_unseen", "--index", "0"];
    fails(folder, &play, 1, &["as a JSON object", name, "hint: the file may be cut off"]);
}

#[test]
fn there_is_no_default_player_without_a_run() {
    let folder = workplace();
    let folder = folder.path();
    let parts = ["find a run in `runs`: there is none", "hint: train one with `spar train`"];
    fails(folder, &["eval"], 1, &parts);
    fails(folder, &["show"], 1, &parts);
    fails(folder, &["resume"], 1, &parts);
    fails(folder, &["resume", "runs/x"], 1, &["runs/x", "manifest.json"]);
    fails(folder, &["show", "runs/x"], 1, &["`runs/x`", "nothing is there"]);
    fails(folder, &["eval", "--checkpoint", "."], 1, &["`config.json`"]);
}

#[test]
fn a_checkpoint_is_evaluated_as_its_run_did() {
    let folder = workplace();
    let folder = folder.path();
    succeed(folder, &["train", "tiny.toml", "--name", "a"]);
    let by_run = succeed(folder, &["eval", "--limit", "8", "--json", "--out", "found.json"]).out;
    assert_eq!(by_run, fs::read_to_string(folder.join("found.json")).unwrap());
    let report: serde_json::Value = serde_json::from_str(&by_run).unwrap();
    let found = &report["evaluations"][0];
    assert_eq!((&found["suite"], &found["split"]), (&"frozen-lake".into(), &"slippery".into()));
    let run: serde_json::Value =
        serde_json::from_str(&succeed(folder, &["show", "--json"]).out).unwrap();
    let trained = &run["summary"]["splits"]["slippery"][1];
    assert_eq!(found["overall"]["successes"], trained["successes"]);
    assert_eq!(found["overall"]["mean_turns"], trained["turns"]);
    let checkpoint = report["checkpoint"].as_str().unwrap();
    let eval = ["eval", "--checkpoint", checkpoint, "--limit", "8", "--json", "--threads", "1"];
    assert_eq!(succeed(folder, &eval).out, by_run);

    // As a model of another kind would have it.
    let config = folder.join(checkpoint).join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    let other =
        text.replace("SparForCausalLM", "MambaForCausalLM").replace("\"spar\"", "\"mamba\"");
    fs::write(&config, other).unwrap();
    let parts = ["MambaForCausalLM", "Qwen3ForCausalLM", "hint: spar computes", checkpoint];
    fails(folder, &["eval", "--checkpoint", checkpoint], 1, &parts);
}

#[test]
fn a_reader_who_leaves_is_no_failure() {
    for arguments in [&["list"][..], &["completions", "bash"], &["train", "--dry-run"]] {
        let mut command = spar(Path::new("."), arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn generated_games_are_written_where_they_are_found() {
    let folder = workplace();
    let folder = folder.path();
    generate_games(folder, "dev", 3);
    let valid = succeed(folder, &["validate", "alfworld", "--data", "games", "--limit", "3"]).out;
    assert!(valid.contains("nothing is wrong"), "{valid}");
    let bench = succeed(folder, &["bench", "household", "--data", "games", "--json"]).out;
    let bench: serde_json::Value = serde_json::from_str(&bench).unwrap();
    assert_eq!(bench["games"], 3);
    assert!(bench["steps_per_second"].as_f64() > Some(0.0));
}

#[test]
fn ctrl_c_ends_an_evaluation_with_what_was_played() {
    let arguments =
        ["eval", "--policy", "expert", "--split", "train", "--limit", "20000", "--json"];
    let mut command = spar(Path::new("."), &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["is_complete"], false);
    assert!(report["evaluations"][0]["missing"].as_u64() > Some(0), "{out}");
}

#[test]
fn signals_end_commands_that_compute() {
    let folder = workplace();
    let folder = folder.path();
    generate_games(folder, "train", 2);
    let commands: [&[&str]; 5] = [
        &["generate", "household", "--out", "small", "--size", "4", "--count", "1000000"],
        &["validate", "household", "--limit", "100000"],
        &["bench", "household", "--data", "games"],
        &["rollout", "--policy", "oracle", "--out", "kept", "--limit", "100000"],
        &["train", "tiny.toml", "--set", "reinforce.iterations=100000"],
    ];
    for (number, arguments) in commands.into_iter().enumerate() {
        let (signal, code) = if number % 2 == 0 { ("-TERM", 143) } else { ("-INT", 130) };
        let mut command = spar(folder, arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended by itself");
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let sent = Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if sent.elapsed() < Duration::from_secs(30) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                None => {
                    child.kill().unwrap();
                    panic!("{arguments:?} goes on after {signal}");
                }
            }
        };
        // Those that hold nothing are ended by the signal itself.
        let is_ended = status.code().map_or(status.signal().is_some(), |found| found == code);
        assert!(is_ended, "{arguments:?}: {status}");
    }
}

#[test]
fn ctrl_c_leaves_whole_games_behind() {
    let folder = workplace();
    let folder = folder.path();
    let arguments = ["generate", "household", "--out", "games", "--count", "1000000"];
    let mut command = spar(folder, &arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let games = || spar::envs::household::find_games(&folder.join("games")).unwrap_or_default();
    while games().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let count = games().len().to_string();
    let valid = ["validate", "alfworld", "--data", "games", "--split", "train", "--limit", &count];
    assert!(succeed(folder, &valid).out.contains("nothing is wrong"));
}
