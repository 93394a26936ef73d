//! A person at the terminal, who here is a pipe.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::spar;

/// What is shown to someone who types these lines and then closes the input.
fn play(arguments: &[&str], lines: &str) -> String {
    let mut command = spar(Path::new("."), &[&["play"], arguments].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_person_plays_with_words_numbers_and_hints() {
    let lines = "?\n1\nr\n:hint\n? up\n:what\n:quit\n";
    insta::assert_snapshot!(play(&["frozen-lake", "--index", "3"], lines));
}

#[test]
fn following_the_hints_solves_the_task() {
    // Every hint is asked for and then followed by hand, one more of them each time.
    let mut lines = String::new();
    for _ in 0..40 {
        lines += ":hint\n";
        let shown = play(&["household", "--split", "dev", "--index", "1"], &lines);
        if shown.contains("Solved!") {
            assert!(shown.ends_with("with reward 1.00\n"), "{shown}");
            return;
        }
        let hint = shown.lines().filter_map(|line| line.strip_prefix("  try: ")).next_back();
        lines += hint.unwrap();
        lines += "\n";
    }
    panic!("not solved:\n{lines}");
}

#[test]
fn the_end_of_the_input_ends_the_game() {
    let shown = play(&["frozen-lake", "--seed", "2"], "down\n");
    assert!(shown.ends_with("> \nleft after 1 turns with reward 0.00\n"), "{shown}");
    assert!(play(&["frozen-lake"], "").ends_with("left after 0 turns with reward 0.00\n"));
}

#[test]
fn a_person_is_evaluated_until_they_leave() {
    let human = ["eval", "--policy", "human", "--suite", "frozen-lake", "--split", "test"];
    let eval = |lines: &'static str| {
        let mut command = spar(Path::new("."), &[&human[..], &["--limit", "1"]].concat());
        let pipe = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipe.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = eval(ALL_TURNS);
    assert_eq!(code, Some(0));
    assert!(out.contains("human on frozen-lake/test"), "{out}");
    let (code, _, err) = eval("left\n");
    assert_eq!(code, Some(1));
    assert!(err.contains("the player left"), "{err}");
}

const ALL_TURNS: &str = "down\nup\ndown\nup\ndown\nup\ndown\nup\ndown\nup\n\
                              down\nup\ndown\nup\ndown\nup\ndown\nup\ndown\nup\n\
                              down\nup\ndown\nup\ndown\nup\ndown\nup\ndown\nup\n";
