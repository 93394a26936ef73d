//! A person at the terminal, who here is a pipe.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::{spar, workplace};

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

/// What is shown to someone who asks for every hint and then follows it by hand, one more of them each time.
fn follow_the_hints(arguments: &[&str]) -> String {
    let mut lines = String::new();
    for _ in 0..40 {
        lines += ":hint\n";
        let shown = play(arguments, &lines);
        if shown.contains("Solved!") {
            return shown;
        }
        let hint = shown.lines().filter_map(|line| line.strip_prefix("  try: ")).next_back();
        lines += hint.unwrap();
        lines += "\n";
    }
    panic!("not solved:\n{lines}");
}

#[test]
fn following_the_hints_solves_the_task() {
    let shown = follow_the_hints(&["household", "--split", "dev", "--index", "1"]);
    assert!(shown.ends_with("with reward 1.00\n"), "{shown}");
}

#[test]
fn hints_are_calls_and_words_where_tools_are_offered() {
    for suite in ["bfcl", "sql", "search", "toolbox"] {
        let shown = follow_the_hints(&[suite, "--index", "0"]);
        assert!(shown.contains("  try: ") && shown.contains(" {\""), "{shown}");
        assert!(shown.ends_with("with reward 1.00\n"), "{shown}");
    }
}

#[test]
#[ignore = "needs the wasm guests"]
fn what_a_person_types_runs_code() {
    let lines = "help\npython {\"code\": \"print(6 * 7)\"}\npython(code=\"x = 1\\nx + 1\")\n\"It is \\boxed{0}\n";
    let shown = play(&["code", "--index", "0"], lines);
    assert!(shown.contains("`help` is no call of a tool") && shown.contains("\n42\n"), "{shown}");
    assert!(shown.ends_with("after 3 turns with reward 0.00\n"), "{shown}");
}

#[test]
fn a_person_calls_functions_and_ends_turns_in_words() {
    // What is neither a call nor marked as words ends nothing.
    let shown =
        play(&["bfcl", "--index", "0"], "? create\n? order\nhelp\npl?\n:help\n:hint\n\"Done.\n");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_person_serves_a_customer_by_calls_and_words() {
    let tau2 = |extra: &[&str], lines: &str| {
        play(&[&["tau2", "--split", "test", "--index", "7"], extra].concat(), lines)
    };
    let shown = tau2(&[], "?\n? users\n:help\nget_users {}\nget_users\n\"How can I help?\n:quit\n");
    for told in [
        "You take seat `agent`",
        "`NAME {\"ARGUMENT\": 1}`",
        "  get_users {",
        ":quit     leaves",
        "\"user_id\"",
        "> left\n",
    ] {
        assert!(shown.contains(told), "{told} in {shown}");
    }
    let typo = tau2(&[], "get_user {}\n");
    assert!(typo.contains("`get_user {}` is no call of a tool"), "{typo}");
    // The agent has no expert, so that the oracle serves whoever takes the customer's seat.
    let shown = tau2(&["--seat", "user"], "hello\n\"Hello.\n:say ###STOP###\n");
    assert!(shown.contains("You take seat `user`") && shown.contains("after 2 turns"), "{shown}");
    assert!(shown.contains("`hello` is no call of a tool"), "{shown}");
    let shown = tau2(&["--seat", "user", "--against", "agent=oracle"], "\"###STOP###\n");
    assert!(shown.contains("after 1 turns"), "{shown}");
}

#[test]
fn commands_are_not_said_to_a_customer() {
    let shown = play(&["dialogue", "--index", "0"], "?\n:help\n:what\nhello\n:quit\n");
    assert!(shown.contains("submit NAME=VALUE") && shown.ends_with("> left\n"), "{shown}");
    assert!(
        shown.contains("  :quit     leaves\n") && shown.contains("`:what` is unknown"),
        "{shown}"
    );
}

#[test]
fn what_a_person_answers_is_judged_by_the_graders_of_the_task() {
    let folder = workplace();
    let file = |name: &str, lines: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines).unwrap();
        path.display().to_string()
    };
    let judged = |file: &str, answer: &str| play(&[file, "--index", "0"], &format!("{answer}\n"));
    let sum = "{\"question\": \"3 - 2?\", \"answer\": \"3 - 2 = 1 #### 1\"}\n";
    let sum = file("sum.jsonl", sum);
    for (answer, reward) in [("\\boxed{01}", 1), ("\\boxed{x=1}", 1), ("\\boxed{2}", 0)] {
        let shown = judged(&sum, answer);
        assert!(shown.ends_with(&format!("with reward {reward}.00\n")), "{shown}");
        assert!(!shown.contains("Left out"), "{shown}");
    }
    let choice = "{\"question\": \"Which is a colour?\", \"choices\": [\"ten\", \"red\", \"of\", \"up\"], \
                  \"answer\": 1, \"subject\": \"words\"}\n";
    let choice = file("choice.jsonl", choice);
    for (answer, reward) in [("(B)", 1), ("(A)", 0)] {
        let shown = judged(&choice, answer);
        assert!(shown.ends_with(&format!("with reward {reward}.00\n")), "{shown}");
    }
    let kind = "{\"prompt\": \"Say something kind.\", \"answer\": \"dear\", \"graders\": \
                [{\"kind\": \"judge\", \"decides\": true}, {\"kind\": \"exact\"}]}\n";
    let shown = judged(&file("kind.jsonl", kind), "dear");
    assert!(shown.contains("Left out of the judging: `judge` needs the judge."), "{shown}");
    assert!(shown.ends_with("with reward 1.00\n"), "{shown}");
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
